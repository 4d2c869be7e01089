"""The transitions of the coding loop in virtual time, drawn as marbles."""

from __future__ import annotations

from pathlib import Path

import pytest
from reactivex import Observable, empty, of, throw

from cuggino.errors import ProcessError, WorkNotCommitted
from cuggino.events import CommitPerformed
from cuggino.stages import Commit
from cuggino.testing import AgentRun, no_leaks
from tests.loops.coding_loop import CodingLoop, drawn, marbles, tags


def test_a_whole_run(tmp_path: Path) -> None:
    """Plan, two tasks and the review follow each other, each agent gone before the next starts."""
    t = marbles()
    planner = t.cold("-a-c|")
    first, second = t.cold("-n-g--|"), t.cold("-d|")
    reviewer = t.cold("--y-s|")
    loop = CodingLoop(
        tmp_path, planning=[planner], implementing=[first, second], reviewing=[reviewer]
    )
    with no_leaks():
        t.check(loop.run(), "(IP)a--(CM)N----(GM)-(DV)---s($YL|)")
    t.check_subscriptions(planner, "^---!")
    t.check_subscriptions(first, "----^-----!")
    t.check_subscriptions(second, "----------^-!")
    t.check_subscriptions(reviewer, "------------^----!")
    loop.assert_released()


def test_agents_that_linger(tmp_path: Path) -> None:
    """An agent that lingers after its marker is terminated within `linger` seconds."""
    t = marbles()
    planner, worker, reviewer = t.cold("-c-a-a-a-a"), t.cold("d-----a"), t.cold("y---s--a")
    loop = CodingLoop(tmp_path, planning=[planner], implementing=[worker], reviewing=[reviewer])
    t.check(loop.run(linger=5), "(IP)-----(CM)----(DV)---s($YL|)")
    t.check_subscriptions(planner, "^-----!")
    t.check_subscriptions(worker, "------^----!")
    t.check_subscriptions(reviewer, "-----------^----!")


def test_a_round_that_is_sent_back(tmp_path: Path) -> None:
    """Requested changes start the next iteration, whose planner receives the marker's text."""
    t = marbles()
    loop = drawn(tmp_path, t, "-c| -i|", "-d|", "-r|")
    seen = t.record(loop.run())
    assert seen[:9] == t.parse("(IP)-(CM)-(DV)-(R2Q)")[:9]
    assert ["SpecIssue", "LoopSpecIssue"] == [value.tag for _, kind, value in seen[9:11]]
    assert [False, True] == ["redo" in prompt for prompt in loop.prompts("planning")]
    issues = list(loop.workspace.spec_issues.iterdir())
    assert ["unclear"] == [file.read_text() for file in issues]
    assert issues[0].name == seen[10][2].filename
    loop.assert_released()


def test_the_rounds_are_used_up(tmp_path: Path) -> None:
    """After the last iteration that is sent back the loop ends with the number of iterations."""
    t = marbles()
    t.events["I"] = t.events["I"].model_copy(update={"max_iterations": 1})
    loop = drawn(tmp_path, t, "c|", "d|", "r|")
    t.check(loop.run(max_iterations=1), "(IP)(CM)(DV)(RX|)")


class TestTasks:
    def test_slow_reviews_after_every_task(self, tmp_path: Path) -> None:
        """With `slow` an approval of unfinished work is followed by the next task."""
        t = marbles()
        loop = drawn(tmp_path, t, "c|", "g| d|", "y| y|")
        t.check(loop.run(slow=True), "(IP)(CM)(GV)(YM)(DV)(YL|)")
        assert [True, False] == [
            "not finished yet" in prompt for prompt in loop.prompts("reviewing")
        ]

    def test_slow_sends_back_at_once(self, tmp_path: Path) -> None:
        """With `slow`, changes requested after the first task start the next iteration."""
        t = marbles()
        loop = drawn(tmp_path, t, "c| -", "g|", "r|")
        t.check(loop.run(slow=True), "(IP)(CM)(GV)(R2Q)", dispose_at=9)

    def test_the_task_limit_goes_to_review(self, tmp_path: Path) -> None:
        """`max_tasks_per_plan` agents on one plan are followed by the review."""
        t = marbles()
        loop = drawn(tmp_path, t, "c|", "g| g| g|", "y|")
        t.check(loop.run(max_tasks_per_plan=2), "(IP)(CM)(GM)(GTV)(YL|)")

    def test_the_last_allowed_task_may_finish(self, tmp_path: Path) -> None:
        """A plan that is finished by its last allowed task has not reached the limit."""
        t = marbles()
        loop = drawn(tmp_path, t, "c|", "g| d|", "y|")
        t.check(loop.run(max_tasks_per_plan=2), "(IP)(CM)(GM)(DV)(YL|)")


