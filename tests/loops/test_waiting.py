"""`<WAITING>` in each loop, in virtual time: the session ends, the loop waits, it is resumed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cuggino import Config, events as ev
from cuggino.agents.base import Role
from cuggino.errors import AgentFailed, ConfigError, Interrupted
from cuggino.loops.frame.run import MOST_WAITS
from cuggino.storage import answer_issue
from cuggino.testing import (
    AgentRun,
    CommandResult,
    Do,
    InMemoryAgent,
    Say,
    Story,
    Use,
    VirtualClock,
    VirtualRuntime,
    Wait,
    Write,
)
from tests.git_project import without_comparisons
from tests.loops.plan_build_loop import PROMPTS
from tests.testing.one_task import APPROVED, DONE, HOUR, PLANNED, runs

ID = "session-1"
ENDED = ev.SessionEnded(outcome="completed", cost_usd=0.5, session_id=ID)
UNTIL_TWO = "time 1970-01-01 02:00Z"


def waits(what: str = UNTIL_TWO, *before: Any) -> list[Any]:
    """Return a session that works a minute, then waits."""
    return [Wait("1m"), *before, Say(f"I wait.\n\n<WAITING>{what}</WAITING>"), ENDED]


def resumable(sessions: Mapping[Role, Any]) -> InMemoryAgent:
    return InMemoryAgent(sessions, can_resume=True)


def ended(story: Story[Any]) -> list[tuple[str, str]]:
    return [(wait.outcome, wait.answer) for wait in story.of(ev.WaitingEnded)]


class TestRun:
    def test_the_same_session_is_resumed(self, tmp_path: Path) -> None:
        """The implementer waits two hours without a session or a cost, and learns what happened."""
        agent = resumable(runs(waits(), [*DONE, ENDED]))
        story = VirtualRuntime(tmp_path, agent).run(focus="the page").check()
        assert ([60.0], [2 * HOUR]) == (
            story.times(ev.WaitingStarted),
            story.times(ev.WaitingEnded),
        )
        first, resumed = agent.sessions("implementing")
        assert (None, ID, None) == (
            first.resume_session_id,
            resumed.resume_session_id,
            resumed.session_id,
        )
        assert resumed.prompt.startswith("You waited for 1970-01-01 02:00. It has happened, after")
        assert first.turn == resumed.turn
        assert 1.0 == sum(cost.cost_usd or 0 for cost in story.of(ev.StageCost))
        assert "LoopApproved" == story.tags()[-1]

    @pytest.mark.parametrize("can_resume", [True, False])
    def test_a_session_that_cannot_be_resumed(self, can_resume: bool, tmp_path: Path) -> None:
        """Not at all, or forgotten: a fresh one gets its task, the last words, what happened."""
        forgotten = [AgentFailed("no such session", reason="bad_request")]
        turns = [waits(), *[forgotten] * can_resume, DONE]
        agent = InMemoryAgent(runs(*turns), can_resume=can_resume)
        story = VirtualRuntime(tmp_path, agent).run(focus="the page").check()
        first, *refused, fresh = agent.sessions("implementing")
        assert [ID] * can_resume == [options.resume_session_id for options in refused]
        assert (None, "LoopApproved") == (fresh.resume_session_id, story.tags()[-1])
        assert fresh.prompt.startswith(first.prompt)
        words = ("> I wait.", f"> <WAITING>{UNTIL_TWO}</WAITING>", "You waited for 1970-01-01")
        assert all(part in fresh.prompt for part in words)

    def test_a_reviewer_keeps_its_review(self, tmp_path: Path) -> None:
        """What a reviewer wrote before it waited is there when it goes on."""
        review = "## Required by the specification\n\n- `a.py:1`: wrong\n"
        seen: list[str] = []

        def look(options: Any) -> None:
            seen.append(Path(options.env["CUGGINO_REVIEW_FILE"]).read_text())

        sessions: dict[Role, list[Any]] = {
            "planning": [PLANNED, PLANNED],
            "implementing": [DONE, DONE],
            "reviewing": [
                AgentRun(waits(), review=review),
                [Do(look), Say("<REQUEST_CHANGES>wrong</REQUEST_CHANGES>")],
                APPROVED,
            ],
        }
        story = VirtualRuntime(tmp_path, resumable(sessions)).run(focus="the page").check()
        assert ([review], "LoopApproved") == (seen, story.tags()[-1])

    @pytest.mark.parametrize(
        ("what", "reason"),
        [
            ("the build", "names no source; the first line has to be"),
            ("ci", "there is no CI to wait for"),
            ("file ../x", "../x is not in the project"),
        ],
    )
    def test_what_cannot_be_awaited(self, what: str, reason: str, tmp_path: Path) -> None:
        """The session goes on at once, and is told in one sentence why it cannot wait."""
        agent = resumable(runs(waits(what), DONE))
        project = VirtualRuntime(tmp_path, agent)
        project.runtime = project.runtime.replace(ci=NoPullRequest())
        story = project.run(focus="the page").check()
        assert reason in story.one(ev.WaitingRefused).reason
        assert ([], [60.0]) == (story.times(ev.WaitingStarted), story.times(ev.WaitingRefused))
        assert reason in agent.sessions("implementing")[1].prompt

    def test_a_question(self, tmp_path: Path) -> None:
        """The answer of a person reaches the agent that asked, and voids no approval."""
        agent = resumable(runs(waits("person\nRed or blue?"), DONE))
        project = VirtualRuntime(tmp_path, agent)
        project.at("1h", lambda: answered(project, "Red"))
        story = project.run(focus="the page").check()
        assert [("happened", "Red")] == ended(story)
        assert "the answer:\n\nRed\n\n" in agent.sessions("implementing")[1].prompt
        assert ([], 1) == (story.of(ev.SpecsChanged), len(story.of(ev.IterationStart)))

    def test_an_agent_that_waits_for_ever(self, tmp_path: Path) -> None:
        """After twenty waits in a stage, the marker is text, and the agent has to end it."""
        again = [waits("time 1970-01-01 00:00Z") for _ in range(MOST_WAITS + 1)]
        agent = resumable(runs(*again, DONE))
        story = VirtualRuntime(tmp_path, agent).run(focus="the page").check()
        assert MOST_WAITS == len(story.of(ev.WaitingEnded))
        assert story.one(ev.AgentNudged).no_marker
        assert "LoopApproved" == story.tags()[-1]

    def test_an_agent_that_does_not_learn(self, tmp_path: Path) -> None:
        """After three refusals in a stage, the agent has to end it."""
        agent = resumable(runs(*[waits("the build")] * 4, DONE))
        story = VirtualRuntime(tmp_path, agent).run(focus="the page").check()
        assert 3 == len(story.of(ev.WaitingRefused))
        assert story.one(ev.AgentNudged).no_marker

    @pytest.mark.parametrize("second", [61, 600, 2 * HOUR - 1])
    def test_killed_and_resumed(self, second: float, tmp_path: Path) -> None:
        """A run that is killed while it waits goes on waiting for the same, without a session."""
        clock, agent = VirtualClock(), resumable(runs(waits(), DONE))
        VirtualRuntime(tmp_path, agent, clock=clock).run(focus="it", until=second)
        again = resumable({"implementing": [DONE], "reviewing": [APPROVED]})
        story = VirtualRuntime(tmp_path, again, clock=clock).resume().check()
        assert ([second], [2 * HOUR]) == (
            story.times(ev.WaitingStarted),
            story.times(ev.WaitingEnded),
        )
        assert [ID, None] == [options.resume_session_id for options in again.spawned]
        assert "LoopApproved" == story.tags()[-1]

    @pytest.mark.parametrize("now", [False, True])
    def test_stop(self, now: bool, tmp_path: Path) -> None:
        """A stop ends a wait at once, as no agent is at work; the run can be resumed."""
        project = VirtualRuntime(tmp_path, resumable(runs(waits(), DONE)))
        project.at("1h", lambda: project.runtime.send(ev.StopAsked(now=now)))
        story = project.run(focus="the page")
        assert isinstance(story.error, Interrupted)
        assert HOUR == pytest.approx(story.ended_at, abs=1)

    def test_a_pause_keeps_the_wait(self, tmp_path: Path) -> None:
        """A pause takes effect when the wait is over, before the session is resumed."""
        project = VirtualRuntime(tmp_path, resumable(runs(waits(), DONE)))
        project.at("1h", lambda: project.runtime.send(ev.PauseAsked()))
        project.at("3h", lambda: project.runtime.send(ev.ContinueAsked()))
        story = project.run(focus="the page").check()
        assert [2 * HOUR] == story.times(ev.WaitingEnded) == story.times(ev.RunPaused)
        assert 3 * HOUR == pytest.approx(story.times(ev.PauseEnded)[0], abs=1)


class TestPolling:
    POLL = Use("Bash", {"command": "sleep 600; gh pr checks"}, output="pending")

    def test_an_agent_that_polls_is_told_once(self, tmp_path: Path) -> None:
        """The third time, whatever came out, it is told to wait; after that it is left alone."""
        poll = [self.POLL, Wait("10m")]
        agent = resumable(runs([*poll, *poll, *poll, *DONE], [*poll, *poll, *poll, *DONE]))
        story = VirtualRuntime(tmp_path, agent).run(focus="the page").check()
        nudged = story.one(ev.AgentNudged)
        assert (True, "Bash", 3) == (nudged.polling, nudged.tool, nudged.repeated)
        assert [1200.0] == story.times(ev.AgentNudged)
        assert "<WAITING>" in agent.sessions("implementing")[1].prompt

    @pytest.mark.parametrize(
        "commands",
        [
            ["sleep 2; curl x"] * 4,
            ["make test"] * 4,
            ["sleep 600; a", "sleep 600; b", "sleep 600; c", "sleep 600; d"],
            ["sleep 600; a"] * 2,
        ],
    )
    def test_what_is_no_poll(self, commands: list[str], tmp_path: Path) -> None:
        """Short sleeps, commands without one, and different commands are work."""
        calls = [Use("Bash", {"command": command}) for command in commands]
        agent = resumable(runs([*calls, *DONE]))
        story = VirtualRuntime(tmp_path, agent).run(focus="the page").check()
        assert [] == story.of(ev.AgentNudged)

    def test_a_planner_may_poll(self, tmp_path: Path) -> None:
        """A role that cannot wait is not told to."""
        sessions = runs(DONE)
        plan = AgentRun(
            [*[self.POLL] * 4, Say("<PLAN_COMPLETE>x</PLAN_COMPLETE>")], plan="# Plan\n"
        )
        story = VirtualRuntime(tmp_path, resumable({**sessions, "planning": [plan]})).run(
            focus="the page"
        )
        assert [] == story.check().of(ev.AgentNudged)


JOBS = "docs/requirements/jobs-to-be-done.json"


def job(status: str) -> Write:
    text = '{"jobs": [{"id": "J1", "requirementCode": "REQ-1", "description": "bake", "status": '
    return Write(JOBS, f'{text}"{status}", "priority": 1}}]}}')


class TestOtherLoops:
    def test_watch(self, tmp_path: Path) -> None:
        """An item of a watch waits; the watch goes on with it, and then with the next one."""
        sessions: dict[Role, list[Any]] = {
            "planning": [PLANNED, PLANNED],
            "implementing": [waits(), DONE, DONE],
            "reviewing": [APPROVED, APPROVED],
        }
        project = VirtualRuntime(tmp_path, resumable(sessions))
        for name in ("001.md", "002.md"):
            project.write(f".cuggino/backlog/{name}", "# A page\n")
        story = project.watch(until="5h")
        assert [2 * HOUR] == story.times(ev.WaitingEnded)
        assert ["001.md", "002.md"] == [it.filename for it in story.of(ev.WatchItemCompleted)]

    def test_a_slot_that_waits(self, tmp_path: Path) -> None:
        """While the item of one slot waits, the other slot works through the rest."""
        busy = [Wait("10m"), *DONE]
        sessions: dict[Role, list[Any]] = {
            "planning": [PLANNED] * 2,
            "implementing": [waits(), busy, DONE],
            "reviewing": [APPROVED] * 2,
        }
        project = VirtualRuntime(
            tmp_path / "project",
            resumable(sessions),
            config=Config(slots=2, commit=True, check_command="true"),
            commands={"true": CommandResult("")},
            git=True,
        )
        project.runtime = without_comparisons(project.runtime)
        for name in ("001.md", "002.md"):
            project.write(f".cuggino/backlog/{name}", "# A page\n")
        story = project.watch(until="5h")
        began = story.one(ev.WaitingStarted)
        names = [done.filename for done in story.of(ev.WatchItemCompleted)]
        times = story.times(ev.WatchItemCompleted)
        assert began.item == names[-1]
        assert 2 * HOUR == pytest.approx(times[-1], abs=60)
        assert all(when < HOUR for when in times[:1])

    def test_deliver(self, tmp_path: Path) -> None:
        """A coding session waits by its last message, and is resumed as the same session."""
        wanted = {"id": "D1", "description": "a page", "acceptanceCriteria": ["it is blue"]}
        passed = Use("set_deliverable_status", {"deliverableId": "D1", "status": "passed"})
        sessions: dict[Role, list[Any]] = {
            "initializer": [[Use("create_deliverable", {"deliverables": [wanted]}), ENDED]],
            "coding": [waits(), [passed, ENDED]],
        }
        agent = resumable(sessions)
        project = VirtualRuntime(tmp_path, agent, files={"SPEC.md": "A blue page."})
        story = project.deliver().check()
        assert "all_passed" == story.one(ev.DeliverEnded).reason
        assert ([2 * HOUR], 2) == (
            story.times(ev.WaitingEnded),
            story.one(ev.DeliverEnded).sessions,
        )
        first, resumed = agent.sessions("coding")
        assert ("<WAITING>" in first.prompt, ID) == (True, resumed.resume_session_id)
        assert resumed.prompt.startswith("You waited for 1970-01-01 02:00.")

    def test_plan_and_build(self, tmp_path: Path) -> None:
        """A build session waits; the iteration goes on with the same session."""
        sessions: dict[Role, list[Any]] = {
            "plan": [[job("open"), ENDED]],
            "build": [waits(), [job("done"), Write("lopen.loop.done", "done"), ENDED]],
        }
        agent = resumable(sessions)
        files = {"docs/requirements/page.md": "# A page\n", **PROMPTS}
        project = VirtualRuntime(tmp_path, agent, files=files)
        story = project.plan_build(verify_after_iteration=False).check()
        assert ("complete", 2) == (
            story.one(ev.PlanBuildEnded).reason,
            story.one(ev.PlanBuildEnded).iterations,
        )
        assert [2 * HOUR] == story.times(ev.WaitingEnded)
        assert [None, ID] == [options.resume_session_id for options in agent.sessions("build")]


class NoPullRequest:
    """CI of a branch without a pull request."""

    def found(self, until: ev.CiDone, cwd: Path) -> Any:
        raise ConfigError("there is no CI to wait for")

    def outcome(self, until: ev.CiDone, cwd: Path) -> Any:
        raise AssertionError("nothing is asked")


def answered(project: VirtualRuntime, answer: str) -> None:
    workspace = project.runtime.workspace
    (issue,) = workspace.issues()
    specs = project.folder / ".specs"
    answer_issue(workspace, issue, answer, specs=specs, at=project.clock.now)
