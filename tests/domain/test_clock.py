"""Hours of work, cron expressions and times of items, in zones whose clocks change."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from cuggino.domain import Window, next_opening, parse_due, parse_every, parse_window
from tests.vectors import each

ROME = ZoneInfo("Europe/Rome")


@pytest.fixture(autouse=True)
def in_rome(monkeypatch: pytest.MonkeyPatch) -> None:
    """The zone of the machine."""
    monkeypatch.setenv("TZ", "Europe/Rome")


def local(text: str, fold: int = 0) -> datetime:
    """Return a time in Rome, the second of that name with `fold`."""
    return datetime.fromisoformat(text).replace(tzinfo=ROME, fold=fold).astimezone(UTC)


@each(
    "hours, now, opening",
    [
        ("22:00-07:00", "2026-06-01 12:00", "2026-06-01 22:00"),
        ("22:00-07:00", "2026-06-01 21:59:59", "2026-06-01 22:00"),
        ("22:00-07:00", "2026-06-01 22:00", None),
        ("22:00-07:00", "2026-06-02 06:59:59", None),
        ("22:00-07:00", "2026-06-02 07:00", "2026-06-02 22:00"),
        ("9-12:30", "2026-06-01 12:29", None),
        ("9-12:30", "2026-06-01 12:30", "2026-06-02 09:00"),
        ("20-24", "2026-06-01 23:59", None),
        ("20-24", "2026-06-02 00:00", "2026-06-02 20:00"),
        ("9-10|20-21", "2026-06-01 12:00", "2026-06-01 20:00"),
        ("20-21|9-10", "2026-06-01 20:30", None),
        ("22-7 America/New_York", "2026-06-01 12:00", None),  # 6 am there
        ("22-7 America/New_York", "2026-06-01 13:00", "2026-06-02 04:00"),
        ("22-7 UTC+2", "2026-01-01 20:00", "2026-01-01 21:00"),
        ("* 9-17 * * 1-5", "2026-06-05 17:59", None),  # a Friday
        ("* 9-17 * * 1-5", "2026-06-05 18:00", "2026-06-08 09:00"),
        ("* 22-23,0-6 * * * UTC", "2026-06-01 12:00", "2026-06-02 00:00"),
        # In March, 02:00 is 03:00; in October, 02:00 to 03:00 comes twice.
        ("2:30-7", "2026-03-29 01:59", "2026-03-29 03:00"),
        ("2-3", "2026-03-29 01:00", "2026-03-30 02:00"),
        ("1-2:30", "2026-03-29 03:00", "2026-03-30 01:00"),
        ("* 2 * * *", "2026-03-29 01:00", "2026-03-30 02:00"),
        ("22-7", "2026-10-24 21:00", "2026-10-24 22:00"),
        ("3-4", "2026-10-25 01:59", "2026-10-25 03:00"),
    ],
)
def test_the_next_opening(hours: str, now: str, opening: str | None) -> None:
    """Hours are those of a clock on the wall; within them, work may begin now."""
    windows = [parse_window(text) for text in hours.split("|")]
    at = local(now)
    assert (at if opening is None else local(opening)) == next_opening(windows, at)


def test_hours_that_come_twice() -> None:
    """In the night in which an hour is repeated, hours in it are open twice."""
    windows = [parse_window("2:00-2:30")]
    for fold in (0, 1):
        assert local("2026-10-25 02:10", fold) == next_opening(
            windows, local("2026-10-25 02:10", fold)
        )
    between = local("2026-10-25 02:40")
    assert local("2026-10-25 02:00", fold=1) == next_opening(windows, between)


def test_without_hours_work_begins_at_once() -> None:
    now = local("2026-06-01 12:00")
    assert now == next_opening([], now)


@given(
    windows=st.lists(
        st.sampled_from(["22-7", "2:30-3:15", "* 2,14 * * *", "9-9:01 UTC", "* 1 * * 7"]).map(
            parse_window
        ),
        min_size=1,
        max_size=2,
    ),
    day=st.sampled_from(["2026-03-28", "2026-03-29", "2026-10-24", "2026-10-25", "2026-06-06"]),
    minute=st.integers(0, 1439),
    seconds=st.floats(0, 59.9),
)
def test_no_minute_before_the_opening_is_open(
    windows: list[Window], day: str, minute: int, seconds: float
) -> None:
    """The opening is open, and no minute before it is."""
    now = local(day) + timedelta(minutes=minute, seconds=seconds)
    opening = next_opening(windows, now)
    at = now
    while at < opening:
        assert not any(window.is_open(at) for window in windows)
        at += timedelta(minutes=1)
    assert any(window.is_open(opening) for window in windows)


@each(
    "text, message",
    [
        ("25-7", "'25' is not a time of the day"),
        ("22:60-7", "'22:60' is not a time of the day"),
        ("24-7", "'24' is not a time of the day"),
        ("22-22:00", "is never open"),
        ("0-24", "is never open"),
        ("22-7 Mars/Base", "'Mars/Base' is not a time zone; write one such as Europe/Rome"),
        ("22-7 ../../etc/passwd", "is not a time zone"),
        ("22:00", "must be hours such as"),
        ("", "must be hours such as"),
        ("at night", "must be hours such as"),
        ("* 22-6 * * *", "bad hour (a range does not wrap around: write 22-23,0-6)"),
        ("* * 31 2 *", "not a cron expression: bad day-of-month"),
        ("0 22 * * *", 'must begin with "*"'),
        ("* 22 * * * Mars/Base", "'Mars/Base' is not a time zone"),
    ],
)
def test_bad_hours(text: str, message: str) -> None:
    """What is no window is an error that says why."""
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_window(text)


@each(
    "text, due",
    [
        ("2026-12-01", "2026-12-01 00:00"),
        ("2026-12-01 08:00", "2026-12-01 08:00"),
        ("2026-12-01T8:00:30", "2026-12-01 08:00:30"),
        ("2026-12-01T08:00Z", "2026-12-01 09:00"),
        ("2026-12-01 08:00+05:30", "2026-12-01 03:30"),
        ("2026-12-01 08:00 America/New_York", "2026-12-01 14:00"),
        ("2026-12-01 UTC", "2026-12-01 01:00"),
        ("2026-12-01-report.md", None),
        ("001-login", None),
        ("2026-12", None),
        ("20261201", None),
    ],
)
def test_the_time_of_an_item(text: str, due: str | None) -> None:
    """A date is a time, in the zone of the machine or its own; anything else is a name."""
    found = parse_due(text)
    assert (None if due is None else local(due)) == (None if found is None else found.at)


@each(
    "text, message",
    [
        ("2026-13-01", "month must be in 1..12"),
        ("2026-02-30", "day"),
        ("2026-12-01 25:00", "'25:00' is not a time of the day"),
        ("2026-12-01 08:00 Mars/Base", "'Mars/Base' is not a time zone"),
        ("9999-12-31 23:00 UTC-5", "out of range"),
    ],
)
def test_times_that_are_none(text: str, message: str) -> None:
    """A date that does not exist is an error, not the name of an item."""
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_due(text)


def test_recurring_work() -> None:
    """A duration is a constant delay; a cron expression leads to its next time."""
    noon = local("2026-06-01 12:00")
    assert 6 * 3600 == parse_every("6h").delay(0)
    assert 15 * 3600 == parse_every("0 3 * * *").delay(0, now=noon)
    assert 17 * 3600 == parse_every("0 3 * * * UTC").delay(0, now=noon)


@each(
    "text, message",
    [
        ("", "is not a duration"),
        ("6x", "is not a duration"),
        ("0m", "is below a minute"),
        ("59s", "is below a minute"),
        ("99999h", "above a year"),
        ("* * * *", "is not a cron expression of five fields"),
        ("x * * * *", "bad minute"),
        ("0 3 * * * Mars/Base", "is not a time zone"),
    ],
)
def test_recurring_work_that_is_none(text: str, message: str) -> None:
    """Neither a duration of at least a minute nor a cron expression."""
    with pytest.raises(ValueError, match=message):
        parse_every(text)
