"""Backlog items that wait for their next attempt, in virtual time."""

from __future__ import annotations

from pathlib import Path

from cuggino.errors import LoopError
from tests.loops.watching import Watching

FAILED = LoopError("implementing", "the connection was lost")


def test_removing_a_paused_item_delays_no_other(tmp_path: Path) -> None:
    """Removing the item that was due first does not delay the next one."""
    watching = Watching(
        tmp_path, loops=[(5, FAILED), (5, FAILED), (1, "approved")], retry_seconds=600
    )
    watching.write(0, "001.md")
    watching.write(0, "002.md")
    backlog = watching.workspace.backlog
    watching.at(300, (backlog / "001.md").unlink, backlog)
    assert [
        (0, "WatchProcessingItem", "001.md"),
        (5, "WatchItemRetry", "001.md"),
        (5, "WatchProcessingItem", "002.md"),
        (10, "WatchItemRetry", "002.md"),
        (610, "WatchProcessingItem", "002.md"),
        (611, "LoopApproved"),
        (611, "WatchItemCompleted", "002.md"),
        (611, "WatchBacklogWaiting"),
    ] == watching.story(2000)


def test_no_timer_is_left_when_nothing_is_paused(tmp_path: Path) -> None:
    """After the only paused item is gone its time passes once, and nothing more is due."""
    watching = Watching(tmp_path, loops=[(5, FAILED)], retry_seconds=600)
    watching.write(0, "001.md")
    backlog = watching.workspace.backlog
    watching.at(300, (backlog / "001.md").unlink, backlog)
    assert [
        (0, "WatchProcessingItem"),
        (5, "WatchItemRetry"),
        (330, "WatchBacklogWaiting"),
    ] == [entry[:2] for entry in watching.story(700)]
    timers = [item for item, _ in watching.t.scheduler._queue.items if not item.is_cancelled()]
    assert [] == timers
