"""The virtual runtime: whole loops with waits of hours, agents in memory, and commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from reactivex import never, operators as ops, timer

from cuggino import Config, SpawnOptions, events as ev
from cuggino.agents.base import Role
from cuggino.errors import ConfigError, QuotaExceeded
from cuggino.events import StopAsked
from cuggino.testing import (
    AgentRun,
    CommandResult,
    Do,
    InMemoryAgent,
    Item,
    Run,
    Say,
    ScriptedAgent,
    StandsStill,
    Think,
    Use,
    VirtualClock,
    VirtualRuntime,
    Wait,
    Write,
)
from cuggino.testing.doubles import Commands
from tests.testing.one_task import DONE, ENDED, HOUR, runs

pytestmark = pytest.mark.usefixtures("nothing_is_left")


class TestTime:
    def test_usage_limit_of_five_hours(self, tmp_path: Path) -> None:
        """The wait is reported each minute and takes no real time; then the stage resumes."""
        clock = VirtualClock()
        limited = [Say("I begin."), QuotaExceeded("limit", resets_at=clock.at("5h"))]
        cousin = VirtualRuntime(
            tmp_path, runs(limited, DONE), config=Config(wait_for_quota=True), clock=clock
        )
        story = cousin.run(focus="the page").check()
        assert [60.0 * n for n in range(302)][:301] == story.times(ev.QuotaWaiting)
        assert 5 * HOUR + 60 == story.one(ev.QuotaLifted).waited
        assert (5 * HOUR + 60, True) == (story.ended_at, story.completed)
        assert ev.LoopApproved(iteration=1, checked=False) == story.last

    def test_slow_command_times_out(self, tmp_path: Path) -> None:
        """A result that takes longer than `command_timeout` is cut off at the timeout."""
        cousin = VirtualRuntime(
            tmp_path,
            runs(DONE),
            config=Config(check_command="make test", command_timeout=600),
            commands={"make test": [CommandResult("slow", takes="1h"), CommandResult("ok\n")]},
        )
        story = cousin.run(focus="the page").check()
        first, second = story.of(ev.CheckCommandOutput)
        assert ([600, 600], 124, 0, "ok\n") == (
            story.times(ev.CheckCommandOutput),
            first.exit_code,
            second.exit_code,
            second.output,
        )
        assert ["make test", "make test"] == cousin.commands.ran


class TestWatching:
    def test_new_backlog_item_is_noticed(self, tmp_path: Path) -> None:
        """A new backlog file is noticed and processed once it is stable."""
        cousin = VirtualRuntime(tmp_path, runs([Wait("10m"), *DONE]))
        cousin.at("3h", lambda: cousin.write(".cuggino/backlog/page.md", "A blue page."))
        story = cousin.watch(until="1d")
        assert [
            (0, "WatchBacklogWaiting"),
            (3 * HOUR + 30, "WatchProcessingItem"),
            (3 * HOUR + 630, "WatchItemCompleted"),
            (3 * HOUR + 630, "WatchBacklogWaiting"),
        ] == [(when, e.tag) for when, e in story.timeline if e.tag.startswith("Watch")]
        assert (False, None, None) == (story.completed, story.error, story.ended_at)
        assert 86_400 == cousin.clock.elapsed
        assert [] == cousin.paths(".cuggino/backlog/*")
        assert 1 == len(cousin.paths(".cuggino/archive/*-page.md"))

    def test_watch_needs_until(self, tmp_path: Path) -> None:
        """A watch without `until` never ends, which the test's error explains."""
        with pytest.raises(AssertionError, match="has not ended, and nothing more will happen"):
            VirtualRuntime(tmp_path, runs()).watch()


