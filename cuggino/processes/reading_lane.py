"""The lane on which one subscription reads a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from reactivex import abc

from cuggino.operators import LoopScheduler
from cuggino.operators.scheduler import lane_of


class ReadingLane(NamedTuple):
    """A lane, where its events go, and how to release it.

    A program is always read on a `LoopScheduler`. If the subscription's scheduler is another one,
    the lane is private, and events are posted `across` to that scheduler.
    """

    lane: LoopScheduler
    across: abc.SchedulerBase | None
    release: Callable[[], None]
    """Never waits, so it may be called on the lane itself."""


def reading_lane(scheduler: abc.SchedulerBase | None, name: str) -> ReadingLane:
    """Return a lane for a subscription; a private one has a thread with this name."""
    lane, release = lane_of(scheduler, name)
    if isinstance(lane, LoopScheduler):
        return ReadingLane(lane, None, release)
    private = LoopScheduler(name)
    return ReadingLane(private, lane, private.dispose)
