"""`Schedule`: its delays, its limits and its durations."""

from __future__ import annotations

import itertools

import pytest

from cuggino.domain.schedule import Schedule, parse_duration
from tests.vectors import each


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
    ],
)
def test_delays(schedule: Schedule, delays: list[float]) -> None:
    """The delays grow to the cap and end at the total or the count."""
    assert delays == list(schedule.delays())
    assert len(delays) == schedule.count
    assert schedule.delay(len(delays)) is None


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
    assert 4 == schedule.count
    assert 80 <= (Schedule.constant(100).jittered().delay(0) or 0) <= 120


def test_refining_returns_a_new_value() -> None:
    """Refining returns another schedule."""
    schedule = Schedule.exponential("5s")
    assert schedule.times(3) != schedule == Schedule.exponential(5.0)


@each(
    "text, seconds",
    [("8h", 28800), ("1h30m", 5400), ("90m", 5400), ("45s", 45), (" 7 ", 7), (0.5, 0.5)],
)
def test_durations(text: str | float, seconds: float) -> None:
    """A duration is a text with units, or seconds."""
    assert seconds == parse_duration(text)


@each("text", ["", "soon", "1d", "-5", "1.5h", -1, float("nan")])
def test_invalid_durations(text: str | float) -> None:
    """A text without a duration, or a negative number, is rejected."""
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


def test_invalid_schedules() -> None:
    """Shrinking delays, a negative count and an impossible jitter are rejected."""
    with pytest.raises(ValueError, match="factor"):
        Schedule.exponential(1, 0.5)
    with pytest.raises(ValueError, match="count"):
        Schedule.constant(1).times(-1)
    with pytest.raises(ValueError, match="share"):
        Schedule.constant(1).jittered(1.5)
