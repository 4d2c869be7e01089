"""The number of slots that may be at work."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cuggino.domain import SlotLimit, is_overload
from cuggino.errors import AgentFailed, LoopError, QuotaExceeded
from cuggino.events import AgentRetry

NOW = datetime(2026, 11, 23, tzinfo=UTC)


def test_an_overload_halves_the_limit_and_items_raise_it_by_one() -> None:
    """It falls to one at least, and recovers up to all slots."""
    limit = SlotLimit(slots=8)
    seen = [limit.active]
    for n in range(5):
        limit = limit.overloaded("a", NOW + timedelta(minutes=n))
        seen.append(limit.active)
    assert [8, 4, 2, 1, 1, 1] == seen
    for n in range(8):
        limit = limit.ended(f"{n}")
        seen.append(limit.active)
    assert [2, 3, 4, 5, 6, 7, 8, 8] == seen[6:]


def test_an_overload_of_all_slots_halves_once() -> None:
    """Seven agents that are refused within seconds are one reason."""
    limit = SlotLimit(slots=7)
    for n in range(7):
        limit = limit.overloaded(f"{n}", NOW + timedelta(seconds=4 * n))
    assert 3 == limit.active
    assert 1 == limit.overloaded("0", NOW + timedelta(minutes=2)).active


def test_an_item_that_met_an_overload_does_not_raise_the_limit() -> None:
    """Nor does one that failed; the next attempt of the item can raise it."""
    limit = SlotLimit(slots=4).overloaded("a", NOW).overloaded("b", NOW)
    limit = limit.ended("a")
    assert 2 == limit.active
    assert 2 == limit.ended("c", succeeded=False).active
    assert 3 == limit.ended("a").active
    assert frozenset() == limit.ended("b", succeeded=False).met


@pytest.mark.parametrize(
    ("reason", "expected"), [("overloaded", True), ("rate_limit", True), ("crash", False)]
)
def test_overloads(reason: str, expected: bool) -> None:
    """A retry, and a session or loop that failed, for the load of the service."""
    retry = AgentRetry(reason=reason, message="", attempt=1, max_retries=2, retry_in=1)
    failed = AgentFailed("x", reason=reason)  # type: ignore[arg-type]
    wrapped = LoopError("planning", "x", cause=failed)
    assert [expected] * 3 == [is_overload(x) for x in (retry, failed, wrapped)]


def test_a_usage_limit_is_no_overload() -> None:
    """It stops all slots anyway."""
    assert not is_overload(QuotaExceeded("limit"))
    assert not is_overload(None)
