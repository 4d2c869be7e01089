"""`Schedule`: the delays between attempts, as an immutable value."""

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

    Pure: it neither waits nor reads a clock. Build one from a first delay and refine it::

        Schedule.exponential("5s").jittered().capped("5m").times(10)
        Schedule.exponential("15m").capped("5h").within("24h")
    """

    first: float
    factor: float = 1.0
    longest: float = math.inf
    total: float = math.inf
    limit: int | None = None
    """Number of delays; None for any number."""
    jitter: float = 0.0

    @classmethod
    def constant(cls, delay: Duration) -> Schedule:
        """Return a schedule of equal delays, without an end."""
        return cls(parse_duration(delay))

    @classmethod
    def exponential(cls, first: Duration, factor: float = 2.0) -> Schedule:
        """Return a schedule in which each delay is `factor` times the one before."""
        if not factor >= 1:
            raise ValueError(f"factor must be at least 1, not {factor:g}")
        return cls(parse_duration(first), factor)

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

    def delay(self, taken: int, *, random: Callable[[], float] = chance.random) -> float | None:
        """Return the delay after `taken` earlier ones, or None when the schedule is exhausted.

        `random` returns numbers from 0 to 1; it is called only by a schedule with jitter.
        """
        if self.limit is not None and taken >= self.limit:
            return None
        delay = self._nominal(taken)
        if delay is None or not self.jitter:
            return delay
        return min(delay * (1.0 + self.jitter * (2.0 * random() - 1.0)), self.longest)

    @property
    def count(self) -> int | None:
        """Return the number of delays, or None if it is unlimited."""
        if self.total == math.inf or not self.first:
            return self.limit
        return sum(1 for _ in dataclasses.replace(self, jitter=0.0).delays())

    def delays(self, *, random: Callable[[], float] = chance.random) -> Iterator[float]:
        """Yield the delays in order; their sum, jitter included, stays within the total."""
        taken, spent = 0, 0.0
        while spent < self.total and (delay := self.delay(taken, random=random)) is not None:
            delay = min(delay, self.total - spent)
            yield delay
            taken, spent = taken + 1, spent + delay

    def _nominal(self, taken: int) -> float | None:
        """Return the delay before jitter, within the total."""
        if self.total == math.inf or not self.first:
            return self._capped(taken)
        spent = 0.0
        for earlier in range(taken):
            spent += self._capped(earlier)
            if spent >= self.total:
                return None
        return min(self._capped(taken), self.total - spent)

    def _capped(self, taken: int) -> float:
        try:
            return min(self.first * self.factor**taken, self.longest)
        except OverflowError:
            return self.longest
