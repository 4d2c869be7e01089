"""`Schedule`: the delays between attempts or polls, as an immutable value."""

from __future__ import annotations

import dataclasses
import math
import random as chance
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TypeAlias

from cuggino.domain.clock import Cron, zone_of

Duration: TypeAlias = str | float
"""Seconds, or a text such as `8h`, `1h30m`, `90m` or `45s`."""

_YEAR = 366 * 24 * 3600.0
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?")


def parse_duration(duration: Duration) -> float:
    """Return the duration in seconds. Raises ValueError for an invalid duration."""
    if not isinstance(duration, str):
        if not isinstance(duration, int | float):
            raise TypeError(
                f"a duration is a number of seconds or a text such as 8h, not {duration!r}"
            )
        if not duration >= 0:
            raise ValueError(f"{duration:g} is not a duration: it is negative or not a number")
        return float(duration)
    found = _DURATION.fullmatch(duration.strip())
    if found is None or not any(found.groups()):
        raise ValueError(f"{duration!r} is not a duration such as 8h, 1h30m, 90m or 45s")
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return hours * 3600.0 + minutes * 60.0 + seconds


def parse_every(text: str) -> Schedule:
    """Return the schedule of a text: a duration such as `6h`, or a cron expression with a zone.

    Raises:
        ValueError: it is neither, or a duration below a minute or above a year.
    """
    if " " in text.strip():
        return Schedule(_Ticks(Cron.parse(text)))
    seconds = parse_duration(text)
    if not 60 <= seconds <= _YEAR:
        raise ValueError(f"{text!r} is below a minute or above a year: write a time such as 6h")
    return Schedule.constant(seconds)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The delays between attempts: how long each is, and when to give up.

    Pure: it neither waits nor reads a clock. Build one from a first delay or a cron expression,
    refine it, and combine it with others::

        Schedule.exponential("5s").jittered().capped("5m").times(10)
        Schedule.exponential("15m").capped("5h").within("24h")
        Schedule.exponential("1s").union(Schedule.constant("1m"))
        Schedule.constant("5s").times(12).and_then(Schedule.constant("1m"))
        Schedule.cron("0 3 * * 1-5", "Europe/Rome")

    A refinement applies to all that stands before it: `a.and_then(b).times(3)` has 3 delays.
    """

    growth: _Growth | _Ticks | _Union | _Sequence
    longest: float = math.inf
    total: float = math.inf
    limit: int | None = None
    """Number of delays; None for any number."""
    jitter: float = 0.0

    @classmethod
    def constant(cls, delay: Duration) -> Schedule:
        """Return a schedule of equal delays, without an end."""
        return cls(_Growth(parse_duration(delay)))

    @classmethod
    def exponential(cls, first: Duration, factor: float = 2.0) -> Schedule:
        """Return a schedule in which each delay is `factor` times the one before."""
        if not factor >= 1:
            raise ValueError(f"factor must be at least 1, not {factor:g}")
        return cls(_Growth(parse_duration(first), factor))

    @classmethod
    def cron(cls, expression: str, zone: str | tzinfo) -> Schedule:
        """Return a schedule whose delays end when a cron expression of five fields is due.

        The zone is a name such as `Europe/Rome`. Changes to and from summer time are those of
        Debian's cron: a time that is skipped is due right after the change, one that comes twice is
        due once. Its delays need the time: `repeat_on` and `retry_session` pass that of their
        scheduler. Limit it with `times`.

        Raises:
            ValueError: it is not a cron expression, or the zone is unknown.
        """
        return cls(_Ticks(Cron(expression, zone_of(zone) if isinstance(zone, str) else zone)))

    def jittered(self, share: float = 0.2) -> Schedule:
        """Vary each delay at random by up to `share` of it, up or down.

        Clients that failed together then do not return together. A jittered delay stays within
        the cap.
        """
        if not 0 <= share <= 1:
            raise ValueError(f"share must be between 0 and 1, not {share:g}")
        return dataclasses.replace(self, jitter=share)

    def capped(self, longest: Duration) -> Schedule:
        """Limit each single delay."""
        return dataclasses.replace(self, longest=parse_duration(longest))

    def within(self, total: Duration) -> Schedule:
        """Limit the sum of all delays; the last one is cut to fit.

        Raises:
            ValueError: a part is a cron schedule, whose delays depend on the time.
        """
        if self.is_timed:
            raise ValueError("a schedule with a cron expression has no total: limit it with times")
        return dataclasses.replace(self, total=parse_duration(total))

    def times(self, count: int) -> Schedule:
        """Limit the number of delays."""
        if not isinstance(count, int):
            raise TypeError(f"count must be a whole number, not {count!r}")
        if count < 0:
            raise ValueError(f"count must not be negative, not {count}")
        return dataclasses.replace(self, limit=count)

    def union(self, other: Schedule) -> Schedule:
        """Continue while either schedule does, with the shorter delay of the two."""
        require_schedule(other, "union")
        return Schedule(_Union(self, other))

    def and_then(self, other: Schedule) -> Schedule:
        """Take the delays of this schedule, then those of the other."""
        require_schedule(other, "and_then")
        return Schedule(_Sequence(self, other))

    def delay(
        self,
        taken: int,
        *,
        random: Callable[[], float] = chance.random,
        now: datetime | None = None,
    ) -> float | None:
        """Return the delay after `taken` earlier ones, or None when the schedule is exhausted.

        `random` returns numbers from 0 to 1; it is called only by a schedule with jitter. `now` is
        the time at which the delay begins; only a cron schedule needs it.
        """
        delay = self._nominal(taken, random, now)
        return None if delay is None else self._jittered(delay, random)

    @property
    def count(self) -> int | None:
        """The number of delays, or None if it is unlimited."""
        most = [count for count in (self.limit, self.growth.count) if count is not None]
        if self.total == math.inf or (self.total and not most and self._fades):
            return min(most, default=None)
        return sum(1 for _ in self.delays(random=_no_jitter))

    @property
    def is_timed(self) -> bool:
        """True if the delays depend on the time, by a cron expression."""
        return self.growth.is_timed

    def delays(
        self,
        *,
        random: Callable[[], float] = chance.random,
        clock: Callable[[], datetime] | None = None,
    ) -> Iterator[float]:
        """Yield the delays in order; their sum, jitter included, stays within the total.

        `clock` returns the time at which a delay begins; only a cron schedule needs it.
        """
        taken, spent, left = 0, 0.0, self.total
        while spent < self.total and left > 0:
            now = clock() if clock is not None else None
            delay = self._capped(taken, random, now)
            if delay is None:
                return
            delay = min(self._jittered(min(delay, left), random), self.total - spent)
            yield delay
            if self.total != math.inf:
                left -= self._capped(taken, _no_jitter, now) or 0.0
            taken, spent = taken + 1, spent + delay

    def _jittered(self, delay: float, random: Callable[[], float]) -> float:
        if not self.jitter:
            return delay
        return min(delay * (1.0 + self.jitter * (2.0 * random() - 1.0)), self.longest)

    def _nominal(
        self, taken: int, random: Callable[[], float], now: datetime | None
    ) -> float | None:
        """Return the delay before the jitter of this schedule, within the total."""
        delay = self._capped(taken, random, now)
        if delay is None or self.total == math.inf:
            return delay
        left = self.total
        for earlier in range(taken):
            left -= self._capped(earlier, _no_jitter, now) or 0.0
            if left <= 0:
                break
        return min(delay, left) if left > 0 else None

    def _capped(
        self, taken: int, random: Callable[[], float], now: datetime | None
    ) -> float | None:
        if self.limit is not None and taken >= self.limit:
            return None
        delay = self.growth.delay(taken, random=random, now=now)
        return None if delay is None else min(delay, self.longest)

    @property
    def _fades(self) -> bool:
        """Return True if all late delays of an endless schedule are 0: no total ends it."""
        return self.longest == 0 or self.growth.fades


@dataclass(frozen=True, slots=True)
class _Growth:
    """Delays that grow by a factor, without an end."""

    first: float
    factor: float = 1.0

    count = None
    is_timed = False

    @property
    def fades(self) -> bool:
        return self.first == 0

    def delay(self, taken: int, *, random: Callable[[], float], now: datetime | None) -> float:
        try:
            return self.first * self.factor**taken
        except OverflowError:
            return math.inf if self.first else 0.0


@dataclass(frozen=True, slots=True)
class _Ticks:
    """Delays that end when a cron expression is due, without an end."""

    cron: Cron

    count = None
    is_timed = True
    fades = False

    def delay(self, taken: int, *, random: Callable[[], float], now: datetime | None) -> float:
        if now is None:
            raise ValueError("a cron schedule needs the time: pass `now`, or to `delays` a `clock`")
        return (self.cron.after(now) - now).total_seconds()


@dataclass(frozen=True, slots=True)
class _Union:
    """The shorter delay of two schedules, until both are exhausted."""

    left: Schedule
    right: Schedule

    @property
    def count(self) -> int | None:
        left, right = self.left.count, self.right.count
        return None if left is None or right is None else max(left, right)

    @property
    def is_timed(self) -> bool:
        return self.left.is_timed or self.right.is_timed

    @property
    def fades(self) -> bool:
        return any(side.count is None and side._fades for side in (self.left, self.right))

    def delay(
        self, taken: int, *, random: Callable[[], float], now: datetime | None
    ) -> float | None:
        both = (side.delay(taken, random=random, now=now) for side in (self.left, self.right))
        return min((delay for delay in both if delay is not None), default=None)


@dataclass(frozen=True, slots=True)
class _Sequence:
    """One schedule after the other."""

    first: Schedule
    then: Schedule

    @property
    def count(self) -> int | None:
        first, then = self.first.count, self.then.count
        return None if first is None or then is None else first + then

    @property
    def is_timed(self) -> bool:
        return self.first.is_timed or self.then.is_timed

    @property
    def fades(self) -> bool:
        return (self.first if self.first.count is None else self.then)._fades

    def delay(
        self, taken: int, *, random: Callable[[], float], now: datetime | None
    ) -> float | None:
        delay = self.first.delay(taken, random=random, now=now)
        if delay is not None:
            return delay
        return self.then.delay(taken - (self.first.count or 0), random=random, now=now)


def require_schedule(value: object, function: str) -> None:
    """Raise a TypeError unless this is a schedule."""
    if not isinstance(value, Schedule):
        raise TypeError(
            f"{function}() needs a Schedule, not {value!r}: "
            'write Schedule.constant("5s"), .times(3) for three delays'
        )


def _no_jitter() -> float:
    """Return the random number that leaves a delay as it is."""
    return 0.5
