"""The one thread on which a subscription is told everything."""

from __future__ import annotations

from collections.abc import Callable

from reactivex import abc
from reactivex.scheduler import (
    EventLoopScheduler,
    ImmediateScheduler,
    NewThreadScheduler,
    TimeoutScheduler,
    TrampolineScheduler,
)
from reactivex.scheduler.eventloop import AsyncIOScheduler, AsyncIOThreadSafeScheduler

_NOT_SERIAL = (
    ImmediateScheduler,
    NewThreadScheduler,  # and ThreadPoolScheduler
    TimeoutScheduler,
    TrampolineScheduler,  # and CurrentThreadScheduler
)
"""Schedulers that run actions side by side, or on the thread that schedules them."""


def serial_lane(
    scheduler: abc.SchedulerBase | None,
) -> tuple[abc.SchedulerBase, Callable[[], None]]:
    """A serial scheduler that other threads may post to, and what closes it if it is private.

    `scheduler` itself if it is one; the thread-safe twin of an asyncio scheduler (`await stream`
    gives the other one); otherwise a private thread. Closing ends that thread when it has
    run what was posted; it does not wait, so it may be called from there.
    """
    if isinstance(scheduler, AsyncIOScheduler) and not isinstance(
        scheduler, AsyncIOThreadSafeScheduler
    ):
        return AsyncIOThreadSafeScheduler(scheduler._loop), _keep
    if scheduler is not None and not isinstance(scheduler, _NOT_SERIAL):
        return scheduler, _keep
    private = _PrivateLane()
    return private, private.close


class _PrivateLane(EventLoopScheduler):
    """One thread that ends with its last action.

    `dispose` would not do: called by an action, as at the end of a stream, it leaves the thread
    waiting for ever for the notification that it has just missed.
    """

    def close(self) -> None:
        if not self._exit_if_empty:
            self._exit_if_empty = True
            self.schedule(lambda *_: None)  # wakes the thread if it waits


def _keep() -> None:
    """A scheduler that was given stays open."""
