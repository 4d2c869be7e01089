"""The virtual runtime: whole loops with waits of hours, in a project with real files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuggino import Config, events as ev
from cuggino.agents.base import Role
from cuggino.errors import AgentFailed, AgentStalled, ConfigError, LoopError, QuotaExceeded
from cuggino.testing import (
    CommandResult,
    InMemoryAgent,
    Say,
    ScriptedAgent,
    Use,
    VirtualClock,
    VirtualRuntime,
    Wait,
    Write,
)
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

    def test_retries_back_off(self, tmp_path: Path) -> None:
        """An overloaded service is retried after 5, 10 and 20 seconds, plus or minus a fifth."""
        crash = [AgentFailed("overloaded", reason="overloaded")]
        cousin = VirtualRuntime(
            tmp_path, runs(crash, crash, crash, DONE), config=Config(max_retries=3)
        )
        story = cousin.run(focus="the page").check()
        pauses = [event.retry_in for event in story.of(ev.AgentRetry)]
        assert pauses == pytest.approx([5, 10, 20], rel=0.2)
        assert sum(pauses) == pytest.approx(story.ended_at or 0, abs=0.01)

    def test_silent_agent(self, tmp_path: Path) -> None:
        """A silent agent is nudged, replaced, then abandoned, after a quarter of an hour each."""
        silent = [Say("I begin."), Wait("3h")]
        agent = InMemoryAgent(runs(silent, silent, silent), can_resume=True)
        story = VirtualRuntime(tmp_path, agent, config=Config(idle_timeout=900)).run(focus="it")
        assert ([900], [1800], 2700) == (
            story.times(ev.AgentNudged),
            story.times(ev.AgentReplaced),
            story.ended_at,
        )
        assert isinstance(story.error, LoopError)
        assert isinstance(story.error.cause, AgentStalled)

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
                [Wait("10m"), _status("nobody"), _status("D1"), Wait("1m"), Use("list"), ENDED],
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
