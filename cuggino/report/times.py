"""The times in a report, all in one zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone


@dataclass(frozen=True, slots=True)
class Times:
    """The formats for the times of a run from `start` to `end`."""

    zone: timezone
    start: datetime
    end: datetime

    @property
    def on_one_day(self) -> bool:
        """Return whether the run began and ended on the same day."""
        return self.local(self.start).date() == self.local(self.end).date()

    @property
    def name(self) -> str:
        """Return the zone, as `UTC+01:00`."""
        return str(self.zone) if self.zone.utcoffset(None) else "UTC"

    def local(self, at: datetime) -> datetime:
        return at.astimezone(self.zone)

    def full(self, at: datetime) -> str:
        return f"{self.local(at):%Y-%m-%d %H:%M:%S}"

    def span(self, start: datetime, end: datetime, *, is_open: bool = False) -> str:
        """Return day and clock times, such as `November 28, 2026, 22:04 to 06:31 (UTC+01:00)`."""
        first, last = self.local(start), self.local(end)
        day = f"{last:%B} {last.day}, " if first.date() != last.date() else ""
        until = "now" if is_open else f"{day}{last:%H:%M}"
        begun = f"{first:%H:%M}"
        clock = begun if begun == until else f"{begun} to {until}"
        return f"{first:%B} {first.day}, {first.year}, {clock} ({self.name})"

    def short(self, at: datetime) -> str:
        """Return the time to the second, with month and day in a run of several days."""
        return f"{self.local(at):{'%H:%M:%S' if self.on_one_day else '%m-%d %H:%M:%S'}}"

    def chart(self, at: datetime) -> str:
        return f"{self.local(at):%Y-%m-%d %H:%M:%S.%f}"

    def milliseconds(self, at: datetime) -> int:
        """Return milliseconds since the epoch, treating local time as UTC, for the page."""
        return round(self.local(at).replace(tzinfo=UTC).timestamp() * 1000)


def zone_at(at: datetime) -> timezone:
    """Return the offset of this machine's local time at that moment, for a whole report.

    A single offset prevents a repeated hour at a clock change.
    """
    return timezone(at.astimezone().utcoffset() or timedelta())
