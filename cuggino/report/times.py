"""Moments as a report writes them, all in one zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone


@dataclass(frozen=True, slots=True)
class Times:
    """Writes the moments of a run that lasted from `start` to `end`."""

    zone: timezone
    start: datetime
    end: datetime

    @property
    def on_one_day(self) -> bool:
        """Whether the run began and ended on the same day."""
        return self.local(self.start).date() == self.local(self.end).date()

    @property
    def name(self) -> str:
        """The zone, as `UTC+01:00`."""
        return str(self.zone) if self.zone.utcoffset(None) else "UTC"

    def local(self, at: datetime) -> datetime:
        """The moment in the zone."""
        return at.astimezone(self.zone)

    def full(self, at: datetime) -> str:
        """Date and time to the second."""
        return f"{self.local(at):%Y-%m-%d %H:%M:%S}"

    def short(self, at: datetime) -> str:
        """The time to the second, with month and day in a run of more than one day."""
        return f"{self.local(at):{'%H:%M:%S' if self.on_one_day else '%m-%d %H:%M:%S'}}"

    def chart(self, at: datetime) -> str:
        """As charts take it: local, without a zone."""
        return f"{self.local(at):%Y-%m-%d %H:%M:%S.%f}"

    def milliseconds(self, at: datetime) -> int:
        """Milliseconds since the epoch, as if the local time were UTC: the page knows no zone."""
        return round(self.local(at).replace(tzinfo=UTC).timestamp() * 1000)


def zone_at(at: datetime) -> timezone:
    """The offset of this machine's local time at that moment, for a whole report.

    One offset for all times, so that a change to or from summer time makes no hour come twice.
    """
    return timezone(at.astimezone().utcoffset() or timedelta())
