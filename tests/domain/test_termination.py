"""When a deliverables loop goes on, waits or ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest

from cuggino.domain.deliverables import Verification
from cuggino.domain.termination import (
    ORDER,
    RULES,
    SEED_ORDER,
    Decision,
    ExitReason,
    GoOn,
    LoopPicture,
    Terminate,
    Wait,
    decide,
)
from cuggino.events import SessionOutcome
from tests.domain.test_deliverables import made, some
from tests.vectors import not_followed, rows

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
NOW = datetime(2026, 3, 4, 10, tzinfo=UTC)
LATER = NOW + timedelta(hours=2)


def picture(said: dict[str, Any]) -> LoopPicture:
    """What a row knows about a loop."""
    tracker = said["verification"]
    return LoopPicture(
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
    """A decision in the form of the rows."""
    match decision:
        case GoOn():
            return {"action": "continue"}
        case Wait(seconds=seconds):
            return {"action": "wait", "duration_ms": seconds * 1000}
        case Terminate(reason=reason):
            return {"action": "terminate", "exit_reason": reason}


@pytest.mark.parametrize("name", sorted(set(ROWS) - set(NOT_FOLLOWED)))
def test_recorded_decisions(name: str) -> None:
    """A recorded state of a loop leads to its recorded decision."""
    row = ROWS[name]
    assert row["expected"] == recorded(decide(picture(row["context"])))


@pytest.mark.parametrize("name", sorted(NOT_FOLLOWED))
def test_rows_not_followed(name: str) -> None:
    """A row listed as not followed exists and is really decided otherwise."""
    assert ROWS[name]["expected"] != recorded(decide(picture(ROWS[name]["context"])))


def test_every_row_is_read() -> None:
    """The data holds all the rows it was recorded with."""
    assert 73 == len(ROWS)


@pytest.mark.parametrize("order", [ORDER, SEED_ORDER])
def test_an_order_has_every_rule_once(order: tuple[ExitReason, ...]) -> None:
    """Both orders ask all rules, and there is a rule for every reason to end."""
    assert sorted(get_args(ExitReason)) == sorted(order) == sorted(RULES)


EVERYTHING = LoopPicture(
    interrupted=True,
    outcome="quota",
    deliverables=some(a="passed"),
    iterations=5,
    max_iterations=5,
    consecutive_errors=4,
)


def test_the_order_is_data() -> None:
    """Of several reasons the first by the order is told; the seed's asks for Ctrl-C later."""
    assert Terminate("interrupted") == decide(EVERYTHING)
    assert Terminate("quota_exceeded") == decide(EVERYTHING, order=SEED_ORDER)
    found = []
    left = list(SEED_ORDER)
    while isinstance(decision := decide(EVERYTHING, order=left), Terminate):
        found.append(decision.reason)
        left.remove(decision.reason)
    expected = ["quota_exceeded", "all_passed", "max_iterations", "interrupted"]
    assert [*expected, "max_retries_exceeded"] == found


@pytest.mark.parametrize(
    ("success", "reason"),
    [(reason in ("all_passed", "all_verified"), reason) for reason in get_args(ExitReason)],
)
def test_success(success: bool, reason: ExitReason) -> None:
    """Only deliverables that are all passed, or all verified, are a success."""
    assert success == Terminate(reason).success


def test_a_budget_of_ours_ends_the_loop() -> None:
    """A session over budget ends the loop only where a budget was given, and not what is done."""
    over = LoopPicture(outcome="budget", deliverables=some(a="pending"))
    assert GoOn() == decide(over)
    assert Terminate("budget_exceeded") == decide(
        LoopPicture(outcome="budget", deliverables=some(a="pending"), has_budget=True)
    )
    assert Terminate("all_passed") == decide(
        LoopPicture(outcome="budget", deliverables=some(a="passed"), has_budget=True)
    )


def test_a_crash_leaves_the_limits() -> None:
    """After a session whose deliverables are unknown only limits and errors decide (AUT-058)."""
    assert Terminate("max_iterations") == decide(
        LoopPicture(outcome="failed", iterations=2, max_iterations=2, consecutive_errors=9)
    )
    assert GoOn() == decide(LoopPicture(outcome="failed", iterations=1, consecutive_errors=3))


def test_no_retries() -> None:
    """Without retries the first failure is the last."""
    failed = LoopPicture(outcome="failed", iterations=1, consecutive_errors=1, max_retries=0)
    assert Terminate("max_retries_exceeded") == decide(failed)


def quota(**more: Any) -> LoopPicture:
    """After a session that met a usage limit, for which may be waited."""
    return LoopPicture(outcome="quota", wait_for_quota=True, now=NOW, **more)


def test_a_known_reset_is_waited_for() -> None:
    """The wait is until the time said, and is named by it; none when the time is past."""
    assert Wait(7200.0, LATER) == decide(quota(quota_reset_time=LATER))
    assert Wait(0.0, NOW) == decide(quota(quota_reset_time=NOW))


@pytest.mark.parametrize(
    ("expected", "pauses"), [(900.0, 0), (1800.0, 1), (3600.0, 2), (14400.0, 4), (18000.0, 5)]
)
def test_an_unknown_reset_is_guessed(expected: float, pauses: int) -> None:
    """Without a time the pauses double, from a quarter of an hour up to five hours (AUT-054)."""
    assert Wait(expected, None) == decide(quota(quota_pauses=pauses))


def test_guessing_ends() -> None:
    """When the pauses have taken a day, the loop ends."""
    assert Terminate("quota_exceeded") == decide(quota(quota_pauses=40))


def test_a_reset_that_was_waited_for_is_not_believed_again() -> None:
    """The same time said after the wait for it is followed by a guessed pause (AUT-080)."""
    again = quota(quota_reset_time=NOW, waited_until=NOW, quota_pauses=1)
    assert Wait(1800.0, None) == decide(again)
    assert Wait(7200.0, LATER) == decide(quota(quota_reset_time=LATER, waited_until=NOW))
