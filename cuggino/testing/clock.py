"""A clock that stands still while something happens, and jumps when nothing does."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from weakref import WeakSet

from reactivex import abc
from reactivex.scheduler import VirtualTimeScheduler
from reactivex.typing import AbsoluteTime

_State = TypeVar("_State")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""When a virtual clock begins, unless it is told."""

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_LOOK = 0.002
"""Real seconds between two looks whether the outside has come to its end."""


def seconds(time: float | str | timedelta) -> float:
    """A length of time in seconds: of a number, a `timedelta`, or words such as `5h` and `1m30s`.

    Raises:
        ValueError: the words are no length of time.
    """
    if isinstance(time, timedelta):
        return time.total_seconds()
    if not isinstance(time, str):
        return float(time)
    parts = _PART.findall(time)
    if not parts or "".join(map("".join, parts)) != time:
        raise ValueError(f"{time!r} is no length of time; say it as 100ms, 30s, 5m, 2h30m or 1d")
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


class VirtualClock(VirtualTimeScheduler):
    """A scheduler on which five hours take as long as what happens in them.

    Time stands still while something is left to be done at the present instant, and while a
    thread of cuggino that was begun since works outside: a process that is read, a notification
    that is sent. When nothing is, it jumps to the next timer. So real commands, git and files go
    together with virtual waits. What takes its time outside takes none here, and whatever it says
    is said at the instant at which it was begun.

    It begins at `start`; `elapsed` counts from there. `patience` are the real seconds that one
    instant may wait for the outside.

    ::

        clock = VirtualClock()
        stream.subscribe(seen.append, scheduler=clock)
        clock.advance_to(clock.at("5h"))
    """

    def __init__(self, *, start: datetime = EPOCH, patience: float = 30.0) -> None:
        super().__init__(start)
        self.start_time = start
        self.patience = patience
        self._before_jumps: list[Callable[[], object]] = []
        self._posted = threading.Event()
        self._strangers = WeakSet(workers())
        """Those that worked before there was this clock have nothing to tell it."""

    @property
    def elapsed(self) -> float:
        """Virtual seconds since the beginning, to the millisecond."""
        return round((self.now - self.start_time).total_seconds(), 3)

    @property
    def pending(self) -> int:
        """Timers that would still go off."""
        with self._lock:
            return sum(not item.is_cancelled() for item, _ in self._queue.items)

    def at(self, time: float | str | timedelta) -> datetime:
        """The moment that is so long after the beginning: `clock.at("5h")`."""
        return self.start_time + timedelta(seconds=seconds(time))

    def after(self, time: float | str | timedelta) -> datetime:
        """The moment that is so long after now."""
        return self.now + timedelta(seconds=seconds(time))

    @contextmanager
    def before_jumps(self, look: Callable[[], object]) -> Iterator[None]:
        """Within the block, call `look` at the end of each instant, before time goes on.

        What it schedules for the present instant is done before time goes on, too.
        """
        self._before_jumps.append(look)
        try:
            yield
        finally:
            self._before_jumps.remove(look)

    def schedule_absolute(
        self,
        duetime: AbsoluteTime,
        action: abc.ScheduledAction[_State],
        state: _State | None = None,
    ) -> abc.DisposableBase:
        """Schedule an action for a moment, from whichever thread; a past one means now."""
        scheduled = super().schedule_absolute(duetime, action, state)
        self._posted.set()
        return scheduled

    def advance_to(self, time: AbsoluteTime, *, unless: Callable[[], bool] = lambda: False) -> None:
        """Do all that is due up to that moment, and let it be that moment.

        It ends at once, at the present instant, when `unless()` holds. A call from within an action
        does nothing: time goes on when the action is over.

        Raises:
            StandsStill: the outside had not come to its end within `patience` real seconds.
        """
        limit = self.to_datetime(time)
        with self._lock:
            if self._is_enabled:
                return
            self._is_enabled = True
        try:
            if self._work(limit, unless):
                self._clock = max(self.now, limit)
        finally:
            self._is_enabled = False

    def _work(self, limit: datetime, unless: Callable[[], bool]) -> bool:
        """Whether there is nothing more to do up to the limit."""
        while not unless():
            self._posted.clear()
            if self._do_next():
                continue
            if self._outside():
                self._wait()
                continue
            for look in tuple(self._before_jumps):
                look()
            # A thread that has ended since has posted before that.
            if not self._posted.is_set() and not self._jump(limit):
                return True
        return False

    def _do_next(self) -> bool:
        """Do the first of what is due now; False when nothing is."""
        with self._lock:
            if not self._queue or self._queue.peek().duetime > self.now:
                return False
            item = self._queue.dequeue()
        if not item.is_cancelled():
            item.invoke()
        return True

    def _jump(self, limit: datetime) -> bool:
        """Let it be the time of the next action; False when there is none up to the limit."""
        with self._lock:
            while self._queue and self._queue.peek().is_cancelled():
                self._queue.dequeue()
            if not self._queue or self._queue.peek().duetime > limit:
                return False
            self._clock = self._queue.peek().duetime
            return True

    def _outside(self) -> list[threading.Thread]:
        return [thread for thread in workers() if thread not in self._strangers]

    def _wait(self) -> None:
        deadline = time.monotonic() + self.patience
        while not self._posted.wait(_LOOK):
            if not (outside := self._outside()):
                return
            if time.monotonic() > deadline:
                names = ", ".join(sorted(thread.name for thread in outside))
                raise StandsStill(
                    f"virtual time stood still for {self.patience:g} real seconds at "
                    f"{self.elapsed:g} s: {names} has not come to its end. Put a double in its "
                    "place (commands=, an agent in memory), or give more patience="
                )


class StandsStill(AssertionError):
    """Something outside takes so long that virtual time does not go on."""


_INSIDE = ("cuggino-loop", "cuggino-poll")
"""Threads that wait for somebody else, and so never keep the clock."""


def workers() -> list[threading.Thread]:
    """The threads of cuggino that work outside of the lane, and have something to tell it."""
    return [
        thread
        for thread in threading.enumerate()
        if thread.name.startswith("cuggino-") and thread.name not in _INSIDE
    ]


def spoken(when: float) -> str:
    """A time of a test as a person reads it: `90 s` up to two minutes, then `1h 02m 03s`."""
    if when < 120:
        return f"{when:g} s"
    whole = int(when)
    parts = (whole // 86_400, whole // 3600 % 24, whole // 60 % 60)
    words = [f"{n}{unit}" for n, unit in zip(parts, "dhm", strict=True) if n]
    rest = round(when - whole + whole % 60, 3)
    return " ".join([*words, f"{rest:g}s"] if rest else words)
