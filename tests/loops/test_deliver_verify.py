"""Deliverables that are verified when all is passed, and the comparison with the specification."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.events import (
    DeliverablesListed,
    DeliverSessionRetry,
    DeliverSessionStarted,
    SessionEnded,
)
from tests.loops.deliver_loop import DeliverLoop, Statuses, Turn, Writes, crash, deliver_marbles

PENDING = {"a": "pending", "b": "pending"}
PASSED = {"a": "passed", "b": "passed"}


def checks(*ids: str, leaves: Statuses | str | None = None) -> Turn:
    """A session that verifies these."""
    return Turn(verifies=ids, leaves=leaves)


def test_each_is_verified(tmp_path: Path) -> None:
    """When all deliverables have passed, sessions verify each of them."""
    project = DeliverLoop(
        tmp_path, [Turn(leaves=PASSED), checks("a"), Turn(), checks("b")], PENDING
    )
    story = project.run(verify=True, model="m", plan_model="p")
    assert ["coding", "verify", "verify", "verify"] == story.instructions
    end = story.ended
    assert ("all_verified", 2, 2, 2) == (end.reason, end.verified, end.to_verify, end.passed)
    assert end.success
    assert not end.sync
    counts = [event.verified for event in story.of(DeliverablesListed)]
    assert [0, 1, 2] == list(dict.fromkeys(counts))
    assert {"m"} == {event.model for event in story.of(DeliverSessionStarted)}
    assert [1, 1, 2, 3] == [options.turn for options in project.agent.spawned]
    project.assert_released()


def test_a_refuted_one_is_worked_on_again(tmp_path: Path) -> None:
    """After a full verification pending deliverables are coded, then all are verified again."""
    refuted = {"a": "passed", "b": "pending"}
    turns = [checks("a", "b", leaves=refuted), Turn(leaves=PASSED), checks("a"), checks("a", "b")]
    project = DeliverLoop(tmp_path, [Turn(leaves=PASSED), *turns], PENDING)
    story = project.run(verify=True)
    assert ["coding", "verify", "coding", "verify", "verify"] == story.instructions
    assert ("all_verified", 2) == (story.ended.reason, story.ended.verified)
    assert (0.0, "b", "passed", "pending") in story.changes


def test_one_that_is_refuted_again_and_again(tmp_path: Path) -> None:
    """After `review_patience` refutations the loop stalls and names the deliverable."""
    refutes = checks("a", "b", leaves={"a": "passed", "b": "pending"})
    turns = [Turn(leaves=PASSED), refutes] * 3
    story = DeliverLoop(tmp_path, turns, PENDING).run(verify=True, review_patience=3)
    assert ["coding", "verify"] * 3 == story.instructions
    assert ("stalled", "b: failed verification 3 times") == (story.ended.reason, story.ended.error)
    assert not story.ended.success
    assert story.error is None


def test_without_patience_there_is_no_end(tmp_path: Path) -> None:
    """Without `review_patience` the loop continues up to the session limit."""
    refutes = checks("a", "b", leaves={"a": "passed", "b": "pending"})
    turns = [Turn(leaves=PASSED), refutes] * 5
    story = DeliverLoop(tmp_path, turns, PENDING).run(verify=True, max_sessions=10)
    assert ("max_iterations", 10) == (story.ended.reason, story.ended.sessions)


def test_a_pending_one_that_was_not_to_be_verified(tmp_path: Path) -> None:
    """A blocked one that the verifying session set to pending is worked on too."""
    start = {"a": "passed", "b": "blocked"}
    reopened = checks("a", leaves={"a": "passed", "b": "pending"})
    project = DeliverLoop(tmp_path, [reopened, Turn(leaves=PASSED), checks("a", "b")], start)
    story = project.run(verify=True)
    assert ["verify", "coding", "verify"] == story.instructions
    assert ("all_verified", 2, 2) == (story.ended.reason, story.ended.verified, story.ended.passed)


def test_all_blocked_after_the_verification(tmp_path: Path) -> None:
    """All blocked after a verification ends the loop as blocked, not as a success (AUT-001)."""
    blocked = checks("a", "b", leaves={"a": "blocked", "b": "blocked"})
    story = DeliverLoop(tmp_path, [blocked], PASSED).run(verify=True)
    assert ("all_blocked", 2) == (story.ended.reason, story.ended.blocked)
    assert not story.ended.success


def test_all_passed_at_the_start(tmp_path: Path) -> None:
    """With `verify` finished deliverables are verified even if there is nothing to code."""
    story = DeliverLoop(tmp_path, [checks("a", "b")], PASSED).run(verify=True)
    assert ["verify"] == story.instructions
    assert ("all_verified", 1) == (story.ended.reason, story.ended.sessions)


def test_ids_that_vanish(tmp_path: Path) -> None:
    """Deliverables that are deprecated or gone need not be verified any more."""
    gone = checks("a", leaves={"a": "passed", "b": "passed (deprecated)"})
    start = {**PASSED, "c": "passed"}
    story = DeliverLoop(tmp_path, [gone], start).run(verify=True)
    assert ("all_verified", 1, 1) == (story.ended.reason, story.ended.verified, story.ended.total)


def test_all_of_them_vanish(tmp_path: Path) -> None:
    """An empty status file counts as not verified: the loop continues with coding."""
    story = DeliverLoop(tmp_path, [Turn(leaves={}), Turn()], PASSED).run(
        verify=True, max_sessions=2
    )
    assert ["verify", "coding"] == story.instructions
    assert ("max_iterations", None) == (story.ended.reason, story.ended.verified)


def test_a_broken_status_file_while_verifying(tmp_path: Path) -> None:
    """A broken status file is not verified, even if all marks are present."""
    turns = [checks("a", "b", leaves="{"), Turn(leaves=PASSED)]
    story = DeliverLoop(tmp_path, turns, PASSED).run(verify=True)
    assert ["verify", "verify"] == story.instructions
    assert 1 == len(story.warnings)
    assert "all_verified" == story.ended.reason


def test_failures_while_verifying(tmp_path: Path) -> None:
    """A failed verifying session is followed by another one."""
    turns = [checks("a"), crash(), checks("b")]
    story = DeliverLoop(tmp_path, turns, PASSED).run(verify=True)
    assert ["verify"] * 3 == story.instructions
    assert 1 == len(story.of(DeliverSessionRetry))
    assert "all_verified" == story.ended.reason
    story = DeliverLoop(tmp_path / "b", [crash()] * 2, PASSED).run(verify=True, max_retries=1)
    assert ("max_retries_exceeded", 0, 2) == (
        story.ended.reason,
        story.ended.verified,
        story.ended.to_verify,
    )


def test_a_lost_file_of_what_is_verified(tmp_path: Path) -> None:
    """A lost file of verified marks is recreated before the next session."""
    t = deliver_marbles()
    turns = [Turn(stream=t.cold("-d|"), verifies=["a"]), checks("b"), checks("a")]
    project = DeliverLoop(tmp_path, turns, PASSED, t)

    def lose(*_: object) -> None:
        (file,) = project.workspace.wip.glob("*.verified.json")
        file.unlink()

    t.scheduler.schedule_absolute(4.0, lose)  # in the first pause
    story = project.run(verify=True, session_pause=5.0)
    assert ["verify"] * 3 == story.instructions
    assert "all_verified" == story.ended.reason


@pytest.mark.parametrize(
    ("most", "instructions"),
    [(1, ["coding"]), (2, ["coding", "verify"]), (3, ["coding", "verify", "coding"])],
)
def test_the_limit_of_sessions(most: int, instructions: list[str], tmp_path: Path) -> None:
    """The session limit applies in every phase; an unfinished verification is not a success."""
    turns = [
        Turn(leaves=PASSED),
        checks("a", "b", leaves={"a": "passed", "b": "pending"}),
        Turn(leaves=PASSED),
    ]
    story = DeliverLoop(tmp_path, turns, PENDING).run(verify=True, max_sessions=most)
    assert instructions == story.instructions
    assert "max_iterations" == story.ended.reason


def test_changes_of_marks_are_listed_as_they_come(tmp_path: Path) -> None:
    """A list with the verified deliverables is emitted when the folder changes."""
    t = deliver_marbles(W=Writes(PASSED))
    turn = Turn(stream=t.cold("-W--d|"), verifies=["a"])
    project = DeliverLoop(tmp_path, [turn], PASSED, t, t.hot("--!"))
    story = project.run(verify=True, max_sessions=1)
    listed = [(when, event.verified) for when, event in story.timed(DeliverablesListed)]
    assert [(0, 0), (0, 0), (2, 1), (5, 1)] == listed
    assert (1, 2) == (story.ended.verified, story.ended.to_verify)


# -- the workflow `sync`


def test_sync(tmp_path: Path) -> None:
    """One session compares, the next verify each active deliverable of any status."""
    after = {"a": "pending", "b": "passed", "c": "blocked", "d": "pending (deprecated)"}
    project = DeliverLoop(
        tmp_path, [Turn(leaves=after), checks("a", "b"), checks("c")], {"a": "pending"}
    )
    story = project.run(workflow="sync", model="m", plan_model="p")
    assert ["sync", "verify", "verify"] == story.instructions
    assert ["p", "m", "m"] == [event.model for event in story.of(DeliverSessionStarted)]
    end = story.ended
    assert ("all_verified", 3, 3, True) == (end.reason, end.verified, end.to_verify, end.sync)
    assert (1, 1, 3) == (end.passed, end.blocked, end.total)


@pytest.mark.parametrize("start", [PASSED, {"a": "blocked"}, None])
def test_sync_of_what_is_finished(start: Statuses | None, tmp_path: Path) -> None:
    """Neither all passed nor all blocked ends it, before or after a session (AUT-270)."""
    project = DeliverLoop(tmp_path, [Turn(leaves=PASSED), checks("a"), checks("b")], start)
    story = project.run(workflow="sync")
    assert ["sync", "verify", "verify"] == story.instructions
    assert "all_verified" == story.ended.reason


def test_sync_of_an_empty_project(tmp_path: Path) -> None:
    """Without a deliverable all are verified."""
    story = DeliverLoop(tmp_path, [Turn()]).run(workflow="sync")
    assert ("all_verified", 1, 0) == (
        story.ended.reason,
        story.ended.sessions,
        story.ended.to_verify,
    )


@pytest.mark.parametrize("failure", [crash(), Turn((SessionEnded(outcome="failed", num_turns=1),))])
def test_a_failed_comparison_is_repeated(failure: Turn, tmp_path: Path) -> None:
    """Only a comparison that has not failed is followed by the verification."""
    turns = [failure, failure, Turn(leaves={"a": "pending"}), checks("a")]
    story = DeliverLoop(tmp_path, turns, PENDING).run(workflow="sync")
    assert ["sync", "sync", "sync", "verify"] == story.instructions
    assert ("all_verified", 1) == (story.ended.reason, story.ended.to_verify)


def test_a_comparison_that_leaves_a_broken_file(tmp_path: Path) -> None:
    """A comparison that leaves a broken file is repeated."""
    turns = [Turn(leaves="{"), Turn(leaves=PASSED), checks("a", "b")]
    story = DeliverLoop(tmp_path, turns, PENDING).run(workflow="sync")
    assert ["sync", "sync", "verify"] == story.instructions
    assert ("all_verified", 2) == (story.ended.reason, story.ended.verified)


@pytest.mark.parametrize(("most", "verified"), [(1, 0), (2, 1)])
def test_the_limit_of_sessions_in_sync(most: int, verified: int, tmp_path: Path) -> None:
    """The session limit applies after the comparison and during verification."""
    story = DeliverLoop(tmp_path, [Turn(), checks("a")], PENDING).run(
        workflow="sync", max_sessions=most
    )
    assert ("max_iterations", verified, 2) == (
        story.ended.reason,
        story.ended.verified,
        story.ended.to_verify,
    )


def test_sync_leaves_what_it_refuted(tmp_path: Path) -> None:
    """A sync codes nothing: a verified deliverable may be pending."""
    story = DeliverLoop(tmp_path, [Turn(), checks("a", "b", leaves=PENDING)], PASSED).run(
        workflow="sync"
    )
    assert ["sync", "verify"] == story.instructions
    assert ("all_verified", 0) == (story.ended.reason, story.ended.passed)
