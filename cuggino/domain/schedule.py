"""`Schedule`: the delays between attempts or polls, as an immutable value."""

from __future__ import annotations

import dataclasses
import math
import random as chance
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

Duration: TypeAlias = str | float
"""Seconds, or a text such as `8h`, `1h30m`, `90m` or `45s`."""

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?")


def parse_duration(duration: Duration) -> float:
    """Return the duration in seconds. Raises ValueError for an invalid duration."""
    if not isinstance(duration, str):
        if not duration >= 0:
            raise ValueError(f"{duration:g} is not a duration: it is negative or not a number")
        return float(duration)
    found = _DURATION.fullmatch(duration.strip())
    if found is None or not any(found.groups()):
        raise ValueError(f"{duration!r} is not a duration such as 8h, 1h30m, 90m or 45s")
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return hours * 3600.0 + minutes * 60.0 + seconds


@dataclass(frozen=True, slots=True)
class Schedule:
    """The delays between attempts: how long each is, and when to give up.

    Pure: it neither waits nor reads a clock. Build one from a first delay, refine it, and combine
    it with others::

        Schedule.exponential("5s").jittered().capped("5m").times(10)
        Schedule.exponential("15m").capped("5h").within("24h")
        Schedule.exponential("1s").union(Schedule.constant("1m"))
        Schedule.constant("5s").times(12).and_then(Schedule.constant("1m"))

    A refinement applies to all that stands before it: `a.and_then(b).times(3)` has 3 delays.
    """

    growth: _Growth | _Union | _Sequence
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
        """Limit the sum of all delays; the last one is cut to fit."""
        return dataclasses.replace(self, total=parse_duration(total))

    def times(self, count: int) -> Schedule:
        """Limit the number of delays."""
        if count < 0:
            raise ValueError(f"count must not be negative, not {count}")
        return dataclasses.replace(self, limit=count)

    def union(self, other: Schedule) -> Schedule:
        """Continue while either schedule does, with the shorter delay of the two."""
        return Schedule(_Union(self, other))

    def and_then(self, other: Schedule) -> Schedule:
        """Take the delays of this schedule, then those of the other."""
        return Schedule(_Sequence(self, other))

    def delay(self, taken: int, *, random: Callable[[], float] = chance.random) -> float | None:
        """Return the delay after `taken` earlier ones, or None when the schedule is exhausted.

        `random` returns numbers from 0 to 1; it is called only by a schedule with jitter.
        """
        delay = self._nominal(taken, random)
        if delay is None or not self.jitter:
            return delay
        return min(delay * (1.0 + self.jitter * (2.0 * random() - 1.0)), self.longest)

    @property
    def count(self) -> int | None:
        """The number of delays, or None if it is unlimited."""
        most = [count for count in (self.limit, self.growth.count) if count is not None]
        if self.total == math.inf or (self.total and not most and self._fades):
            return min(most, default=None)
        return sum(1 for _ in self.delays(random=_no_jitter))

    def delays(self, *, random: Callable[[], float] = chance.random) -> Iterator[float]:
        """Yield the delays in order; their sum, jitter included, stays within the total."""
        taken, spent = 0, 0.0
        while spent < self.total and (delay := self.delay(taken, random=random)) is not None:
            delay = min(delay, self.total - spent)
            yield delay
            taken, spent = taken + 1, spent + delay

    def _nominal(self, taken: int, random: Callable[[], float]) -> float | None:
        """Return the delay before the jitter of this schedule, within the total."""
        delay = self._capped(taken, random)
        if delay is None or self.total == math.inf:
            return delay
        left = self.total
        for earlier in range(taken):
            left -= self._capped(earlier, _no_jitter) or 0.0
            if left <= 0:
                break
        return min(delay, left) if left > 0 else None

    def _capped(self, taken: int, random: Callable[[], float]) -> float | None:
        if self.limit is not None and taken >= self.limit:
            return None
        delay = self.growth.delay(taken, random=random)
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

    @property
    def fades(self) -> bool:
        return self.first == 0

    def delay(self, taken: int, *, random: Callable[[], float]) -> float:
        try:
            return self.first * self.factor**taken
        except OverflowError:
            return math.inf if self.first else 0.0


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
    def fades(self) -> bool:
        return any(side.count is None and side._fades for side in (self.left, self.right))

    def delay(self, taken: int, *, random: Callable[[], float]) -> float | None:
        both = (side.delay(taken, random=random) for side in (self.left, self.right))
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
    def fades(self) -> bool:
        return (self.first if self.first.count is None else self.then)._fades

    def delay(self, taken: int, *, random: Callable[[], float]) -> float | None:
        delay = self.first.delay(taken, random=random)
        if delay is not None:
            return delay
        return self.then.delay(taken - (self.first.count or 0), random=random)


def _no_jitter() -> float:
    """Return the random number that leaves a delay as it is."""
    return 0.5
