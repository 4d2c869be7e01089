"""Pushes of the coding loop in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, empty, of, throw

from cuggino.errors import ProcessError
from cuggino.events import PushFailed, PushPerformed
from cuggino.stages import Commit
from cuggino.testing import Marbles
from tests.loops.coding_loop import CodingLoop, drawn, marbles, tags

COMMIT = Commit(hash="abc", message="one")


def push_marbles() -> Marbles:
    """U is a push that was performed, E one that failed."""
    return marbles(
        U=PushPerformed(iteration=1, commit_hash="abc", remote="origin/main"),
        E=PushFailed(iteration=1, message="rejected"),
    )


def loop(
    t: Marbles, folder: Path, *, commits: list[Observable[Any]], pushes: list[Observable[Any]]
) -> CodingLoop:
    """Two tasks, the first ends with PROGRESS, the second with DONE; then an approval."""
    return drawn(folder, t, "c|", "g| d|", "y|", commits=commits, pushes=pushes)


def test_a_push_after_each_commit(tmp_path: Path) -> None:
    """Each commit is pushed before the next agent starts."""
    t = push_marbles()
    push = t.cold("--|")
    played = loop(t, tmp_path, commits=[of(COMMIT), of(COMMIT)], pushes=[push, push])
    stream = played.run(commit=True, push="origin/topic/page")
    assert (
        "ImplementingStart Progress CommitPerformed PushPerformed "
        "ImplementingStart Done CommitPerformed PushPerformed ReviewingStart"
    ) in tags(t.record(stream))
    assert [("origin", "topic/page")] * 2 == played.repository.pushed_to
    t.check_subscriptions(push, "--^-!", "-----^-!")


def test_a_failed_push_goes_on(tmp_path: Path) -> None:
    """A failed push is reported, and the loop continues to its approval."""
    t = push_marbles()
    rejected = throw(ProcessError("git", "rejected"))
    played = loop(t, tmp_path, commits=[of(COMMIT), empty()], pushes=[rejected])
    t.check(
        played.run(commit=True, push="origin/main"),
        "(IP)(CM)(GKEM)(DV)(YL|)",
    )
    played.assert_released()


def test_no_push_without_a_commit(tmp_path: Path) -> None:
    """A task with nothing to commit, or whose commit failed, pushes nothing."""
    t = push_marbles()
    failed = throw(ProcessError("git", "hook"))
    played = loop(t, tmp_path, commits=[failed, empty()], pushes=[])
    assert tags(t.record(played.run(commit=True, push="origin/main"))).endswith("LoopApproved")
    assert 2 == len(played.repository.messages)
    assert [] == played.repository.pushed_to


def test_a_commit_that_is_made_up_for_is_pushed(tmp_path: Path) -> None:
    """The commit that succeeds at the end is pushed before the approval."""
    t = push_marbles()
    failed = throw(ProcessError("git", "hook"))
    played = loop(t, tmp_path, commits=[failed, failed, of(COMMIT)], pushes=[empty()])
    story = tags(t.record(played.run(commit=True, push="origin/main")))
    assert story.endswith("Approved CommitPerformed PushPerformed LoopApproved")


@pytest.mark.parametrize("options", [{"commit": True}, {"push": "origin/main"}])
def test_no_push_unless_both_are_asked_for(tmp_path: Path, options: dict[str, Any]) -> None:
    """Without `push` nothing is pushed, and without `commit` there is nothing to push."""
    t = push_marbles()
    played = loop(t, tmp_path, commits=[of(COMMIT), of(COMMIT)], pushes=[])
    assert tags(t.record(played.run(**options))).endswith("LoopApproved")
    assert [] == played.repository.pushed_to


def test_disposal_ends_the_push(tmp_path: Path) -> None:
    """A loop that is disposed while it pushes releases the push and the workspace."""
    t = push_marbles()
    push = t.cold("-" * 20)
    played = loop(t, tmp_path, commits=[of(COMMIT)], pushes=[push])
    t.record(played.run(commit=True, push="origin/main"), dispose_at=7)
    t.check_subscriptions(push, "--^----!")
    played.assert_released()