class TestCommits:
    def test_each_task_is_committed_before_the_next_starts(self, tmp_path: Path) -> None:
        """Each task is committed without the specifications before the next agent starts."""
        t = marbles(k=Commit(hash="abc", message="one"))
        commit = t.cold("--k|")
        second = t.cold("-d|")
        loop = drawn(tmp_path, t, "c|", [t.cold("g|"), second], "y|", commits=[commit, empty()])
        t.check(loop.run(commit=True), "(IP)(CM)G--(KM)-(DV)(YL|)")
        assert [(Path(".specs"),)] * 2 == loop.repository.excluded
        t.check_subscriptions(commit, "--^--!")
        t.check_subscriptions(second, "-----^-!")
        assert ["one", "all"] == loop.repository.messages
        assert "`git diff --text base..HEAD`" in loop.prompts("reviewing")[0]

    @pytest.mark.parametrize(
        ("second", "end"), [(of(Commit("abc", "all")), "(YKL|)"), (empty(), "(YL|)")]
    )
    def test_a_failed_commit_is_made_up_for(
        self, tmp_path: Path, second: Observable[Commit], end: str
    ) -> None:
        """A commit that fails is an event; it is tried again before the run is approved."""
        t = marbles(K=CommitPerformed(iteration=1, commit_hash="abc", message="all"))
        loop = drawn(
            tmp_path, t, "c|", "d|", "y|", commits=[throw(ProcessError("git", "hook")), second]
        )
        t.check(loop.run(commit=True), f"(IP)(CM)(DFV){end}")
        assert ["all", "all"] == loop.repository.messages

    def test_a_run_whose_work_is_not_committed_is_not_approved(self, tmp_path: Path) -> None:
        """It fails after the review, with git's reason, and can be resumed."""
        t = marbles()
        loop = drawn(
            tmp_path, t, "c|", "d|", "y|", commits=[throw(ProcessError("git", "hook"))] * 2
        )
        seen = t.record(loop.run(commit=True))
        assert "Approved CommitFailed" == tags(seen[-3:])
        error = seen[-1][2]
        assert isinstance(error, WorkNotCommitted)
        assert ("the work is not committed: hook", 1) == (error.message, error.code)

    def test_a_later_commit_makes_up_for_a_failed_one(self, tmp_path: Path) -> None:
        """The commit of the next task holds the work of both."""
        t = marbles(K=CommitPerformed(iteration=1, commit_hash="abc", message="all"))
        loop = drawn(
            tmp_path,
            t,
            "c|",
            "g| d|",
            "y|",
            commits=[throw(ProcessError("git", "hook")), of(Commit("abc", "all"))],
        )
        t.check(loop.run(commit=True), "(IP)(CM)(GFM)(DKV)(YL|)")

    def test_work_without_a_task_is_committed(self, tmp_path: Path) -> None:
        """An agent that changes something and emits `NO_MORE_WORK` leaves work to commit."""
        t = marbles(K=CommitPerformed(iteration=1, commit_hash="abc", message="nothing"))
        loop = drawn(
            tmp_path,
            t,
            "c|",
            "w|",
            "y|",
            commits=[of(Commit("abc", "nothing"))],
            fingerprints=["before", "after"],
        )
        t.check(loop.run(commit=True, progress_patience=3), "(IP)(CM)(WKV)(YL|)")

    def test_no_more_work_is_not_committed(self, tmp_path: Path) -> None:
        """`NO_MORE_WORK` goes to the review without a commit."""
        t = marbles()
        loop = drawn(tmp_path, t, "c|", "w|", "y|")
        t.check(loop.run(commit=True), "(IP)(CM)(WV)(YL|)")
        assert [] == loop.repository.messages

    def test_without_commit_the_repository_is_left_alone(self, tmp_path: Path) -> None:
        """Without `commit` nothing is committed and the reviewer gets no baseline."""
        t = marbles()
        loop = drawn(tmp_path, t, "c|", "d|", "y|")
        t.check(loop.run(), "(IP)(CM)(DV)(YL|)")
        assert [] == loop.repository.messages
        assert "git diff" not in loop.prompts("reviewing")[0]


class TestReview:
    def test_a_persons_review_goes_to_the_first_planner_alone(self, tmp_path: Path) -> None:
        """The first planner receives `review`; the second receives the reviewer's."""
        t = marbles()
        loop = drawn(
            tmp_path, t, "c| i|", "d|", [AgentRun(t.cold("r|"), review="the file's words")]
        )
        t.record(loop.run(review="by a person"))
        first, second = loop.prompts("planning")
        assert ("by a person" in first, "the file's words" in first) == (True, False)
        assert ("by a person" in second, "the file's words" in second) == (False, True)
        assert "redo" not in second
        assert not any(
            "by a person" in o for o in loop.prompts("implementing") + loop.prompts("reviewing")
        )
