"""Deliverables: transitions and counts."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cuggino.domain.deliverables import (
    DELIVERABLE_STATUSES,
    Deliverable,
    Deliverables,
    DeliverableStatus,
    Verification,
    is_legal,
)
from tests.vectors import each, rows

TODAY = date(2026, 3, 4)
QUERIES = {row["id"]: row for row in rows("deliverable_queries")}


def made(*said: dict[str, Any]) -> Deliverables:
    """Return the deliverables that a row describes."""
    items = tuple(
        Deliverable(
            id=raw["id"],
            description=raw.get("description", ""),
            acceptance_criteria=tuple(raw.get("acceptanceCriteria", ())),
            status=raw["status"],
            deprecated_at=raw.get("deprecatedAt"),
        )
        for raw in said
    )
    return Deliverables(created_at="2025-01-01", updated_at="2025-01-01", items=items)


def some(**statuses: DeliverableStatus) -> Deliverables:
    """Return deliverables by ID."""
    return made(*({"id": name, "status": status} for name, status in statuses.items()))


@each("name", QUERIES)
def test_recorded_queries(name: str) -> None:
    """A recorded query of recorded deliverables returns its recorded answer."""
    row = QUERIES[name]
    assert row["expected"] == getattr(made(*row["deliverables"]), row["query"])


def test_every_query_row_is_read() -> None:
    """The data has all recorded rows."""
    assert 18 == len(QUERIES)


def test_deprecated_ones_count_nowhere() -> None:
    """Deprecated deliverables are in no count, active list or total."""
    all_of_them = some(a="passed", b="blocked", c="pending").deprecated("c", TODAY)
    assert ("a", "b") == tuple(item.id for item in all_of_them.active)
    assert (2, 1, 1, 1) == (
        all_of_them.total,
        all_of_them.count_passed,
        all_of_them.count_blocked,
        all_of_them.count_deprecated,
    )
    assert not all_of_them.has_pending
    assert all_of_them.all_achievable_passed
    assert not all_of_them.deprecated("a", TODAY).deprecated("b", TODAY).all_blocked


@pytest.mark.parametrize("after", DELIVERABLE_STATUSES)
@pytest.mark.parametrize("before", DELIVERABLE_STATUSES)
def test_transitions(before: DeliverableStatus, after: DeliverableStatus) -> None:
    """Every transition is legal, except from passed to blocked in strict mode."""
    assert is_legal(before, after)
    assert ((before, after) != ("passed", "blocked")) == is_legal(before, after, strict=True)


def test_a_change_gives_a_new_value() -> None:
    """A new status returns a new value with the same order, and the original is unchanged."""
    before = some(a="pending", b="pending", c="blocked")
    after = before.with_status("b", "passed")
    assert some(a="pending", b="pending", c="blocked") == before
    assert some(a="pending", b="passed", c="blocked") == after
    assert before.items[0] is after.items[0]


def test_invalid_changes() -> None:
    """An unknown ID is a `KeyError`, an illegal change or a duplicate ID a `ValueError`."""
    known = some(a="passed")
    with pytest.raises(KeyError):
        known.with_status("b", "passed")
    with pytest.raises(KeyError):
        known.deprecated("b", TODAY)
    with pytest.raises(ValueError, match="passed cannot become blocked"):
        known.with_status("a", "blocked", strict=True)
    with pytest.raises(ValueError, match="deprecated since 2026-03-04"):
        known.deprecated("a", TODAY).deprecated("a", TODAY)
    with pytest.raises(ValueError, match="duplicate id"):
        known.added(some(b="pending", a="pending").items)


def test_days() -> None:
    """The date of creation is kept, and the date of the latest change is updated."""
    first = Deliverables.none_yet(date(2025, 1, 1))
    later = first.updated(TODAY)
    assert ("2025-01-01", "2025-01-01") == (first.created_at, first.updated_at)
    assert ("2025-01-01", "2026-03-04") == (later.created_at, later.updated_at)


@given(st.lists(st.tuples(st.sampled_from(DELIVERABLE_STATUSES), st.booleans()), max_size=12))
def test_counts_agree(drawn: list[tuple[DeliverableStatus, bool]]) -> None:
    """Every active deliverable has one status, and at most one outcome applies."""
    said = (
        {"id": str(number), "status": status, "deprecatedAt": "2026-01-01" if gone else None}
        for number, (status, gone) in enumerate(drawn)
    )
    known = made(*said)
    pending = sum(item.status == "pending" for item in known.active)
    assert known.total == pending + known.count_passed + known.count_blocked
    assert len(known.items) == known.total + known.count_deprecated
    assert [known.has_pending, known.all_achievable_passed, known.all_blocked].count(True) == (
        1 if known.total else 0
    )


def test_verification() -> None:
    """It is complete once each of its IDs is marked; without any it is, and others are rejected."""
    begun = Verification(all=("a", "b"))
    assert not begun.marked("a").is_complete
    assert begun.marked("a").marked("b").is_complete
    assert frozenset() == begun.verified
    assert Verification(all=()).is_complete
    with pytest.raises(KeyError):
        begun.marked("c")
