"""Approvals in each loop, in virtual time: the run waits for a person, and costs nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cuggino import Config, events as ev
from cuggino.agents.base import Role
from cuggino.domain import Decision
from cuggino.errors import BudgetExceeded
from cuggino.storage import Issue, decide
from cuggino.testing import CommandResult, InMemoryAgent, Story, VirtualClock, VirtualRuntime, Wait
from tests.testing.one_task import APPROVED, DONE, ENDED, HOUR, PLANNED, runs

YES = Decision("approved")
WORK = [*DONE, ENDED]


def sessions(count: int = 1) -> dict[Role, list[Any]]:
    """Return the sessions of so many iterations, each of which costs half a dollar."""
    return {
        "planning": [PLANNED] * count,
        "implementing": [WORK] * count,
        "reviewing": [APPROVED] * count,
    }


def project(folder: Path, agent: Any, *approve: str, **more: Any) -> VirtualRuntime:
    clock = more.pop("clock", None)
    extra = {name: more.pop(name) for name in ("git", "commands") if name in more}
    config = Config(approve=list(approve), **more)
    return VirtualRuntime(folder, agent, config=config, clock=clock, **extra)


def person(runtime: VirtualRuntime, *decisions: tuple[float, Decision]) -> list[str]:
    """Decide on what waits at these seconds; return what was asked."""
    workspace, asked = runtime.runtime.workspace, list[str]()

    def at(decision: Decision) -> Callable[..., None]:
        def act(*_: object) -> None:
            (issue,) = [one for one in workspace.issues() if one.is_approval]
            asked.append(issue.path.read_text())
            approves = decision.outcome == "approved"
            decide(workspace, issue, approves=approves, text=decision.text)

        return act

    for second, decision in decisions:
        runtime.clock.schedule_relative(second, at(decision))
    return asked


def open_approvals(runtime: VirtualRuntime) -> list[Issue]:
    return [issue for issue in runtime.runtime.workspace.issues() if issue.is_approval]


def questions(story: Story[Any]) -> list[str]:
    """Return the file of each question that a run has waited for."""
    untils = [started.until for started in story.of(ev.WaitingStarted)]
    return [until.issue for until in untils if isinstance(until, ev.PersonAnswers)]


class TestPlan:
    def test_it_is_approved(self, tmp_path: Path) -> None:
        """The run waits after the plan without a session, and then implements it."""
        runtime = project(tmp_path, InMemoryAgent(sessions()), "plan")
        asked = person(runtime, (2 * HOUR, YES))
        story = runtime.run(focus="the page").check()
        assert ("# Approve the plan? (the page)", True) == (
            asked[0].partition("\n")[0],
            "## Task 1" in asked[0],
        )
        (started, ended) = (story.times(ev.WaitingStarted), story.times(ev.WaitingEnded))
        assert ([0.0], True) == (started, 2 * HOUR <= ended[0] <= 2 * HOUR + 60)
        assert ended[0] <= story.times(ev.ImplementingStart)[0]
        assert "LoopApproved" == story.tags()[-1]

    def test_it_is_rejected(self, tmp_path: Path) -> None:
        """The next planner gets the plan and the reason, and its plan has to be approved, too."""
        agent = InMemoryAgent({**sessions(), "planning": [PLANNED, PLANNED]})
        runtime = project(tmp_path, agent, "plan")
        person(runtime, (60, Decision("rejected", "Smaller tasks.")), (HOUR, YES))
        story = runtime.run(focus="the page").check()
        prompt = agent.sessions("planning")[1].system_prompt or ""
        assert all(text in prompt for text in ("Smaller tasks.", "has rejected the plan", "Task 1"))
        assert (2, "LoopApproved") == (len(story.of(ev.IterationStart)), story.tags()[-1])

    def test_it_is_edited(self, tmp_path: Path) -> None:
        """The plan that a person has written replaces that of the agent, also in the report."""
        runtime = project(tmp_path, InMemoryAgent(sessions()), "plan")
        person(runtime, (60, Decision("approved", "# Plan\n\n## Task 1: mine")))
        story = runtime.run(focus="the page").check()
        plans = [plan.text for plan in story.of(ev.PlanWritten)]
        assert "# Plan\n\n## Task 1: mine" == plans[-1]

    @pytest.mark.parametrize(
        ("otherwise", "last"), [("reject", "LoopStalled"), ("approve", "LoopApproved")]
    )
    def test_nobody_decides(self, tmp_path: Path, otherwise: str, last: str) -> None:
        """After the deadline the run ends, or goes on if it is configured so."""
        more = {"approve_within": "8h", "approve_else": otherwise}
        runtime = project(tmp_path, InMemoryAgent(sessions()), "plan", **more)
        story = runtime.run(focus="the page").check()
        assert ([8 * HOUR], last) == (story.times(ev.WaitingEnded), story.tags()[-1])
        assert [] == open_approvals(runtime)

    def test_it_is_killed_while_it_waits(self, tmp_path: Path) -> None:
        """A resumed run waits for the same approval, which may have been given meanwhile."""
        clock = VirtualClock()
        first = project(tmp_path, InMemoryAgent(sessions()), "plan", clock=clock)
        first.run(focus="the page", until="1h")
        (issue,) = open_approvals(first)
        again = InMemoryAgent({**sessions(), "planning": []})
        decide(first.runtime.workspace, issue, approves=True)
        story = project(tmp_path, again, "plan", clock=clock).resume().check()
        assert ("LoopApproved", []) == (story.tags()[-1], again.sessions("planning"))
        assert [issue.name] == questions(story)


class TestLanding:
    def test_it_is_rejected(self, tmp_path: Path) -> None:
        """Approved work goes back to the planner with the reason; then it is approved."""
        agent = InMemoryAgent(sessions(2))
        runtime = project(tmp_path, agent, "landing")
        asked = person(runtime, (60, Decision("rejected", "No globals.")), (HOUR, YES))
        story = runtime.run(focus="the page").check()
        assert "No globals." in (agent.sessions("planning")[1].system_prompt or "")
        assert "Fine." in asked[0]
        assert (2, "LoopApproved") == (len(story.of(ev.IterationStart)), story.tags()[-1])

    def test_nothing_lands_before(self, tmp_path: Path) -> None:
        """In a slot, work that waits for an approval lands after it."""
        more = {"slots": 2, "commit": True, "check_command": "true"}
        runtime = project(
            tmp_path / "project",
            InMemoryAgent(sessions()),
            "landing",
            git=True,
            commands={"true": CommandResult("")},
            **more,
        )
        runtime.write(".cuggino/backlog/001.md", "# A page\n")
        asked = person(runtime, (HOUR, YES))
        story = runtime.watch(until="2h")
        assert "# Approve the work before it lands? (001.md)" == asked[0].partition("\n")[0]
        assert story.times(ev.WatchCandidate)[0] >= HOUR
        assert ["001.md"] == [it.filename for it in story.of(ev.WatchItemCompleted)]

    def test_an_item_for_which_nobody_decides(self, tmp_path: Path) -> None:
        """It is parked, as another attempt would only ask again."""
        runtime = project(tmp_path, InMemoryAgent(sessions()), "landing", approve_within="1h")
        runtime.write(".cuggino/backlog/001.md", "# A page\n")
        parked = runtime.watch(until="3h").one(ev.WatchItemParked)
        assert "not approved within 1h" in parked.reason


class TestSpending:
    def test_it_is_approved_once(self, tmp_path: Path) -> None:
        """Once the sum is spent, the next agent waits; approved once, it is not asked for again."""
        runtime = project(tmp_path, InMemoryAgent(sessions(2)), "spend:0.4")
        for name in ("001.md", "002.md"):
            runtime.write(f".cuggino/backlog/{name}", "# A page\n")
        asked = person(runtime, (HOUR, YES))
        story = runtime.watch(until="3h")
        assert "# Approve spending more than $0.40?" == asked[0].partition("\n")[0]
        assert "Spent so far: $0.50" in asked[0]
        assert (1, 2) == (len(story.of(ev.WaitingStarted)), len(story.of(ev.WatchItemCompleted)))

    def test_it_is_rejected(self, tmp_path: Path) -> None:
        """The run ends as at its budget; a resumed one asks again."""
        clock = VirtualClock()
        agent = InMemoryAgent(runs(WORK))
        runtime = project(tmp_path, agent, "spend:0.4", clock=clock)
        person(runtime, (60, Decision("rejected", "Enough.")))
        story = runtime.run(focus="the page")
        assert isinstance(story.error, BudgetExceeded)
        assert "you rejected spending more than $0.40: Enough." == story.error.message
        again = project(tmp_path, InMemoryAgent(sessions()), "spend:0.4", clock=clock)
        asked = person(again, (HOUR, YES))
        story = again.resume().check()
        assert (1, "LoopApproved") == (len(asked), story.tags()[-1])

    def test_two_items_share_a_question(self, tmp_path: Path) -> None:
        """Both items that reach the sum wait for the same answer."""
        busy = [Wait("10m"), *WORK]
        both = {**sessions(2), "implementing": [busy, busy]}
        more = {"slots": 2, "commit": True, "check_command": "true"}
        runtime = project(
            tmp_path / "project",
            InMemoryAgent(both),
            "spend:0.4",
            git=True,
            commands={"true": CommandResult("")},
            **more,
        )
        for name in ("001.md", "002.md"):
            runtime.write(f".cuggino/backlog/{name}", "# A page\n")
        asked = person(runtime, (HOUR, YES))
        story = runtime.watch(until="3h")
        names = questions(story)
        assert (1, 2, 1) == (len(asked), len(names), len(set(names)))
        assert 2 == len(story.of(ev.WatchItemCompleted))