class TestDelivering:
    def test_deliverables(self, tmp_path: Path) -> None:
        """The deliverable tools work on the project's status file."""
        wanted = {"id": "D1", "description": "a page", "acceptanceCriteria": ["it is blue"]}
        sessions: dict[Role, list[Any]] = {
            "initializer": [[Use("create_deliverable", {"deliverables": [wanted]}), ENDED]],
            "coding": [
                [Wait("10m"), _status("nobody"), _status("D1"), Wait("1m"), Use("list"), ENDED]
            ],
        }
        cousin = VirtualRuntime(tmp_path, sessions, files={"SPEC.md": "A blue page."})
        story = cousin.deliver(session_pause=60).check()
        assert ("all_passed", 1, 1.0) == (
            story.one(ev.DeliverEnded).reason,
            story.one(ev.DeliverEnded).passed,
            story.one(ev.DeliverEnded).cost_usd,
        )
        assert [660.0] == story.times(
            ev.DeliverableStatusChanged
        )  # as it is written, not at the end
        assert 720.0 == story.ended_at
        results = story.of(ev.ToolResult)
        assert [False, True, False, False] == [result.is_error for result in results]
        assert [{**wanted, "status": "passed"}] == json.loads(results[-1].output)["deliverables"]

    def test_plan_and_build(self, tmp_path: Path) -> None:
        """The plan/build loop reads the files written by its sessions."""
        jobs = '{"jobs": [{"id": "J1", "requirementCode": "REQ-1", "description": "bake", '
        jobs += '"status": "STATUS", "priority": 1}]}'
        file = "docs/requirements/jobs-to-be-done.json"
        sessions: dict[Role, list[Any]] = {
            "plan": [[Write(file, jobs.replace("STATUS", "open")), ENDED]],
            "build": [
                [
                    Write(file, jobs.replace("STATUS", "done")),
                    Write("lopen.loop.done", "done"),
                    ENDED,
                ]
            ],
        }
        cousin = VirtualRuntime(
            tmp_path,
            sessions,
            files={
                "PLAN.PROMPT.md": "Plan.",
                "BUILD.PROMPT.md": "Build.",
                "docs/requirements/bread/SPECIFICATION.md": "# Bread\n\n## REQ-1\n\nBake.\n",
            },
        )
        story = cousin.plan_build(verify_after_iteration=False).check()
        assert ("complete", 2) == (
            story.one(ev.PlanBuildEnded).reason,
            story.one(ev.PlanBuildEnded).iterations,
        )


def _status(deliverable: str) -> Use:
    return Use("set_deliverable_status", {"deliverableId": deliverable, "status": "passed"})


class TestTheProject:
    def test_git_repository(self, tmp_path: Path) -> None:
        """With `git` the project is a real repository with the loop's commits."""
        page = [Write("web/page.html", "<h1>"), *DONE]
        cousin = VirtualRuntime(
            tmp_path / "project",
            runs(page),
            config=Config(commit=True),
            files={".specs/page.md": "A blue page.", "README.md": "Mine"},
            git=True,
        )
        story = cousin.run(focus="the page").check()
        assert "The page" == story.one(ev.CommitPerformed).message
        assert "The page\nBegin" == cousin.git("log", "--format=%s")
        assert "web/page.html" == cousin.git("show", "--name-only", "--format=", "HEAD")
        assert ["README.md", "web/page.html"] == [p for p in cousin.paths() if p[0] != "."]
        with pytest.raises(AssertionError, match="git nonsense: git: 'nonsense' is not"):
            cousin.git("nonsense")

    def test_real_commands(self, tmp_path: Path) -> None:
        """A command without a given result is run and takes no virtual time."""
        page = [Write("page.html", "<h1>"), *DONE]
        cousin = VirtualRuntime(tmp_path, runs(page), config=Config(check_command="cat page.html"))
        story = cousin.run(focus="the page").check()
        assert [1, 0] == [event.exit_code for event in story.of(ev.CheckCommandOutput)]
        assert ("<h1>", 0) == (story.of(ev.CheckCommandOutput)[1].output, story.ended_at)
        assert ["cat page.html"] * 2 == cousin.commands.ran

    def test_real_agent(self, tmp_path: Path) -> None:
        """An agent with a process also runs in virtual time."""
        scenario = tmp_path / "scenario.toml"
        scenario.write_text('[[planning]]\n[[planning.steps]]\nsay = "<SPEC_ISSUE>?</SPEC_ISSUE>"')
        story = VirtualRuntime(tmp_path / "project", ScriptedAgent(scenario)).run(focus="it")
        assert ("LoopSpecIssue", None) == (story.tags(ev.LoopPhaseEvent)[-1], story.error)

    def test_project_configuration(self, tmp_path: Path) -> None:
        """Without `config` the project's own files apply."""
        files = {".cuggino.json": '{"specsPath": "docs", "maxIterations": 3}'}
        cousin = VirtualRuntime(tmp_path, runs(DONE), files=files)
        assert cousin.run(focus="it").events[0] == ev.IterationStart(iteration=1, max_iterations=3)
        assert (tmp_path / "docs").is_dir()

    def test_failed_preflight(self, tmp_path: Path) -> None:
        """The loops check the project as usual, and their error is part of the story."""
        story = VirtualRuntime(tmp_path, runs(DONE)).deliver()
        assert isinstance(story.error, ConfigError)
        with pytest.raises(ConfigError, match=r"SPEC.md not found") as caught:
            story.check()
        assert ["the story was\n           0 s  failed with " + repr(story.error)] == (
            caught.value.__notes__
        )

    def test_run_resumes_in_another_runtime(self, tmp_path: Path) -> None:
        """An unfinished run is resumed by another runtime at the same time."""
        clock = VirtualClock()
        first = VirtualRuntime(tmp_path, runs([Wait("10m"), *DONE]), clock=clock)
        left = first.run(focus="the page", until="5m")
        assert ("ImplementingStart", None) == (left.tags()[-1], left.ended_at)
        second = VirtualRuntime(tmp_path, runs([Wait("2m"), *DONE]), clock=clock)
        story = second.resume().check()
        assert ("RunResumed", "LoopApproved", 420) == (
            story.tags()[0],
            story.tags()[-1],
            story.ended_at,
        )
        assert [] == [phase for phase in story.tags() if phase == "PlanningStart"]


