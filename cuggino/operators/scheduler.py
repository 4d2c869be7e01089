"""The serial scheduler on which a run happens.

All operators, timers and `on_next` calls of a run happen on one serial scheduler, its lane. The Rx
grammar then holds without locks; only sources, which have threads of their own, need them.
"""

from __future__ import annotations

import heapq
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import Any, NoReturn, TypeVar

from reactivex import abc
from reactivex.disposable import Disposable
from reactivex.internal.exceptions import DisposedException
from reactivex.scheduler import (
    CurrentThreadScheduler,
    EventLoopScheduler,
    ImmediateScheduler,
    NewThreadScheduler,
    ThreadPoolScheduler,
    TimeoutScheduler,
)
from reactivex.scheduler.eventloop import AsyncIOScheduler, AsyncIOThreadSafeScheduler
from reactivex.scheduler.scheduleditem import ScheduledItem
from reactivex.typing import AbsoluteTime

_State = TypeVar("_State")

_NOT_SERIAL = (
    CurrentThreadScheduler,
    ImmediateScheduler,
    NewThreadScheduler,
    ThreadPoolScheduler,
    TimeoutScheduler,
)
"""Schedulers that run actions concurrently, or on the thread that schedules them."""

_FEW_CANCELLED = 64
"""Cancelled timers that may stay in the queue of a lane before it is pruned."""


class LoopScheduler(EventLoopScheduler):
    """An event loop on one daemon thread.

    RxPY's `EventLoopScheduler` differs in three ways. It ends with the first exception of an
    action; here that is reported to `threading.excepthook`, and the next action runs. It keeps a
    cancelled timer, with the whole run that it belonged to, until it is due; here the queue is
    pruned. And it waits longer when the clock is set back; here time never goes back (see `now`).
    """

    def __init__(self) -> None:
        super().__init__(self._name_thread)
        self._cancelled = 0
        """Upper bound of the number of cancelled timers in the queue."""
        self._ahead = 0.0
        """The most by which the wall clock was ahead of the monotonic one, in seconds."""

    @property
    def now(self) -> datetime:
        """The time in UTC, which never goes back.

        It follows the wall clock forward, also after a suspend. When that is set back by an hour,
        the lane stays an hour ahead, so that no timer is late.
        """
        ahead = time.time() - (passed := time.monotonic())
        if ahead > self._ahead:  # on every event: `max` would double the time
            self._ahead = ahead
        return datetime.fromtimestamp(passed + self._ahead, UTC)

    def _name_thread(self, target: Any) -> threading.Thread:
        return threading.Thread(target=target, name="cuggino-loop", daemon=True)

    def schedule(
        self, action: abc.ScheduledAction[_State], state: _State | None = None
    ) -> abc.DisposableBase:
        # RxPY's looks at the clock thrice; this runs for every line of an agent.
        item = _Item(self, state, action, self.now)
        self._add(item, self._ready_list.append)
        return item

    def schedule_absolute(
        self,
        duetime: AbsoluteTime,
        action: abc.ScheduledAction[_State],
        state: _State | None = None,
    ) -> abc.DisposableBase:
        due = self.to_datetime(duetime)
        if due <= self.now:
            item = _Item(self, state, action, due)
            self._add(item, self._ready_list.append)
        else:
            item = _Timer(self, state, action, due)
            self._add(item, self._queue.enqueue)
        return item

    def _add(self, item: _Item, put: Callable[[ScheduledItem], None]) -> None:
        with self._condition:
            if self._is_disposed:
                raise DisposedException
            put(item)
            self._condition.notify()
            self._ensure_thread()

    def prune(self) -> None:
        """Count a timer as cancelled; remove those from the queue when they are many."""
        with self._condition:
            self._cancelled += 1
            queue = self._queue
            before = queue.items  # released after the lock: that may run arbitrary code
            if self._cancelled > max(_FEW_CANCELLED, len(before) // 2):
                queue.items = [entry for entry in before if not entry[0].is_cancelled()]
                heapq.heapify(queue.items)
                self._cancelled = 0

    def invoke_action(
        self, action: abc.ScheduledAction[_State], state: _State | None = None
    ) -> abc.DisposableBase:
        try:
            returned = action(self, state)
        except Exception as raised:
            if self._is_disposed and isinstance(raised, DisposedException):
                return Disposable()  # a timer may have ended the run; RxPY then restarts that timer
            kind, error, traceback = sys.exc_info()
            assert kind is not None
            threading.excepthook(
                threading.ExceptHookArgs((kind, error, traceback, threading.current_thread()))
            )
            return Disposable()
        return returned if isinstance(returned, abc.DisposableBase) else Disposable()

    def run(self) -> None:
        """Run the thread until `dispose` ends it."""
        with suppress(SystemExit):
            super().run()

    def dispose(self) -> None:
        """Drop all scheduled actions and end the thread; safe to call from any thread.

        RxPY's only wakes a waiting thread: disposed while an action runs, it would wait
        indefinitely. The last action therefore ends the thread itself.
        """
        with suppress(DisposedException):
            self.schedule(_end_thread)
        super().dispose()

    def close(self) -> None:
        """Dispose and wait until the thread has ended, unless it is the current one."""
        self.dispose()
        thread = self._thread
        if isinstance(thread, threading.Thread) and thread is not threading.current_thread():
            thread.join()


class _Item(ScheduledItem, abc.DisposableBase):
    """An action of a lane. Disposal cancels it, or disposes of the disposable that it returned."""

    def dispose(self) -> None:
        self.cancel()


class _Timer(_Item):
    """An action that waits in the queue of a lane."""

    scheduler: LoopScheduler

    def dispose(self) -> None:
        if not self.is_cancelled():
            super().dispose()
            self.scheduler.prune()


def _end_thread(_scheduler: abc.SchedulerBase, _state: object = None) -> NoReturn:
    raise SystemExit


@cache
def default_scheduler() -> LoopScheduler:
    """Return the default lane, one for the process."""
    return LoopScheduler()


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


def lane_of(scheduler: abc.SchedulerBase | None) -> tuple[abc.SchedulerBase, Callable[[], None]]:
    """Return a lane for one subscription of a source, and a function that releases it.

    Like `serial`, but with a private lane instead of the default one, so that a blocking subscriber
    does not delay others. The release never waits, so it may be called on the lane itself.
    """
    if scheduler is None or isinstance(scheduler, _NOT_SERIAL):
        private = LoopScheduler()
        return private, private.dispose
    return _thread_safe(scheduler), lambda: None


def _thread_safe(scheduler: abc.SchedulerBase) -> abc.SchedulerBase:
    if isinstance(scheduler, AsyncIOScheduler) and not isinstance(
        scheduler, AsyncIOThreadSafeScheduler
    ):
        return AsyncIOThreadSafeScheduler(scheduler._loop)
    return scheduler
