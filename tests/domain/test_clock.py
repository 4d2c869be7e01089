"""Hours of work, cron expressions, zones and schedules, also where clocks change."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from cuggino.domain import Window, next_opening, parse_due, parse_every, parse_window
from cuggino.domain.schedule import Schedule, parse_duration
from cuggino.domain.zone_names import find_zone
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
    "parse, text, message",
    [
        *(
            (parse_window, text, message)
            for text, message in (
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
            )
        ),
        # A date that does not exist is an error, not the name of an item.
        (parse_due, "2026-13-01", "month must be in 1..12"),
        (parse_due, "2026-02-30", "day"),
        (parse_due, "2026-12-01 25:00", "'25:00' is not a time of the day"),
        (parse_due, "2026-12-01 08:00 Mars/Base", "'Mars/Base' is not a time zone"),
        (parse_due, "9999-12-31 23:00 UTC-5", "out of range"),
        # Neither a duration of at least a minute nor a cron expression.
        (parse_every, "", "is not a duration"),
        (parse_every, "6x", "is not a duration"),
        (parse_every, "0m", "is below a minute"),
        (parse_every, "59s", "is below a minute"),
        (parse_every, "99999h", "above a year"),
        (parse_every, "* * * *", "is not a cron expression of five fields"),
        (parse_every, "x * * * *", "bad minute"),
        (parse_every, "0 3 * * * Mars/Base", "is not a time zone"),
        *((parse_duration, text, "is not a duration") for text in ("", "soon", "1d", "-5")),
        *((parse_duration, text, "is not a duration") for text in ("1.5h", -1, float("nan"))),
    ],
)
def test_invalid_times(parse: Callable[[Any], object], text: Any, message: str) -> None:
    """What is no window, date, recurrence or duration is an error that says why."""
    with pytest.raises(ValueError, match=re.escape(message)):
        parse(text)


@each(
    "use, message",
    [
        (lambda: parse_duration(cast("float", None)), "a number of seconds or a text such as 8h"),
        (lambda: Schedule.constant(cast("float", [5])), "or a text such as 8h, not [5]"),
        (lambda: Schedule.constant(1).union(cast("Schedule", 3)), "union() needs a Schedule"),
        (
            lambda: Schedule.constant(1).and_then(cast("Schedule", "5s")),
            "needs a Schedule, not '5s'",
        ),
        (lambda: Schedule.constant(1).times(cast("int", 1.5)), "count must be a whole number"),
    ],
)
def test_values_of_a_wrong_type(use: Callable[[], object], message: str) -> None:
    """The error comes where the schedule is made, not with its first delay."""
    with pytest.raises(TypeError, match=re.escape(message)):
        use()


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


def test_recurring_work() -> None:
    """A duration is a constant delay; a cron expression leads to its next time."""
    noon = local("2026-06-01 12:00")
    assert 6 * 3600 == parse_every("6h").delay(0)
    assert 15 * 3600 == parse_every("0 3 * * *").delay(0, now=noon)
    assert 17 * 3600 == parse_every("0 3 * * * UTC").delay(0, now=noon)


WINTER = datetime(2026, 1, 15, 12, tzinfo=UTC)


@each(
    "name, hours",
    [
        ("Z", 0),
        ("Coordinated Universal Time", 0),
        ("UTC time", 0),
        ("zulu", 0),
        ("utc+2", 2),
        ("GMT -03:30", -3.5),
        ("−5", -5),
        ("+0530", 5.5),
        ("UTC+23:59", 24 - 1 / 60),
        ("ACST", 9.5),
        ("HST", -10),
        ("Eastern Standard Time", -5),
        ("us mountain time", -7),
        ("PT", -8),
        ("ASIA/tokyo", 9),
        ("America/Argentina/Buenos_Aires", -3),
        ("your local time", 1),
        ("Time zone", 1),
        ("local", 1),
        ("your time", 1),
        ("CEST", 1),
    ],
)
def test_a_zone_by_name(name: str, hours: float) -> None:
    """Each notation of a zone has its winter offset."""
    zone = find_zone(name, now=WINTER, local=ROME)
    assert zone is not None
    assert timedelta(hours=hours) == WINTER.astimezone(zone).utcoffset()


@each(
    "name",
    [
        "UTC+24",
        "UTC+99:00",
        "IST",
        "local bus",
        "Eastern Time Square",
        "",
        "Mars/Olympus",
        "../etc/passwd",
        "/etc/localtime",
        "ünknown",
    ],
)
def test_an_unknown_zone_is_none(name: str) -> None:
    """An unknown or ambiguous zone, or an offset above a day, is None and no error."""
    assert find_zone(name, now=WINTER, local=ROME) is None


@each(
    "names, place",
    [
        ("EST EDT", "America/New_York"),
        ("CST CDT", "America/Chicago"),
        ("MST MDT", "America/Denver"),
        ("PST PDT", "America/Los_Angeles"),
        ("AKST AKDT", "America/Anchorage"),
        ("HST", "Pacific/Honolulu"),
        ("AST ADT", "America/Halifax"),
        ("BRT", "America/Sao_Paulo"),
        ("WET WEST", "Europe/Lisbon"),
        ("GMT BST", "Europe/London"),
        ("CET CEST", "Europe/Rome"),
        ("EET EEST", "Europe/Athens"),
        ("MSK", "Europe/Moscow"),
        ("SGT", "Asia/Singapore"),
        ("HKT", "Asia/Hong_Kong"),
        ("AWST", "Australia/Perth"),
        ("JST", "Asia/Tokyo"),
        ("KST", "Asia/Seoul"),
        ("ACST ACDT", "Australia/Adelaide"),
        ("AEST AEDT", "Australia/Sydney"),
        ("NZST NZDT", "Pacific/Auckland"),
    ],
)
def test_abbreviations_are_those_of_their_places(names: str, place: str) -> None:
    """An abbreviation has the offset of its place while the place uses it."""
    summer = WINTER + timedelta(days=182)
    offsets = {when.astimezone(ZoneInfo(place)).utcoffset() for when in (WINTER, summer)}
    found = [find_zone(name, now=WINTER, local=UTC) for name in names.split()]
    assert sorted(map(str, offsets)) == sorted(
        str(zone and zone.utcoffset(WINTER)) for zone in found
    )


@each(
    "schedule, delays",
    [
        (Schedule.exponential("5s").capped("15s").times(4), [5, 10, 15, 15]),
        (Schedule.exponential(2, 3).times(3), [2, 6, 18]),
        (Schedule.exponential(2, 1).times(3), [2, 2, 2]),
        (Schedule.constant("1m").times(2), [60, 60]),
        (Schedule.exponential(10).within(30), [10, 20]),
        (Schedule.exponential(10).within(45), [10, 20, 15]),
        (Schedule.exponential(10).within(45).times(2), [10, 20]),
        (Schedule.exponential("5m").capped("1m").times(2), [60, 60]),
        (Schedule.constant(0).within("1h").times(2), [0, 0]),
        (Schedule.exponential("5s").times(0), []),
        (Schedule.exponential("5s").within(0), []),
        (Schedule.exponential(1).union(Schedule.constant(4)).times(4), [1, 2, 4, 4]),
        (Schedule.constant(3).times(2).union(Schedule.constant(5).times(3)), [3, 3, 5]),
        (Schedule.constant(1).times(2).and_then(Schedule.exponential(4).times(2)), [1, 1, 4, 8]),
        (Schedule.constant(1).within(2).and_then(Schedule.constant(4)).within(8), [1, 1, 4, 2]),
        (Schedule.constant(9).times(1).and_then(Schedule.constant(7)).capped(8).times(2), [8, 7]),
    ],
)
def test_delays(schedule: Schedule, delays: list[float]) -> None:
    """The delays grow to the cap and end at the total or the count."""
    assert delays == list(schedule.delays())
    assert len(delays) == schedule.count
    assert schedule.delay(len(delays)) is None


def test_many_delays_within_a_total() -> None:
    """A day of polls every second is counted at once, not in quadratic time."""
    polls = Schedule.constant("1s").within("24h")
    assert polls.count == 86_400
    assert sum(polls.delays()) == 86_400


def test_an_endless_schedule() -> None:
    """Without a total or a count there is always a next delay, and none overflows."""
    schedule = Schedule.exponential("5s").capped("5m")
    assert schedule.count is None
    assert [5, 10, 20] == list(itertools.islice(schedule.delays(), 3))
    assert 300 == schedule.delay(10**9)
    assert schedule.delay(10**9) == schedule.within("100000h").delay(10)


def test_jitter_stays_within_the_limits() -> None:
    """The random number spreads each delay by the share, within the cap and the total."""
    schedule = Schedule.exponential(100).capped(200).jittered(0.5).times(4)
    numbers = iter([0.0, 0.25, 1.0, 0.5])
    assert [50, 150, 200, 200] == list(schedule.delays(random=lambda: next(numbers)))
    limited = Schedule.constant(100).jittered(0.5).within(250)
    assert [150, 100] == list(limited.delays(random=lambda: 1.0))
    assert [50, 50, 25] == list(limited.delays(random=lambda: 0.0))
    assert 4 == schedule.count
    assert 80 <= (Schedule.constant(100).jittered().delay(0) or 0) <= 120


_limited = st.builds(
    lambda first, factor, longest, times: (
        Schedule.exponential(first, factor).capped(longest).times(times)
    ),
    st.integers(0, 9),
    st.integers(1, 3),
    st.integers(0, 50),
    st.integers(0, 5),
)
_within = st.builds(Schedule.within, _limited, st.integers(0, 60))
schedules = st.recursive(
    _limited | _within,
    lambda parts: (
        st.builds(Schedule.union, parts, parts)
        | st.builds(Schedule.and_then, parts, parts)
        | st.builds(Schedule.times, parts, st.integers(0, 8))
        | st.builds(Schedule.within, parts, st.integers(0, 60))
    ),
    max_leaves=5,
)
"""Finite schedules without jitter, all of whose delays are exact."""


def delays_of(schedule: Schedule) -> list[float]:
    return list(schedule.delays())


@given(schedules)
def test_a_schedule_is_its_delays(schedule: Schedule) -> None:
    """Asked one by one or in a row, the delays are the same, and as many as counted."""
    delays = delays_of(schedule)
    assert delays == [schedule.delay(taken) for taken in range(len(delays))]
    assert schedule.delay(len(delays)) is None
    assert len(delays) == schedule.count


@given(schedules, schedules)
def test_a_union_continues_while_either_does_with_the_shorter_delay(
    left: Schedule, right: Schedule
) -> None:
    """Position by position the shorter delay, then those of the longer schedule."""
    pairs = itertools.zip_longest(delays_of(left), delays_of(right), fillvalue=float("inf"))
    assert delays_of(left.union(right)) == [min(pair) for pair in pairs]


@given(schedules, schedules)
def test_one_schedule_after_the_other(first: Schedule, then: Schedule) -> None:
    """The delays of both, in a row."""
    assert delays_of(first.and_then(then)) == [*delays_of(first), *delays_of(then)]


@given(schedules, schedules, schedules)
def test_the_laws_of_union_and_and_then(a: Schedule, b: Schedule, c: Schedule) -> None:
    """Both are associative, a union commutes and repeats nothing, no delays change nothing."""
    never = Schedule.constant(1).times(0)
    assert delays_of(a.union(b).union(c)) == delays_of(a.union(b.union(c)))
    assert delays_of(a.and_then(b).and_then(c)) == delays_of(a.and_then(b.and_then(c)))
    assert delays_of(a.union(b)) == delays_of(b.union(a))
    assert delays_of(a.union(a)) == delays_of(a)
    for same in (a.union(never), a.and_then(never), never.and_then(a)):
        assert delays_of(same) == delays_of(a)


@given(schedules, st.integers(1, 9), st.integers(0, 200))
def test_endless_parts(schedule: Schedule, delay: int, taken: int) -> None:
    """An endless part makes the whole endless, and after an endless part nothing follows."""
    endless = Schedule.constant(delay)
    assert schedule.union(endless).count is None
    assert endless.and_then(schedule).delay(taken) == delay
    assert schedule.and_then(endless).delay((schedule.count or 0) + taken) == delay


@each(
    "schedule",
    [
        Schedule.constant(0).union(Schedule.exponential(1)),
        Schedule.constant(1).times(2).and_then(Schedule.constant(0)),
        Schedule.constant(0).and_then(Schedule.constant(1)),
        Schedule.exponential(5).capped(0),
    ],
)
def test_a_total_does_not_end_delays_of_nothing(schedule: Schedule) -> None:
    """Delays of 0 never fill the total: their number is unlimited, and counting it returns."""
    assert schedule.within("1h").count is None
    assert schedule.within("1h").times(5).count == 5


def test_each_part_has_its_own_jitter() -> None:
    """The parts of a union are jittered before they are compared, those of a row one by one."""
    jittered = Schedule.constant(100).jittered(0.5)
    assert 50 == jittered.union(Schedule.constant(60)).delay(0, random=lambda: 0.0)
    assert 60 == jittered.union(Schedule.constant(60)).delay(0, random=lambda: 1.0)
    row = jittered.times(1).and_then(Schedule.constant(10).times(1))
    assert [150, 10] == list(row.delays(random=lambda: 1.0))


@each(
    "text, seconds",
    [("8h", 28800), ("1h30m", 5400), ("90m", 5400), ("45s", 45), (" 7 ", 7), (0.5, 0.5)],
)
def test_durations(text: str | float, seconds: float) -> None:
    """A duration is a text with units, or seconds."""
    assert seconds == parse_duration(text)


def test_invalid_schedules() -> None:
    """Shrinking delays, a negative count and an impossible jitter are rejected."""
    with pytest.raises(ValueError, match="factor"):
        Schedule.exponential(1, 0.5)
    with pytest.raises(ValueError, match="count"):
        Schedule.constant(1).times(-1)
    with pytest.raises(ValueError, match="share"):
        Schedule.constant(1).jittered(1.5)


@each(
    "expression, now, hours",
    [
        ("0 22 * * *", "2026-06-01 12:00", [10, 24, 24]),
        ("0 12 * * *", "2026-03-28 12:00", [23, 24, 24]),
        ("0 12 * * *", "2026-10-24 12:00", [25, 24, 24]),
        ("30 2 * * *", "2026-03-28 12:00", [14, 23.5, 24]),  # skipped, so due at 03:00
        ("30 2 * * *", "2026-10-24 12:00", [14.5, 25, 24]),  # comes twice, so due at the first
        ("0 * * * *", "2026-10-25 01:30", [0.5, 1, 1]),
        ("0 3 * * 1-5", "2026-06-05 03:00", [72, 24, 24]),
    ],
)
def test_a_cron_expression(expression: str, now: str, hours: list[float]) -> None:
    """Each delay ends when the expression is due, whatever the clocks are changed to."""
    at = datetime.fromisoformat(now).replace(tzinfo=ROME).astimezone(UTC)
    schedule, found = Schedule.cron(expression, "Europe/Rome"), []
    for taken in range(3):
        found.append(schedule.delay(taken, now=at) or 0.0)
        at += timedelta(seconds=found[-1])
    assert [hour * 3600 for hour in hours] == found
    assert schedule == Schedule.cron(expression, ROME)


def test_a_cron_expression_between_two_equal_times() -> None:
    """After the second 02:50 of a night, 02:45 does not come a third time."""
    at = datetime(2026, 10, 25, 2, 40, tzinfo=ROME, fold=1).astimezone(UTC)
    assert 24 * 3600 + 300 == Schedule.cron("45 2 * * *", ROME).delay(0, now=at)


def test_a_cron_schedule_within_others() -> None:
    """It is capped, counted and combined like others; it has no total, and needs the time."""
    nightly, noon = Schedule.cron("0 22 * * *", UTC), datetime(2026, 6, 1, 12, tzinfo=UTC)
    assert 300 == nightly.capped("5m").delay(7, now=noon)
    assert None is nightly.times(1).delay(1, now=noon)
    assert [60, 36000] == list(
        Schedule.constant("1m").times(1).and_then(nightly.times(1)).delays(clock=lambda: noon)
    )
    assert 60 == nightly.union(Schedule.constant("1m")).delay(0, now=noon)
    assert (None, 2) == (nightly.count, nightly.times(2).count)
    with pytest.raises(ValueError, match="limit it with times"):
        nightly.union(Schedule.constant("1m")).within("1h")
    with pytest.raises(ValueError, match="needs the time"):
        nightly.delay(0)
    with pytest.raises(ValueError, match="not a cron expression: wrong number of fields"):
        Schedule.cron("0 22 * *", UTC)
    with pytest.raises(ValueError, match="not a time zone"):
        Schedule.cron("0 22 * * *", "Mars/Base")
