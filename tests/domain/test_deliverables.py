"""Deliverables: transitions, counts, tools, and when their loop ends."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any, get_args

import pytest
from hypothesis import given, settings, strategies as st

from cuggino.domain.deliverable_tools import (
    ALIASES,
    TOOLS,
    TOOLS_OF,
    DeliverableChange,
    Performed,
    agent_tool,
    perform_tool,
    tool_named,
)
from cuggino.domain.deliverables import (
    DELIVERABLE_STATUSES,
    Deliverable,
    Deliverables,
    DeliverableStatus,
    Verification,
    is_legal,
)
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
from tests.vectors import each, not_followed, rows

TODAY = date(2026, 3, 4)
QUERIES = {row["id"]: row for row in rows("deliverable_queries", 18)}


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


CALLS = {row["id"]: row for row in rows("deliverables", 33)}
LATER = {row["id"]: row for row in rows("deliverable_tools", 12)}


def recorded(item: Deliverable) -> dict[str, Any]:
    """Return a deliverable in the form of the rows."""
    known = {
        "id": item.id,
        "description": item.description,
        "acceptanceCriteria": list(item.acceptance_criteria),
        "status": item.status,
    }
    return known | ({"deprecatedAt": item.deprecated_at} if item.deprecated_at else {})


def call(tool: str, given: object, before: Deliverables, **more: Any) -> Performed:
    """Call a tool with today's date."""
    return perform_tool(tool, given, before, today=TODAY, **more)


@each("name", CALLS)
def test_recorded_calls(name: str) -> None:
    """A recorded call returns its recorded answer and leaves the recorded deliverables."""
    row = CALLS[name]
    performed = call(row["op"], row["input"], made(*row["before"]))
    after = json.loads(json.dumps(row["after"]).replace("<today>", TODAY.isoformat()))
    assert row["result"] == performed.result.as_json()
    assert after == [recorded(item) for item in performed.deliverables.items]


@each("name", LATER)
def test_recorded_calls_of_the_later_tools(name: str) -> None:
    """A recorded call of `list` or `verify` returns its recorded answer."""
    row = LATER[name]
    said = row.get("tracker")
    tracker = said and Verification(all=tuple(said["all"]), verified=frozenset(said["verified"]))
    performed = call(
        row["fn"].partition("_")[0],
        row["args"],
        made(*row.get("deliverables", ())),
        verification=tracker,
    )
    assert row["expected"] == performed.result.as_json()
    if row["fn"] == "verify" and row["expected"]["success"]:
        assert isinstance(tracker, Verification)
        assert tracker.marked(row["args"]["deliverableId"]) == performed.verification
    else:
        assert tracker == performed.verification


def new(**changed: object) -> dict[str, object]:
    """Return the input that creates one deliverable."""
    item = {"id": "A", "description": "Login", "acceptanceCriteria": ["works"]}
    return {"deliverables": [{**item, **changed}]}


SHAPE = '"deliverables" must be a list of objects with id, description and acceptanceCriteria'


@pytest.mark.parametrize(
    ("message", "tool", "given"),
    [
        ("The input must be an object", "create", [1]),
        ("At least one deliverable is required", "create", {}),
        (SHAPE, "create", {"deliverables": "[]"}),
        (SHAPE, "create", {"deliverables": [{"id": "A"}, "B"]}),
        ("Deliverable ID is required", "create", new(id=" \n")),
        ("Deliverable ID is required", "create", {"deliverables": [{}]}),
        ("Deliverable ID must be a text", "create", new(id=7)),
        ("Deliverable ID must be a text", "create", new(id=["A"])),
        ("Deliverable description is required", "create", new(description=None)),
        ("Deliverable description must be a text", "create", new(description=["x"])),
        ("At least one acceptance criterion is required", "create", new(acceptanceCriteria=None)),
        ('"acceptanceCriteria" must be a list of texts', "create", new(acceptanceCriteria="x")),
        ('"acceptanceCriteria" must be a list of texts', "create", new(acceptanceCriteria=[1])),
        ("Acceptance criteria cannot be empty", "create", new(acceptanceCriteria=["x", " "])),
        ("Deliverable ID is required", "set_status", {"status": "nonsense"}),
        (
            'Invalid status "done". Must be pending, passed, or blocked',
            "set_status",
            {"deliverableId": "X", "status": "done"},
        ),
        (
            'Invalid status "null". Must be pending, passed, or blocked',
            "set_status",
            {"deliverableId": "P"},
        ),
        ("Deliverable ID is required", "deprecate", {}),
        ('"filter" must be an object with status, verified or both', "list", {"filter": "passed"}),
        ('"verified" must be true or false', "list", {"filter": {"verified": "yes"}}),
        (
            'Invalid status "all". Must be pending, passed, or blocked',
            "list",
            {"filter": {"status": "all"}},
        ),
        ('"limit" must be a whole number, 1 or more', "list", {"limit": 0}),
        ('"limit" must be a whole number, 1 or more', "list", {"limit": True}),
        ('"limit" must be a whole number, 1 or more', "list", {"limit": "5"}),
    ],
)
def test_bad_input(message: str, tool: str, given: object) -> None:
    """Input of a wrong shape is rejected with the expected shape, and nothing changes."""
    before = some(P="passed")
    refused = call(tool, given, before)
    expected = {"success": False, "message": message, "error": "VALIDATION_ERROR"}
    assert expected == refused.result.as_json()
    assert refused.deliverables is before
    assert refused.change is None


