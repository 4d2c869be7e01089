"""Approvals in each loop, in virtual time: the run waits for a person, and costs nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cuggino import Config, events as ev
from cuggino.agents.base import Role
from cuggino.domain import Decision
from cuggino.errors import AgentFailed, BudgetExceeded, LoopError
from cuggino.storage import Issue, decide
from cuggino.testing import (
    AgentRun,
    CommandResult,
    InMemoryAgent,
    Marbles,
    Story,
    VirtualClock,
    VirtualRuntime,
    Wait,
)
from tests.git_project import without_comparisons
from tests.loops.coding_loop import CodingLoop, drawn, marbles, tags
from tests.testing.one_task import APPROVED, DONE, ENDED, HOUR, PLANNED, runs


@pytest.fixture
def t() -> Marbles:
    return marbles()


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
    made = VirtualRuntime(folder, agent, config=config, clock=clock, **extra)
    made.runtime = without_comparisons(made.runtime)
    return made


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


# -- approvals that something contradicts, and forgotten markers, in the coding loop


FINDINGS = "BLOCKING: login is missing"
BOXES = "# Plan\n\n- [ ] one\n- [ ] two\n"


def loop_with(folder: Path, t: Marbles, *reviews: Any, plan: str = "", **given: Any) -> CodingLoop:
    """Return a loop with one plan, one task and these reviewing sessions."""
    planning: Any = [AgentRun(t.cold("c|"), plan=plan)] if plan else "c|"
    sessions = [t.cold(one) if isinstance(one, str) else one for one in reviews]
    return drawn(folder, t, planning, "d|", sessions, **{"can_resume": True, **given})


def reasons(seen: list[Any]) -> list[tuple[str, ...]]:
    return [e.objections for _, _, e in seen if isinstance(e, ev.ApprovalQuestioned)]


def requested(seen: list[Any]) -> list[str]:
    return [e.content for _, _, e in seen if isinstance(e, ev.RequestChanges)]


class TestQuestioned:
    @pytest.mark.parametrize(
        ("review", "objection"),
        [
            ("y-a-s|", 'more text follows the approval: "working"'),
            ("y-s-a|", 'more text follows the approval: "working"'),
            ("m-s|", "contradicts itself"),
            ("q-s|", "introduced as a draft"),
            ("y-k|", "cut at the token limit"),
        ],
    )
    def test_a_clean_answer_counts(self, tmp_path: Path, review: str, objection: str) -> None:
        """The reviewer is asked in its session, after the event that lists the objections."""
        t = marbles(
            m=ev.AgentMessage(text="<APPROVED>NOT approved: 9 tests fail</APPROVED>"),
            q=ev.AgentMessage(text="I would write:\n<APPROVED>yes</APPROVED>"),
            k=ev.SessionEnded(outcome="completed", truncated=True),
        )
        loop = loop_with(tmp_path, t, review, "y-s|")
        seen = t.record(loop.run(max_iterations=1))
        ((reason,),) = reasons(seen)
        assert objection in reason
        assert tags(seen).endswith("StageCost Approved LoopApproved")
        assert "ApprovalQuestioned AgentMessage" not in tags(seen)
        first, asked = loop.agent.sessions("reviewing")
        assert first.session_id == asked.resume_session_id
        assert reason in asked.prompt

    @pytest.mark.parametrize(
        ("answer", "content"),
        [
            ("y-a-s|", "does not count: more text follows the approval"),
            ("a-s|", "does not count: more text follows the approval"),
            ("r-s|", "redo"),
            ("#", "does not count: more text follows the approval"),
        ],
    )
    def test_the_most_cautious_reading_counts(
        self, tmp_path: Path, answer: str, content: str
    ) -> None:
        """An answer that is not clean, or none, is a request for changes."""
        t = marbles(error=AgentFailed("crashed", reason="bad_request"))
        loop = loop_with(tmp_path, t, "y-a-s|", answer)
        seen = t.record(loop.run(max_iterations=1))
        (review,) = requested(seen)
        assert content in review
        assert tags(seen).endswith("RequestChanges LoopMaxIterations")
        assert 2 == len(loop.agent.sessions("reviewing"))

    @pytest.mark.parametrize(
        ("review", "objection"),
        [("y-k|", "exit code 1"), ("y-f|", "ended with an error"), ("y-#", "ended with an error")],
    )
    def test_a_failed_session_is_not_asked(
        self, tmp_path: Path, review: str, objection: str
    ) -> None:
        """A failure after the approval voids it at once."""
        t = marbles(
            k=ev.SessionEnded(outcome="completed", exit_code=1),
            f=ev.SessionEnded(outcome="failed"),
            error=AgentFailed("crashed", reason="crash"),
        )
        loop = loop_with(tmp_path, t, review)
        seen = t.record(loop.run(max_iterations=1))
        assert objection in reasons(seen)[0][0]
        assert objection in requested(seen)[0]
        assert 1 == len(loop.agent.sessions("reviewing"))

    def test_an_agent_that_cannot_resume_is_not_asked(self, tmp_path: Path, t: Marbles) -> None:
        """Changes are requested at once."""
        loop = loop_with(tmp_path, t, "y-a-s|", can_resume=False)
        seen = t.record(loop.run(max_iterations=1))
        assert "ApprovalQuestioned StageCost RequestChanges LoopMaxIterations" in tags(seen)

    def test_the_last_of_several_approvals_counts(self, tmp_path: Path, t: Marbles) -> None:
        """Text between two approvals is not after the last word."""
        seen = t.record(loop_with(tmp_path, t, "y-a-y-s|").run())
        assert [] == reasons(seen)
        assert tags(seen).endswith("Approved LoopApproved")

    def test_a_message_of_a_person_voids_it(self, tmp_path: Path) -> None:
        """What the agent wrote before a person's message is no objection."""
        t = marbles(w=ev.Steered(text="also b", to="session"))
        seen = t.record(loop_with(tmp_path, t, "y-a-w-y-s|").run())
        assert [] == reasons(seen)
        assert tags(seen).endswith("Approved LoopApproved")


