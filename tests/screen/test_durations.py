"""Human-readable durations."""

from __future__ import annotations

import pytest

from cuggino.runs.words import format_duration, format_pause


@pytest.mark.parametrize(
    ("expected", "seconds"),
    [
        ("0s", 0),
        ("12s", 12.9),
        ("59s", 59.99),
        ("1m 0s", 60),
        ("1m 30s", 90),
        ("59m 59s", 3599.9),
        ("1h 0m", 3600),
        ("2h 5m", 7530),
        ("26h 0m", 93600),
        ("5s", -5),
    ],
)
def test_duration(expected: str, seconds: float) -> None:
    """A duration shows its two largest units, rounded down."""
    assert expected == format_duration(seconds)


@pytest.mark.parametrize(
    ("expected", "seconds"),
    [
        ("0s", 0),
        ("0.3s", 0.25001),
        ("1.5s", 1.5),
        ("2s", 2.0),
        ("2s", 1.96),
        ("9.9s", 9.94),
        ("10s", 9.96),
        ("10s", 10.7),
        ("1m 30s", 90.5),
    ],
)
def test_pause(expected: str, seconds: float) -> None:
    """A pause below ten seconds is rounded to tenths; longer ones are normal durations."""
    assert expected == format_pause(seconds)
