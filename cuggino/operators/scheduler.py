"""Which scheduler a stream runs on: the one of its subscription, made serial."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from reactivex import abc
from reactivex.scheduler import (
    CurrentThreadScheduler,
    ImmediateScheduler,
    NewThreadScheduler,
    ThreadPoolScheduler,
    TimeoutScheduler,
)
from reactivex.scheduler.eventloop import AsyncIOScheduler, AsyncIOThreadSafeScheduler

from cuggino.operators.loop_scheduler import LoopScheduler

_NOT_SERIAL = (
    CurrentThreadScheduler,
    ImmediateScheduler,
    NewThreadScheduler,
    ThreadPoolScheduler,
    TimeoutScheduler,
)
"""Schedulers that run actions concurrently, or on the thread that schedules them."""


class _Default:
    """The default lane, made again when `sys.exit` in an action has ended it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lane = LoopScheduler()

    def lane(self) -> LoopScheduler:
        with self._lock:
            if self._lane.is_disposed:
                self._lane = LoopScheduler()
            return self._lane


_DEFAULT = _Default()


def default_scheduler() -> LoopScheduler:
    """Return the default lane, one for the process."""
    return _DEFAULT.lane()


def serial(scheduler: abc.SchedulerBase | None) -> abc.SchedulerBase:
    """Return the scheduler if it is serial and thread-safe, else one that is.

    `None` and schedulers that are not serial become the default lane; an `AsyncIOScheduler` becomes
    the thread-safe one of the same event loop.
    """
    if type(scheduler) is LoopScheduler:
        return scheduler
    if scheduler is None or isinstance(scheduler, _NOT_SERIAL):
        return default_scheduler()
    return _thread_safe(scheduler)


def turns_of(scheduler: abc.SchedulerBase | None) -> abc.SchedulerBase:
    """Return where a stream that runs on its subscriber's thread continues in another turn.

    That is the scheduler, or the thread itself where it is not serial.
    """
    if scheduler is None or isinstance(scheduler, _NOT_SERIAL):
        return CurrentThreadScheduler.singleton()
    return serial(scheduler)


def lane_of(
    scheduler: abc.SchedulerBase | None, name: str = "cuggino-loop"
) -> tuple[abc.SchedulerBase, Callable[[], None]]:
    """Return a lane for one subscription of a source, and a function that releases it.

    Like `serial`, but with a private lane instead of the default one, so that a blocking subscriber
    does not delay others; its thread has the name. The release never waits, so it may be called on
    the lane itself.
    """
    if scheduler is None or isinstance(scheduler, _NOT_SERIAL):
        private = LoopScheduler(name)
        return private, private.dispose
    return _thread_safe(scheduler), lambda: None


def is_current(scheduler: abc.SchedulerBase) -> bool:
    """Return True on the thread of the scheduler, which can wait for nothing that runs on it."""
    if isinstance(scheduler, LoopScheduler):
        return scheduler.is_current
    if isinstance(scheduler, AsyncIOScheduler):
        try:
            return asyncio.get_running_loop() is scheduler._loop
        except RuntimeError:
            return False
    return False


def has_stopped(scheduler: abc.SchedulerBase) -> bool:
    """Return True for an asyncio event loop that does not run, and with it no action."""
    return isinstance(scheduler, AsyncIOScheduler) and not scheduler._loop.is_running()


def is_closed(scheduler: abc.SchedulerBase) -> bool:
    """Return True for an asyncio event loop that will never run again."""
    return isinstance(scheduler, AsyncIOScheduler) and scheduler._loop.is_closed()


def _thread_safe(scheduler: abc.SchedulerBase) -> abc.SchedulerBase:
    if isinstance(scheduler, AsyncIOScheduler) and not isinstance(
        scheduler, AsyncIOThreadSafeScheduler
    ):
        return AsyncIOThreadSafeScheduler(scheduler._loop)
    return scheduler