class TestRecord:
    def test_a_review_file_with_findings(self, tmp_path: Path, t: Marbles) -> None:
        """While the file is there, its text is the review, whatever the answer."""
        first = AgentRun(t.cold("y-s|"), review=FINDINGS)
        loop = loop_with(tmp_path, t, first, "y-s|")
        seen = t.record(loop.run(max_iterations=1))
        assert "review file has findings" in reasons(seen)[0][0]
        assert [FINDINGS] == requested(seen)
        assert ".reviewing/review.md if" in loop.agent.sessions("reviewing")[1].prompt

    def test_a_review_file_that_is_emptied(self, tmp_path: Path, t: Marbles) -> None:
        """A reviewer that takes its findings back approves."""
        first = AgentRun(t.cold("y-s|"), review=FINDINGS)
        again = AgentRun(t.cold("y-s|"), review="No findings.\n")
        seen = t.record(loop_with(tmp_path, t, first, again).run())
        assert tags(seen).endswith("Approved LoopApproved")

    def test_unticked_tasks(self, tmp_path: Path, t: Marbles) -> None:
        """The reviewer is asked about them once; its clean answer counts."""
        loop = loop_with(tmp_path, t, "y-s|", "y-s|", plan=BOXES)
        seen = t.record(loop.run())
        assert [("2 tasks of the plan not ticked, and 1 session reported a task",)] == reasons(seen)
        assert tags(seen).endswith("Approved LoopApproved")

    @pytest.mark.parametrize(
        ("plan", "work"),
        [
            ("# Plan\n\n- [ ] one\n", "d|"),
            (BOXES, "g| d|"),
            ("# Plan\n\n- [x] one\n- [X] two\n", "d|"),
            ("# Plan\n\n```\n- [ ] a\n- [ ] b\n```\n", "d|"),
        ],
    )
    def test_honest_plans(self, tmp_path: Path, plan: str, work: str, t: Marbles) -> None:
        """Tasks without a tick need no more than a session each that reported one."""
        planning: Any = [AgentRun(t.cold("c|"), plan=plan)]
        seen = t.record(drawn(tmp_path, t, planning, work, "y-s|").run())
        assert [] == reasons(seen)
        assert tags(seen).endswith("Approved LoopApproved")

    def test_a_review_of_an_unfinished_plan(self, tmp_path: Path, t: Marbles) -> None:
        """With `slow`, a task that is still to be done is no objection."""
        planning: Any = [AgentRun(t.cold("c|"), plan=BOXES + "- [ ] three\n")]
        seen = t.record(drawn(tmp_path, t, planning, "g| g| d|", "y| y| y|").run(slow=True))
        assert [] == reasons(seen)
        assert tags(seen).endswith("Approved LoopApproved")


class TestForgotten:
    def test_work_counts_as_progress(self, tmp_path: Path, t: Marbles) -> None:
        """New work of agents that gave no marker is committed, and the next task follows."""
        loop = drawn(tmp_path, t, "c|", "a| a| d|", "y|", fingerprints=["0", "1", "1", "2"])
        seen = t.record(loop.run(progress_patience=3))
        assert "AgentReplaced AgentMessage StageInferred Progress ImplementingStart" in tags(seen)
        assert tags(seen).endswith("Approved LoopApproved")

    def test_no_work_is_an_error(self, tmp_path: Path, t: Marbles) -> None:
        """The run ends with the words for a missing marker, and can be resumed."""
        loop = drawn(tmp_path, t, "c|", "a| a|", fingerprints=["0", "0"])
        *_, (_, kind, error) = t.record(loop.run(progress_patience=3))
        assert isinstance(error, LoopError)
        assert ("error", 1) == (kind, error.code)
        assert "ended without emitting a marker (last event: AgentMessage)" in error.message

    def test_a_plan_file_is_planned(self, tmp_path: Path, t: Marbles) -> None:
        """A planner that wrote its plan has planned."""
        loop = drawn(tmp_path, t, "a| a|", "d|", "y|")
        seen = tags(t.record(loop.run()))
        assert "StageInferred PlanComplete ImplementingStart" in seen
        assert seen.endswith("Approved LoopApproved")

    def test_a_review_file_requests_changes(self, tmp_path: Path, t: Marbles) -> None:
        """A reviewer that wrote findings has requested changes."""
        reviews: Any = [AgentRun(t.cold("a|"), review=FINDINGS), t.cold("a|")]
        seen = t.record(drawn(tmp_path, t, "c|", "d|", reviews).run(max_iterations=1))
        assert "StageInferred RequestChanges LoopMaxIterations" in tags(seen)
        assert [FINDINGS] == requested(seen)
