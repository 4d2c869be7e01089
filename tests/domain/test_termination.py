"""When a deliverables loop continues, waits or ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, get_args

from cuggino.domain.deliverables import Verification
from cuggino.domain.termination import (
    ORDER,
    RULES,
    Continue,
    Decision,
    DeliverProgress,
    ExitReason,
    Terminate,
    Wait,
    decide_delivery,
)
from cuggino.events import SessionOutcome
from tests.domain.test_deliverables import made, some
from tests.vectors import each, not_followed, rows

ROWS = {row["id"]: row for row in rows("termination")}
NOT_FOLLOWED = not_followed("termination")
OUTCOMES: dict[str | None, SessionOutcome | None] = {
    None: None,
    "completed": "completed",
    "execution_error": "failed",
    "max_iterations": "max_turns",
    "budget_exceeded": "budget",
    "quota_exceeded": "quota",
}
SEED_ORDER: tuple[ExitReason, ...] = (
    "quota_exceeded",
    "all_verified",
    "all_passed",
    "all_blocked",
    "budget_exceeded",
    "max_iterations",
    "interrupted",
    "max_retries_exceeded",
)
"""The order of Autonoe, in which an interruption comes later."""
NOW = datetime(2026, 3, 4, 10, tzinfo=UTC)
LATER = NOW + timedelta(hours=2)


def picture(said: dict[str, Any]) -> DeliverProgress:
    """Return the state of a loop that a row describes."""
    tracker = said["verification"]
    return DeliverProgress(
        outcome=OUTCOMES[said["session_outcome"]],
        interrupted=said["interrupted"],
        deliverables=None if said["deliverables"] is None else made(*said["deliverables"]),
        iterations=said["iterations"],
        max_iterations=said["max_iterations"],
        consecutive_errors=said["consecutive_errors"],
        max_retries=said["max_retries"],
        wait_for_quota=said["wait_for_quota"],
        quota_reset_time=_time(said["quota_reset_time"]),
        now=_time(said["now"]),
        sync=said["sync_mode"],
        verification=None
        if tracker is None
        else Verification(all=tuple(tracker["all"]), verified=frozenset(tracker["verified"])),
    )


def _time(said: str | None) -> datetime | None:
    return None if said is None else datetime.fromisoformat(said)


def recorded(decision: Decision) -> dict[str, Any]:
    """Return a decision in the form of the rows."""
    match decision:
        case Continue():
            return {"action": "continue"}
        case Wait(seconds=seconds):
            return {"action": "wait", "duration_ms": seconds * 1000}
        case Terminate(reason=reason):
            return {"action": "terminate", "exit_reason": reason}


@each("name", sorted(set(ROWS) - set(NOT_FOLLOWED)))
def test_recorded_decisions(name: str) -> None:
    """A recorded state of a loop leads to its recorded decision."""
    row = ROWS[name]
    assert row["expected"] == recorded(decide_delivery(picture(row["context"])))


@each("name", sorted(NOT_FOLLOWED))
def test_rows_not_followed(name: str) -> None:
    """Every row listed as an exception exists and is decided differently."""
    assert ROWS[name]["expected"] != recorded(decide_delivery(picture(ROWS[name]["context"])))


def test_every_row_is_read() -> None:
    """The data has all recorded rows."""
    assert 73 == len(ROWS)


@each("order", [ORDER, SEED_ORDER])
def test_an_order_has_every_rule_once(order: tuple[ExitReason, ...]) -> None:
    """Both orders contain every rule, and every reason to end has a rule."""
    assert sorted(get_args(ExitReason)) == sorted(order) == sorted(RULES)


EVERYTHING = DeliverProgress(
    interrupted=True,
    outcome="quota",
    deliverables=some(a="passed"),
    iterations=5,
    max_iterations=5,
    consecutive_errors=4,
)


def test_the_order_is_data() -> None:
    """The first of several reasons in the order is reported; the original checks Ctrl-C later."""
    assert Terminate("interrupted") == decide_delivery(EVERYTHING)
    assert Terminate("quota_exceeded") == decide_delivery(EVERYTHING, order=SEED_ORDER)
    found = []
    left = list(SEED_ORDER)
    while isinstance(decision := decide_delivery(EVERYTHING, order=left), Terminate):
        found.append(decision.reason)
        left.remove(decision.reason)
    expected = ["quota_exceeded", "all_passed", "max_iterations", "interrupted"]
    assert [*expected, "max_retries_exceeded"] == found


@each(
    "success, reason",
    [(reason in ("all_passed", "all_verified"), reason) for reason in get_args(ExitReason)],
)
def test_success(success: bool, reason: ExitReason) -> None:
    """Only deliverables that are all passed, or all verified, are a success."""
    assert success == Terminate(reason).success


def test_a_budget_ends_the_loop() -> None:
    """A session over budget ends the loop if there is a budget and work is left."""
    over = DeliverProgress(outcome="budget", deliverables=some(a="pending"))
    assert Continue() == decide_delivery(over)
    assert Continue() == decide_delivery(
        DeliverProgress(outcome="completed", deliverables=some(a="pending"), has_budget=True)
    )
    assert Terminate("budget_exceeded") == decide_delivery(
        DeliverProgress(outcome="budget", deliverables=some(a="pending"), has_budget=True)
    )
    assert Terminate("all_passed") == decide_delivery(
        DeliverProgress(outcome="budget", deliverables=some(a="passed"), has_budget=True)
    )


def test_a_crash_only_checks_the_limits() -> None:
    """After a session with unknown deliverables only limits and errors decide (AUT-058)."""
    assert Terminate("max_iterations") == decide_delivery(
        DeliverProgress(outcome="failed", iterations=2, max_iterations=2, consecutive_errors=9)
    )
    assert Continue() == decide_delivery(
        DeliverProgress(outcome="failed", iterations=1, consecutive_errors=3)
    )


def test_no_retries() -> None:
    """Without retries the first failure is the last."""
    failed = DeliverProgress(outcome="failed", iterations=1, consecutive_errors=1, max_retries=0)
    assert Terminate("max_retries_exceeded") == decide_delivery(failed)


def quota(**more: Any) -> DeliverProgress:
    """Return the state after a session that hit a usage limit, with waiting enabled."""
    return DeliverProgress(outcome="quota", wait_for_quota=True, now=NOW, **more)


def test_a_known_reset_is_waited_for() -> None:
    """The wait lasts until the reset and names it; a past reset is not waited for."""
    assert Wait(7200.0, LATER) == decide_delivery(quota(quota_reset_time=LATER))
    assert Wait(0.0, NOW) == decide_delivery(quota(quota_reset_time=NOW))


@each("expected, pauses", [(900.0, 0), (1800.0, 1), (3600.0, 2), (14400.0, 4), (18000.0, 5)])
def test_an_unknown_reset_is_guessed(expected: float, pauses: int) -> None:
    """Without a reset the pauses double, from a quarter of an hour up to five hours (AUT-054)."""
    assert Wait(expected, None) == decide_delivery(quota(quota_pauses=pauses))


def test_guessing_ends() -> None:
    """When the pauses add up to a day, the loop ends."""
    assert Terminate("quota_exceeded") == decide_delivery(quota(quota_pauses=40))


def test_a_repeated_reset_is_ignored() -> None:
    """The same reset after waiting for it leads to a guessed pause (AUT-080)."""
    again = quota(quota_reset_time=NOW, waited_until=NOW, quota_pauses=1)
    assert Wait(1800.0, None) == decide_delivery(again)
    assert Wait(7200.0, LATER) == decide_delivery(quota(quota_reset_time=LATER, waited_until=NOW))
