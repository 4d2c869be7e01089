"""What is known of usage windows, and when nothing new may start."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cuggino.domain import Overage, QuotaPlan, QuotaWindows
from cuggino.events import QuotaUsed

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
ONE = NOON + timedelta(hours=1)
TWO = NOON + timedelta(hours=2)


def used(
    share: float, resets_at: datetime | None = ONE, *, window: str = "five_hour", agent: str = "a"
) -> QuotaUsed:
    return QuotaUsed(window=window, used=share, resets_at=resets_at, agent=agent)


WEEK = used(0.9, TWO, window="seven_day")


@pytest.mark.parametrize(
    ("reports", "reserve", "overage", "until"),
    [
        # Nothing is known, or nothing is planned.
        ([], 0.2, "pay", None),
        ([used(1)], 0, "pay", None),
        # The reserve.
        ([used(0.79)], 0.2, "pay", None),
        ([used(0.8)], 0.2, "pay", ONE),
        ([used(0.3)], 0.7, "pay", ONE),
        ([used(0.9)], 0.1, "pay", ONE),
        ([used(0.5), used(0.85)], 0.2, "pay", ONE),
        ([used(0.85), used(0.5)], 0.2, "pay", None),
        ([used(0.85), WEEK], 0.2, "pay", TWO),
        ([used(0.5), WEEK], 0.2, "pay", TWO),
        ([used(0.85, agent="b")], 0.2, "pay", None),
        # A window that was reset, or that nobody can wait for.
        ([used(1, NOON)], 0.2, "pay", None),
        ([used(1, None)], 0.2, "stop", None),
        # Overage.
        ([used(0.99)], 0, "stop", None),
        ([used(1)], 0, "stop", ONE),
        ([used(0.85)], 0.2, "stop", ONE),
    ],
)
def test_when_nothing_new_starts(
    reports: list[QuotaUsed], reserve: float, overage: Overage, until: datetime | None
) -> None:
    """The last reset of the windows that are used up to the reserve is waited for."""
    plan = QuotaPlan(reserve=reserve, overage=overage)
    for report in reports:
        plan.windows.add(report)
    refusal = plan.refusal("a", NOON)
    assert until == (refusal.resets_at if refusal is not None else None)
    assert refusal is None or refusal.planned


@pytest.mark.parametrize(
    ("reserve", "message"),
    [
        (0.2, "a: five_hour 100 % used, and quotaReserve keeps 20 % of it"),
        (0, 'a: five_hour 100 % used, and overage is "stop"'),
    ],
)
def test_the_reason(reserve: float, message: str) -> None:
    """The message names agent, window, share and setting."""
    plan = QuotaPlan(reserve=reserve, overage="stop")
    plan.windows.add(used(1))
    assert message == str(plan.refusal("a", NOON))


@pytest.mark.parametrize(
    ("after", "changes"),
    [
        (used(0.5), False),
        (used(0.5049), False),
        (used(0.51), True),
        (used(0.49), True),
        (used(0.5, ONE + timedelta(seconds=30)), False),
        (used(0.5, TWO), True),
        (used(0.5, None), True),
        (used(0.5, agent="b"), True),
        (used(0.5, window="seven_day"), True),
    ],
)
def test_changes(after: QuotaUsed, changes: bool) -> None:
    """A report changes what is known by a percent or by another reset."""
    windows = QuotaWindows()
    assert used(0.5) == windows.add(used(0.5))
    assert (after if changes else None) == windows.add(after)
    assert after in windows.at(NOON)


@pytest.mark.parametrize(
    ("shares", "nearly"),
    [
        ([0.5, 0.79, 0.8, 0.9, 1], [False, False, True, False, False]),
        ([0.9, 0.95, 0.5, 0.85], [True, False, False, True]),
        ([0.7999, 0.8], [False, True]),
    ],
)
def test_windows_that_are_nearly_used_up(shares: list[float], nearly: list[bool]) -> None:
    """The report that passes four fifths says so, once."""
    windows = QuotaWindows()
    reports = [windows.add(used(share)) for share in shares]
    assert nearly == [report is not None and report.nearly for report in reports]


def test_the_next_window_may_be_nearly_used_up_too() -> None:
    """After a reset, the first report of four fifths or more says so again."""
    windows = QuotaWindows()
    for resets_at in (ONE, TWO):
        report = windows.add(used(0.9, resets_at))
        assert report is not None
        assert report.nearly


def test_windows_of_another_process() -> None:
    """Of each window, the later reset counts, and then the larger share."""
    windows = QuotaWindows()
    for report in (used(0.5), used(0.1, TWO, agent="b"), used(0.2, agent="c")):
        windows.add(report)
    windows.merge([used(0.4), used(0.9, agent="b"), used(0.3, agent="c"), used(0.6, agent="d")])
    known = {one.agent: (one.used, one.resets_at) for one in windows.at(NOON)}
    assert {"a": (0.5, ONE), "b": (0.1, TWO), "c": (0.3, ONE), "d": (0.6, ONE)} == known