def test_the_first_error_is_reported() -> None:
    """Duplicate IDs are reported before errors of items, items in order."""
    twice = new()["deliverables"], new(description="")["deliverables"]
    both = [item for items in twice if isinstance(items, list) for item in items]
    assert (
        'Duplicate ID "A" in batch' == call("create", {"deliverables": both}, some()).result.message
    )
    given = {"deliverables": [both[0], {**both[1], "id": "B"}]}
    refused = call("create", given, some(A="passed"))
    assert 'Deliverable with ID "A" already exists' == refused.result.message


def test_strict_transitions() -> None:
    """In strict mode a passed deliverable cannot be blocked directly; the error explains how."""
    before = some(P="passed")
    given = {"deliverableId": "P", "status": "blocked"}
    refused = call("set_status", given, before, strict=True).result
    assert "INVALID_TRANSITION" == refused.error
    assert refused.message.endswith("is passed and cannot become blocked. Set it to pending first")
    assert call("set_status", given, before).result.success


def test_an_unknown_tool() -> None:
    """The error for an unknown tool lists the known ones."""
    refused = call("remove", {}, some()).result
    assert "UNKNOWN_TOOL" == refused.error
    assert all(name in refused.message for name in TOOLS)


def test_notifications() -> None:
    """Setting a status sends a notification even if unchanged; no other call does (AUT-115)."""
    before = made({"id": "A", "description": "Login", "status": "blocked"})
    for status in DELIVERABLE_STATUSES:
        given = {"deliverableId": "A", "status": status}
        expected = DeliverableChange("A", "Login", "blocked", status)
        assert expected == call("set_status", given, before).change
    assert call("create", new(id="B"), before).change is None
    assert call("deprecate", {"deliverableId": "A"}, before).change is None
    assert call("set_status", {"deliverableId": "B", "status": "passed"}, before).change is None


def test_what_is_listed() -> None:
    """Deprecated deliverables are not listed; at most five are, or as many as the limit says."""
    statuses: dict[str, DeliverableStatus] = dict.fromkeys("abcdefg", "passed")
    known = some(**statuses).deprecated("b", TODAY)
    for limit, expected in ((None, "acdef"), ({"limit": 1}, "a")):
        listed = call("list", limit, known).result.listed
        assert listed is not None
        assert list(expected) == [item.id for item in listed]


def test_names() -> None:
    """Each tool has one name and an optional alias, and instructions use only existing tools."""
    assert list(TOOLS) == [tool_named(name) for name in TOOLS]
    assert {"create", "set_status"} == set(ALIASES)
    assert {tool for tools in TOOLS_OF.values() for tool in tools} <= set(TOOLS)
    assert tool_named("nothing") is None
    assert "mcp__autonoe-deliverable__list" == agent_tool("list")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda below: (
        st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3)
    ),
    max_leaves=8,
)
IDS = st.sampled_from(["A", "B", "C", " ", "é"])
ITEMS = st.fixed_dictionaries(
    {"id": IDS | JSON, "description": st.just("d") | JSON, "acceptanceCriteria": JSON}
) | IDS.map(lambda name: {"id": name, "description": "d", "acceptanceCriteria": ["c"]})
INPUTS = (
    st.fixed_dictionaries({"deliverables": st.lists(ITEMS, max_size=3) | JSON})
    | st.fixed_dictionaries(
        {"deliverableId": IDS, "status": st.sampled_from(DELIVERABLE_STATUSES) | JSON}
    )
    | st.fixed_dictionaries({"filter": JSON, "limit": st.integers(-1, 3) | JSON})
    | JSON
)
NAMES = st.sampled_from([*TOOLS, *ALIASES, "nothing"])


