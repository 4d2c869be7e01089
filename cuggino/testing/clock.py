"""A virtual clock that stands still while there is work and jumps when there is none."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from weakref import WeakSet

from reactivex import abc
from reactivex.disposable import Disposable
from reactivex.scheduler import VirtualTimeScheduler
from reactivex.typing import AbsoluteTime

_State = TypeVar("_State")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""The default start of a virtual clock."""

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_LOOK = 0.002
"""Real seconds between two checks of the threads outside."""


def seconds(time: float | str | timedelta) -> float:
    """Return a duration in seconds: a number, a `timedelta`, or text such as `5h` and `1m30s`.

    Raises:
        ValueError: the text is not a duration.
    """
    if isinstance(time, timedelta):
        return time.total_seconds()
    if not isinstance(time, str):
        return float(time)
    parts = _PART.findall(time)
    if not parts or "".join(map("".join, parts)) != time:
        raise ValueError(f"{time!r} is not a duration; write it as 100ms, 30s, 5m, 2h30m or 1d")
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


class VirtualClock(VirtualTimeScheduler):
    """A scheduler on which five hours take only as long as the work in them.

    Time stands still while work is due at the current instant, and while a thread that cuggino has
    started works outside: it reads from a process, for example, or sends a notification. Otherwise
    time jumps to the next timer. So real commands, git and files work together with virtual waits:
    work outside takes no virtual time, and its results arrive at the instant at which it began.

    The clock begins at `start`; `elapsed` counts from there. `patience` is how many real seconds
    one instant may wait for work outside.

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
        """Threads that were working before this clock was created; they never hold it."""

    @property
    def elapsed(self) -> float:
        """Return the virtual seconds since the start, to the millisecond."""
        return round((self.now - self.start_time).total_seconds(), 3)

    @property
    def pending(self) -> int:
        """Return the number of pending timers."""
        with self._lock:
            return sum(not item.is_cancelled() for item, _ in self._queue.items)

    def at(self, time: float | str | timedelta) -> datetime:
        """Return the moment this long after the start: `clock.at("5h")`."""
        return self.start_time + timedelta(seconds=seconds(time))

    def after(self, time: float | str | timedelta) -> datetime:
        """Return the moment this long from now."""
        return self.now + timedelta(seconds=seconds(time))

    def call_at(self, time: float | str | timedelta, do: Callable[[], object]) -> None:
        """Call a function this long after the start: `clock.call_at("2h", ...)`."""

        def act(*_: object) -> None:
            do()

        self.schedule_absolute(self.at(time), act)

    def before_jumps(self, look: Callable[[], object]) -> abc.DisposableBase:
        """Call `look` at the end of each instant, before time advances, until disposed.

        Actions that it schedules for the current instant run before time advances, too. The
        disposable is also a context manager.
        """
        self._before_jumps.append(look)
        return Disposable(lambda: self._before_jumps.remove(look))

    def schedule_absolute(
        self,
        duetime: AbsoluteTime,
        action: abc.ScheduledAction[_State],
        state: _State | None = None,
    ) -> abc.DisposableBase:
        """Schedule an action for a moment, from any thread; a past moment means now."""
        scheduled = super().schedule_absolute(duetime, action, state)
        self._posted.set()
        return scheduled

    def advance_to(self, time: AbsoluteTime, *, unless: Callable[[], bool] = lambda: False) -> None:
        """Run everything that is due up to that moment, and make it the current time.

        Stops at the current instant as soon as `unless()` is true. A call from within an action
        does nothing; time advances when the action returns.

        Raises:
            StandsStill: work outside did not end within `patience` real seconds.
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
        """Return whether nothing is left to run up to the limit."""
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
        """Run the first action that is due; return False when none is."""
        with self._lock:
            if not self._queue or self._queue.peek().duetime > self.now:
                return False
            item = self._queue.dequeue()
        if not item.is_cancelled():
            item.invoke()
        return True

    def _jump(self, limit: datetime) -> bool:
        """Jump to the time of the next action; return False when there is none up to the limit."""
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
                    f"{self.elapsed:g} s: {names} has not ended. Replace it by a double "
                    "(commands=, an agent in memory), or raise patience="
                )


class StandsStill(AssertionError):
    """Work outside takes so long that virtual time cannot advance."""


_INSIDE = ("cuggino-loop", "cuggino-poll", "cuggino-tools")
"""Threads that only wait for others and so never hold the clock."""


def workers() -> list[threading.Thread]:
    """Return cuggino's threads that work outside the lane and will post to it."""
    return [
        thread
        for thread in threading.enumerate()
        if thread.name.startswith("cuggino-") and thread.name not in _INSIDE
    ]


def time_text(when: float) -> str:
    """Format a time for display: `90 s` up to two minutes, then `1h 02m 03s`."""
    if when < 120:
        return f"{when:g} s"
    whole = int(when)
    parts = (whole // 86_400, whole // 3600 % 24, whole // 60 % 60)
    words = [f"{n}{unit}" for n, unit in zip(parts, "dhm", strict=True) if n]
    rest = round(when - whole + whole % 60, 3)
    return " ".join([*words, f"{rest:g}s"] if rest else words)
