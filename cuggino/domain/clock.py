"""The times that people write: hours of work, cron expressions, and the time of an item."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import NamedTuple, TypeAlias

from cronsim import CronSim, CronSimError

from cuggino.domain.zone_names import find_zone, local_zone

_MINUTE = timedelta(minutes=1)
_ANY = datetime(2000, 1, 1, tzinfo=UTC)
_TIMES = re.compile(r"(\d{1,2}(?::\d\d)?)\s*[-–]\s*(\d{1,2}(?::\d\d)?)(?:\s+(\S.*))?")
_FIELDS = re.compile(r"((?:[\w*,/#-]+\s+){4}[\w*,/#-]+)(?:\s+([A-Za-z].*))?", re.ASCII)
_DAY = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)(?:[T\s]\s*(?P<time>\d{1,2}:\d\d(?::\d\d)?))?"
    r"(?:\s*(?P<offset>Z|[+-]\d\d:?\d\d)|\s+(?P<zone>\S.*))?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression of five fields in a time zone, as Debian's cron reads it.

    A time that a change to summer time skips is due right after it, and one that comes twice is due
    once.
    """

    expression: str
    zone: tzinfo

    def __post_init__(self) -> None:
        try:
            if len(self.expression.split()) != 5:
                raise CronSimError("wrong number of fields")
            next(CronSim(self.expression, _ANY))
        except (CronSimError, StopIteration) as error:
            why = str(error).lower() or "it is never due"
            if "-" in self.expression:
                why += " (a range does not wrap around: write 22-23,0-6)"
            raise ValueError(f"{self.expression!r} is not a cron expression: {why}") from None

    @classmethod
    def parse(cls, text: str) -> Cron:
        """Return the cron expression in a text such as `0 3 * * * Europe/Rome`.

        Without a zone it is that of the machine. Raises ValueError for any other text.
        """
        found = _FIELDS.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"{text!r} is not a cron expression of five fields")
        return cls(found[1], zone_of(found[2]))

    def after(self, at: datetime) -> datetime:
        """Return the first time after `at` when the expression is due, in UTC."""
        dues = (due.astimezone(UTC) for due in CronSim(self.expression, at.astimezone(self.zone)))
        return next(due for due in dues if due > at)

    def is_open(self, at: datetime) -> bool:
        """Return whether the expression is due in this minute."""
        minute = at.replace(second=0, microsecond=0)
        return self.after(minute - timedelta(seconds=1)) == minute


@dataclass(frozen=True, slots=True)
class Daily:
    """Hours of each day in a time zone: from `begin` until before `end`, also over midnight."""

    begin: time
    end: time
    zone: tzinfo

    def is_open(self, at: datetime) -> bool:
        """Return whether a clock on the wall is within the hours."""
        now = at.astimezone(self.zone).time()
        if self.begin < self.end:
            return self.begin <= now < self.end
        return now >= self.begin or now < self.end

    def after(self, at: datetime) -> datetime:
        """Return the first full minute after `at` within the hours."""
        minute = at.replace(second=0, microsecond=0) + _MINUTE
        while not self.is_open(minute):  # within two days, whatever the clock is changed to
            minute += _MINUTE
        return minute


Window: TypeAlias = Daily | Cron
"""Hours in which work may begin; those of a cron expression are the minutes at which it is due."""


class Due(NamedTuple):
    """A time until which an item waits, and how it was written."""

    at: datetime
    text: str


def next_opening(windows: Sequence[Window], now: datetime) -> datetime:
    """Return when one of the windows is open: `now` if one is, or if there are none."""
    if not windows or any(window.is_open(now) for window in windows):
        return now
    return min(window.after(now) for window in windows)


def parse_window(text: str) -> Window:
    """Return the hours in a text such as `22:00-07:00`, `22-7 Europe/Rome` or `* 9-17 * * 1-5`.

    Raises:
        ValueError: it is neither hours nor a cron expression, or a window that is never open.
    """
    found = _TIMES.fullmatch(text.strip())
    if found is None:
        if _FIELDS.fullmatch(text.strip()) is None:
            raise ValueError(
                'must be hours such as "22:00-07:00", with a zone such as "Europe/Rome" if it is '
                'not yours, or a cron expression such as "* 9-17 * * 1-5"'
            )
        cron = Cron.parse(text)
        if cron.expression.split()[0] != "*":
            raise ValueError(
                'a cron expression of hours must begin with "*", as work may begin in each minute '
                'at which it is due: write "* 22 * * *" for the hour from 22:00'
            )
        return cron
    begin = _time_of(found[1])
    end = time() if found[2] in ("24", "24:00") else _time_of(found[2])
    if begin == end:
        raise ValueError("is never open, as it ends when it begins; leave it out to work all day")
    return Daily(begin, end, zone_of(found[3]))


def parse_due(text: str) -> Due | None:
    """Return the time in a text such as `2026-12-01` or `2026-12-01 08:00 Europe/Rome`.

    A date begins at midnight, by default in the zone of the machine. Returns None for a text that
    does not begin with a date, such as the name of an item.

    Raises:
        ValueError: the time does not exist, or the zone is unknown.
    """
    found = _DAY.fullmatch(text.strip())
    if found is None:
        return None
    zone = zone_of(found["offset"] or found["zone"])
    at = datetime.combine(date.fromisoformat(found["day"]), _time_of(found["time"] or "0"), zone)
    try:
        return Due(at.astimezone(UTC), text.strip())
    except OverflowError as error:
        raise ValueError(str(error)) from None


def zone_of(name: str | None) -> tzinfo:
    """Return the zone of that name, or that of the machine. Raises ValueError for an unknown one.

    A name is one of IANA, such as `Europe/Rome`, or what `find_zone` supports.
    """
    local = local_zone(os.environ)
    zone = local if name is None else find_zone(name, now=_ANY, local=local)
    if zone is None:
        raise ValueError(f"{name!r} is not a time zone; write one such as Europe/Rome or UTC+2")
    return zone


def _time_of(text: str) -> time:
    hour, minute, second = (*map(int, text.split(":")), 0, 0)[:3]
    try:
        return time(hour, minute, second)
    except ValueError:
        raise ValueError(f"{text!r} is not a time of the day such as 22:00 or 7") from None
