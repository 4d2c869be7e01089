"""The one lane on which a run happens.

All operators, timers and `on_next` calls of a run happen on one serial scheduler, so that there
are no locks outside the sources and the Rx grammar holds without them.
"""

from __future__ import annotations

import heapq
import sys
import threading
import time
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
from reactivex.typing import AbsoluteTime

_State = TypeVar("_State")

_NOT_SERIAL = (
    CurrentThreadScheduler,
    ImmediateScheduler,
    NewThreadScheduler,
    ThreadPoolScheduler,
    TimeoutScheduler,
)
"""Schedulers on which two actions can run at once, or on no thread of their own."""

_FEW_CANCELLED = 64
"""So many cancelled timers may stay in the queue of a lane before it is looked through."""


class LoopScheduler(EventLoopScheduler):
    """RxPY's event loop on one daemon thread, that outlives an exception in an action.

    The stock one ends for ever with the first exception; here it is reported to
    `threading.excepthook`, and the next action runs. The stock one also keeps a cancelled timer,
    with the whole run that it belonged to, until it is due, which may be hours later; here at most
    as many are kept as there are others. And where the stock one waits longer when the clock is set
    back, this one's time goes on (see `now`).
    """

    def __init__(self) -> None:
        super().__init__(self._name_thread)
        self._cancelled = 0
        """At least the number of cancelled timers in the queue."""
        self._ahead = 0.0
        """Seconds that the clock was ahead of the one that nobody can set, at most."""

    @property
    def now(self) -> datetime:
        """The time in UTC, which never goes back.

        It follows the clock of the machine, also when that is set forward or has slept. When that
        is set back by an hour, no timer is due an hour later: the lane's time is an hour ahead.
        """
        ahead = time.time() - (passed := time.monotonic())
        if ahead > self._ahead:  # asked at every event: `max` takes as long as all the rest
            self._ahead = ahead
        return datetime.fromtimestamp(passed + self._ahead, UTC)

    def _name_thread(self, target: Any) -> threading.Thread:
        return threading.Thread(target=target, name="cuggino-loop", daemon=True)

    def schedule_absolute(
        self,
        duetime: AbsoluteTime,
        action: abc.ScheduledAction[_State],
        state: _State | None = None,
    ) -> abc.DisposableBase:
        later = self.to_datetime(duetime) > self.now
        scheduled = super().schedule_absolute(duetime, action, state)
        return Disposable(lambda: self._cancel(scheduled)) if later else scheduled

    def _cancel(self, timer: abc.DisposableBase) -> None:
        timer.dispose()
        with self._condition:
            self._cancelled += 1
            queue = self._queue
            before = queue.items  # not let go within the lock: who knows what that ends
            if self._cancelled > max(_FEW_CANCELLED, len(before) // 2):
                queue.items = [entry for entry in before if not entry[0].is_cancelled()]
                heapq.heapify(queue.items)
                self._cancelled = 0

    def invoke_action(
        self, action: abc.ScheduledAction[_State], state: _State | None = None
    ) -> abc.DisposableBase:
        try:
            return super().invoke_action(action, state)
        except Exception:
            kind, error, traceback = sys.exc_info()
            assert kind is not None
            threading.excepthook(
                threading.ExceptHookArgs((kind, error, traceback, threading.current_thread()))
            )
            return Disposable()

    def run(self) -> None:
        """What the thread does; that `dispose` ends it is nothing that should be reported."""
        with suppress(SystemExit):
            super().run()

    def dispose(self) -> None:
        """Abandon what is scheduled and end the thread, from whichever thread.

        The stock one only wakes a thread that waits: disposed while an action runs, it would wait
        for ever afterwards. The last action therefore ends the thread itself.
        """
        with suppress(DisposedException):
            self.schedule(_end_thread)
        super().dispose()

    def close(self) -> None:
        """`dispose`, and wait until the thread has ended (unless it is the present one)."""
        self.dispose()
        thread = self._thread
        if isinstance(thread, threading.Thread) and thread is not threading.current_thread():
            thread.join()


def _end_thread(_scheduler: abc.SchedulerBase, _state: object = None) -> NoReturn:
    raise SystemExit


@cache
def default_scheduler() -> LoopScheduler:
    """The lane of those who bring none: one for the process, made at first use."""
    return LoopScheduler()


def serial(scheduler: abc.SchedulerBase | None) -> abc.SchedulerBase:
    """The scheduler itself when it is serial and thread-safe, else one that is.

    `None` and the thread-per-action kinds become the default lane; an `AsyncIOScheduler` becomes
    the thread-safe one of the same event loop.
    """
    if scheduler is None or isinstance(scheduler, _NOT_SERIAL):
        return default_scheduler()
    # asyncio is imported only where somebody else has already done so.
    if "reactivex.scheduler.eventloop.asyncioscheduler" in sys.modules:
        from reactivex.scheduler.eventloop import AsyncIOScheduler, AsyncIOThreadSafeScheduler

        if isinstance(scheduler, AsyncIOScheduler) and not isinstance(
            scheduler, AsyncIOThreadSafeScheduler
        ):
            return AsyncIOThreadSafeScheduler(scheduler._loop)
    return scheduler
