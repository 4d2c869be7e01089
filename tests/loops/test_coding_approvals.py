"""Approvals that something contradicts, and forgotten markers, in the coding loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.errors import AgentFailed, LoopError
from cuggino.testing import AgentRun, Marbles
from tests.loops.coding_loop import CodingLoop, drawn, marbles, tags

FINDINGS = "BLOCKING: login is missing"
BOXES = "# Plan\n\n- [ ] one\n- [ ] two\n"


def loop_with(folder: Path, t: Marbles, *reviews: Any, plan: str = "", **given: Any) -> CodingLoop:
    """Return a loop with one plan, one task and these reviewing sessions."""
    planning: Any = [AgentRun(t.cold("c|"), plan=plan)] if plan else "c|"
    sessions = [t.cold(one) if isinstance(one, str) else one for one in reviews]
    return drawn(folder, t, planning, "d|", sessions, **{"can_resume": True, **given})


def questions(seen: list[Any]) -> list[tuple[str, ...]]:
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
        ((reason,),) = questions(seen)
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
        [
            ("y-k|", "exit code 1"),
            ("y-f|", "ended with an error"),
            ("y-#", "ended with an error"),
        ],
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
        assert objection in questions(seen)[0][0]
        assert objection in requested(seen)[0]
        assert 1 == len(loop.agent.sessions("reviewing"))

    def test_an_agent_that_cannot_resume_is_not_asked(self, tmp_path: Path) -> None:
        """Changes are requested at once."""
        t = marbles()
        loop = loop_with(tmp_path, t, "y-a-s|", can_resume=False)
        seen = t.record(loop.run(max_iterations=1))
        assert "ApprovalQuestioned StageCost RequestChanges LoopMaxIterations" in tags(seen)

    def test_the_last_of_several_approvals_counts(self, tmp_path: Path) -> None:
        """Text between two approvals is not after the last word."""
        t = marbles()
        seen = t.record(loop_with(tmp_path, t, "y-a-y-s|").run())
        assert [] == questions(seen)
        assert tags(seen).endswith("Approved LoopApproved")

    def test_a_message_of_a_person_voids_it(self, tmp_path: Path) -> None:
        """What the agent wrote before a person's message is no objection."""
        t = marbles(w=ev.Steered(text="also b", to="session"))
        seen = t.record(loop_with(tmp_path, t, "y-a-w-y-s|").run())
        assert [] == questions(seen)
        assert tags(seen).endswith("Approved LoopApproved")


class TestRecord:
    def test_a_review_file_with_findings(self, tmp_path: Path) -> None:
        """While the file is there, its text is the review, whatever the answer."""
        t = marbles()
        first = AgentRun(t.cold("y-s|"), review=FINDINGS)
        loop = loop_with(tmp_path, t, first, "y-s|")
        seen = t.record(loop.run(max_iterations=1))
        assert "review file has findings" in questions(seen)[0][0]
        assert [FINDINGS] == requested(seen)
        assert ".reviewing/review.md if" in loop.agent.sessions("reviewing")[1].prompt

    def test_a_review_file_that_is_emptied(self, tmp_path: Path) -> None:
        """A reviewer that takes its findings back approves."""
        t = marbles()
        first = AgentRun(t.cold("y-s|"), review=FINDINGS)
        again = AgentRun(t.cold("y-s|"), review="No findings.\n")
        seen = t.record(loop_with(tmp_path, t, first, again).run())
        assert tags(seen).endswith("Approved LoopApproved")

    def test_unticked_tasks(self, tmp_path: Path) -> None:
        """The reviewer is asked about them once; its clean answer counts."""
        t = marbles()
        loop = loop_with(tmp_path, t, "y-s|", "y-s|", plan=BOXES)
        seen = t.record(loop.run())
        assert [("2 tasks of the plan not ticked, and 1 session reported a task",)] == questions(
            seen
        )
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
    def test_honest_plans(self, tmp_path: Path, plan: str, work: str) -> None:
        """Tasks without a tick need no more than a session each that reported one."""
        t = marbles()
        planning: Any = [AgentRun(t.cold("c|"), plan=plan)]
        seen = t.record(drawn(tmp_path, t, planning, work, "y-s|").run())
        assert [] == questions(seen)
        assert tags(seen).endswith("Approved LoopApproved")

    def test_a_review_of_an_unfinished_plan(self, tmp_path: Path) -> None:
        """With `slow`, a task that is still to be done is no objection."""
        t = marbles()
        planning: Any = [AgentRun(t.cold("c|"), plan=BOXES + "- [ ] three\n")]
        seen = t.record(drawn(tmp_path, t, planning, "g| g| d|", "y| y| y|").run(slow=True))
        assert [] == questions(seen)
        assert tags(seen).endswith("Approved LoopApproved")


class TestForgotten:
    def test_work_counts_as_progress(self, tmp_path: Path) -> None:
        """New work of agents that gave no marker is committed, and the next task follows."""
        t = marbles()
        loop = drawn(
            tmp_path,
            t,
            "c|",
            "a| a| d|",
            "y|",
            fingerprints=["0", "1", "1", "2"],
        )
        seen = t.record(loop.run(progress_patience=3))
        assert "AgentReplaced AgentMessage StageInferred Progress ImplementingStart" in tags(seen)
        assert tags(seen).endswith("Approved LoopApproved")

    def test_no_work_is_an_error(self, tmp_path: Path) -> None:
        """The run ends with the words for a missing marker, and can be resumed."""
        t = marbles()
        loop = drawn(tmp_path, t, "c|", "a| a|", fingerprints=["0", "0"])
        *_, (_, kind, error) = t.record(loop.run(progress_patience=3))
        assert isinstance(error, LoopError)
        assert ("error", 1) == (kind, error.code)
        assert "ended without emitting a marker (last event: AgentMessage)" in error.message

    def test_a_plan_file_is_planned(self, tmp_path: Path) -> None:
        """A planner that wrote its plan has planned."""
        t = marbles()
        loop = drawn(tmp_path, t, "a| a|", "d|", "y|")
        seen = tags(t.record(loop.run()))
        assert "StageInferred PlanComplete ImplementingStart" in seen
        assert seen.endswith("Approved LoopApproved")

    def test_a_review_file_requests_changes(self, tmp_path: Path) -> None:
        """A reviewer that wrote findings has requested changes."""
        t = marbles()
        reviews: Any = [AgentRun(t.cold("a|"), review=FINDINGS), t.cold("a|")]
        seen = t.record(drawn(tmp_path, t, "c|", "d|", reviews).run(max_iterations=1))
        assert "StageInferred RequestChanges LoopMaxIterations" in tags(seen)
        assert [FINDINGS] == requested(seen)