@settings(max_examples=2 * settings().max_examples)
@given(calls=st.lists(st.tuples(NAMES, INPUTS), max_size=15), strict=st.booleans())
def test_any_calls_keep_the_order(calls: list[tuple[str, object]], strict: bool) -> None:
    """After any calls IDs are unique, order and entries are kept, and each answer is JSON."""
    known = Deliverables.none_yet(TODAY)
    tracker = Verification(all=("A", "B"))
    for tool, given_input in calls:
        done = call(tool, given_input, known, verification=tracker, strict=strict)
        assert done.verification is not None
        before = [item.id for item in known.items]
        after = [item.id for item in done.deliverables.items]
        assert before == after[: len(before)]
        assert len(set(after)) == len(after)
        assert all(
            item.status in DELIVERABLE_STATUSES and item.id.strip()
            for item in done.deliverables.items
        )
        assert tracker.verified <= done.verification.verified <= {"A", "B"}
        if not done.result.success:
            assert (known, tracker, None) == done[1:]
        json.dumps(done.result.as_json())
        known, tracker = done.deliverables, done.verification


ROWS = {row["id"]: row for row in rows("termination", 73)}
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
AFTER = NOW + timedelta(hours=2)


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


def decision(decision: Decision) -> dict[str, Any]:
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
    assert row["expected"] == decision(decide_delivery(picture(row["context"])))


@each("name", sorted(NOT_FOLLOWED))
def test_rows_not_followed(name: str) -> None:
    """Every row listed as an exception exists and is decided differently."""
    assert ROWS[name]["expected"] != decision(decide_delivery(picture(ROWS[name]["context"])))


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


def quota(**more: Any) -> DeliverProgress:
    """Return the state after a session that hit a usage limit, with waiting enabled."""
    return DeliverProgress(outcome="quota", wait_for_quota=True, now=NOW, **more)


def budget(outcome: SessionOutcome, left: DeliverableStatus, *, has: bool) -> DeliverProgress:
    """Return the state after a session, with a deliverable and perhaps a budget."""
    return DeliverProgress(outcome=outcome, deliverables=some(a=left), has_budget=has)


def crash(**more: Any) -> DeliverProgress:
    """Return the state after a session that failed, with unknown deliverables."""
    return DeliverProgress(outcome="failed", **more)


@each(
    "progress, expected",
    [
        # A session over budget ends the loop if there is a budget and work is left.
        (budget("budget", "pending", has=False), Continue()),
        (budget("completed", "pending", has=True), Continue()),
        (budget("budget", "pending", has=True), Terminate("budget_exceeded")),
        (budget("budget", "passed", has=True), Terminate("all_passed")),
        # After a crash only limits and errors decide (AUT-058).
        (
            crash(iterations=2, max_iterations=2, consecutive_errors=9),
            Terminate("max_iterations"),
        ),
        (crash(iterations=1, consecutive_errors=3), Continue()),
        # Without retries the first failure is the last.
        (
            crash(iterations=1, consecutive_errors=1, max_retries=0),
            Terminate("max_retries_exceeded"),
        ),
        # The wait lasts until a known reset; a past one is not waited for.
        (quota(quota_reset_time=AFTER), Wait(7200.0, AFTER)),
        (quota(quota_reset_time=NOW), Wait(0.0, NOW)),
        # Without a reset the pauses double, up to five hours and a day in all (AUT-054).
        (quota(quota_pauses=0), Wait(900.0, None)),
        (quota(quota_pauses=1), Wait(1800.0, None)),
        (quota(quota_pauses=2), Wait(3600.0, None)),
        (quota(quota_pauses=4), Wait(14400.0, None)),
        (quota(quota_pauses=5), Wait(18000.0, None)),
        (quota(quota_pauses=40), Terminate("quota_exceeded")),
        # The same reset after waiting for it leads to a guessed pause (AUT-080).
        (
            quota(quota_reset_time=NOW, waited_until=NOW, quota_pauses=1),
            Wait(1800.0, None),
        ),
        (quota(quota_reset_time=AFTER, waited_until=NOW), Wait(7200.0, AFTER)),
    ],
)
def test_decisions(progress: DeliverProgress, expected: Decision) -> None:
    """Budgets, crashes and usage limits end the loop, let it wait, or let it go on."""
    assert expected == decide_delivery(progress)
