"""`repeat_on` at the times of a cron expression, in virtual time."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from cuggino.errors import AgentFailed
from cuggino.events import AgentRetry
from cuggino.operators import Schedule, repeat_on, retry_session
from cuggino.testing import Marbles, VirtualClock

ROME = ZoneInfo("Europe/Rome")
NIGHTLY = Schedule.cron("30 2 * * *", "Europe/Rome")


def marbles(day: str) -> Marbles:
    """Return marbles whose second 0 is 2 am of that day in Rome."""
    start = datetime.fromisoformat(f"{day} 02:00").replace(tzinfo=ROME).astimezone(UTC)
    down = AgentFailed("down", reason="connection")
    return Marbles(clock=VirtualClock(start=start), error=down, a="a")


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        ("2026-06-06", "a-- 29m57s a-- 23h59m57s a--|"),
        ("2026-03-28", "a-- 29m57s a-- 23h29m57s a--|"),  # at 03:00, as 02:30 is skipped
        ("2026-10-24", "a-- 29m57s a-- 23h59m57s a--|"),  # at the first 02:30
        ("2026-10-25", "a-- 29m57s a-- 24h59m57s a--|"),
    ],
)
def test_each_night(day: str, expected: str) -> None:
    """The work of a night, which takes three seconds, does not delay that of the next one."""
    t = marbles(day)
    t.check(t.cold("a--|").pipe(repeat_on(NIGHTLY.times(2))), expected)


def test_a_retry_at_night() -> None:
    """A failed session is tried again when the expression is due."""
    t = marbles("2026-06-06")
    source, again = t.cold("--#"), t.cold("-|")
    seen = t.record(source.pipe(retry_session(NIGHTLY, again=lambda _: again)), until=90_000)
    assert [1798.0] == [event.retry_in for _, _, event in seen if isinstance(event, AgentRetry)]
    assert (1801, "completed", None) == seen[-1]