class TestAgents:
    def test_acts_of_a_session(self, tmp_path: Path) -> None:
        """Each act emits the events of a real agent, at its time."""
        seen: list[SpawnOptions] = []
        session: list[Item] = [
            Say("Look."),
            Think("Hm."),
            Run("ls"),
            Use("Read", {"file_path": "a"}, output="text"),
            Wait(2),
            Write("$CUGGINO_PLAN_FILE", "# Plan"),
            Do(seen.append),
            Do(lambda options: (options.cwd / "later").touch()),
            ENDED,
        ]
        cousin = VirtualRuntime(tmp_path, {"planning": [session]})
        plan = tmp_path / "plan.md"
        options = SpawnOptions(
            prompt="Do it.", cwd=tmp_path, role="planning", env={"CUGGINO_PLAN_FILE": str(plan)}
        )
        story = cousin.play(cousin.agent.spawn(options))
        assert [
            (0, ev.AgentMessage(text="Look.")),
            (0, ev.Thinking(text="Hm.")),
            (0, ev.ToolCall(name="Bash", input={"command": "ls"}, id="call-1")),
            (0, ev.ToolResult(name="call-1", output="")),
            (0, ev.ToolCall(name="Read", input={"file_path": "a"}, id="call-2")),
            (0, ev.ToolResult(name="call-2", output="text")),
            (
                2,
                ev.ToolCall(
                    name="Write",
                    input={"file_path": "$CUGGINO_PLAN_FILE", "content": "# Plan"},
                    id="call-3",
                ),
            ),
            (2, ev.ToolResult(name="call-3", output=f"{plan} was written")),
            (2, ENDED),
        ] == story.timeline
        assert ("# Plan", [options]) == (cousin.read("plan.md"), seen)
        assert (tmp_path / "later").exists()

    def test_ended_session_does_nothing_more(self, tmp_path: Path) -> None:
        """Acts after the end of a session are not played, even at the same instant."""
        cousin = VirtualRuntime(tmp_path, {"planning": [[Say("one"), Write("late", ""), ENDED]]})
        session = cousin.agent.spawn(SpawnOptions(prompt="Do it.", cwd=tmp_path, role="planning"))
        assert [ev.AgentMessage(text="one")] == cousin.play(session.pipe(ops.take(1))).events
        cousin.clock.advance_to(cousin.clock.at("1h"))
        assert ([], 0) == (cousin.paths("late"), cousin.clock.pending)

    def test_too_many_sessions(self, tmp_path: Path) -> None:
        """A session beyond the scripted ones of its role is an error that explains it."""
        story = VirtualRuntime(tmp_path, runs()).run(focus="it")
        words = "the agent in memory has no session 1 of the role implementing: all are played"
        assert words in str(story.error)

    def test_invalid_act(self, tmp_path: Path) -> None:
        """A plain text in a session is rejected because it is ambiguous."""
        sessions: Any = {"planning": [["<SPEC_ISSUE>"]]}
        story = VirtualRuntime(tmp_path, sessions).run(focus="it")
        assert "'<SPEC_ISSUE>' is nothing that a session in memory could do" in str(story.error)

    def test_drawn_agents(self, tmp_path: Path) -> None:
        """Marbles of the runtime draw its agents, cold and hot, and record their subscriptions."""
        cousin = VirtualRuntime(tmp_path, agent := InMemoryAgent({}))
        t = cousin.marbles(
            p=ev.AgentMessage(text="<PLAN_COMPLETE>x</PLAN_COMPLETE>"),
            d=ev.AgentMessage(text="<DONE>x</DONE>"),
            y=ev.AgentMessage(text="<APPROVED>x</APPROVED>"),
        )
        plan, code, review = t.cold("- 10m p|"), t.hot("- 20m d|"), t.cold("y|")
        agent.runs = {
            "planning": [AgentRun(plan, plan="# Plan")],
            "implementing": [code],
            "reviewing": [review],
        }
        story = cousin.run(focus="it").check()
        t.check_subscriptions(plan, "^ 10m -!")
        t.check_subscriptions(code, "-- 10m ^ 598s -!")
        assert 1203 == story.ended_at
        t.check_released()


class TestPlaying:
    def test_custom_stream(self, tmp_path: Path) -> None:
        """Any stream can be played; foreign events are listed by their class."""
        cousin = VirtualRuntime(tmp_path, {})
        story = cousin.play(timer(HOUR))
        assert ([(HOUR, 0)], ["int"], 0) == (story.timeline, story.tags(), story.last)
        assert "            1h  0\n            1h  completed" == str(story)
        assert f"<Story of 1 events>\n{story}" == repr(story)

    def test_stream_is_unsubscribed(self, tmp_path: Path) -> None:
        """At `until` the stream is unsubscribed, or earlier when it has ended."""
        cousin = VirtualRuntime(tmp_path, {})
        t = cousin.marbles(a=1)
        agent = t.cold("-a")
        assert [1] == cousin.play(agent, until="1m").events
        t.check_subscriptions(agent, "^ 59s !")
        assert [] == cousin.play(never(), until="2m").events
        assert "nothing was seen" == str(cousin.play(never(), until="2m"))

    def test_story_reports_missing_events(self, tmp_path: Path) -> None:
        """Asking for exactly one event reports the actual number and all events."""
        story = VirtualRuntime(tmp_path, runs(DONE)).run(focus="it")
        with pytest.raises(AssertionError, match=r"(?s)there are 0 of BudgetWarning.*LoopApproved"):
            story.one(ev.BudgetWarning)
        with pytest.raises(AssertionError, match="there is no event"):
            _ = VirtualRuntime(tmp_path / "other", {}).play(never(), until=1).last

    def test_hanging_command_fails_the_test(self, tmp_path: Path) -> None:
        """A hanging command fails the test, is named and leaves nothing behind."""
        cousin = VirtualRuntime(
            tmp_path,
            runs(DONE),
            config=Config(check_command="sleep 1000"),
            clock=VirtualClock(patience=0.3),
        )
        with pytest.raises(StandsStill, match="cuggino-sh has not ended"):
            cousin.run(focus="it")

    def test_commands_need_results(self) -> None:
        """A command with an empty list of results is rejected."""
        with pytest.raises(ValueError, match="'make' has no result"):
            Commands({"make": []})


def test_a_command_is_obeyed_when_it_is_sent(tmp_path: Path) -> None:
    """A watch that waits for items ends as soon as a person stops it."""
    cousin = VirtualRuntime(tmp_path, runs(DONE))
    cousin.at("3h", lambda: cousin.runtime.send(StopAsked()))
    story = cousin.play(cousin.runtime.watch(), until="1d")
    assert story.error is not None
    assert 3 * HOUR == cousin.clock.elapsed
