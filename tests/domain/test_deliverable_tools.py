"""The tools for deliverables: recorded calls, rejected input, and invariants."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

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
    Verification,
)
from tests.domain.test_deliverables import made, some
from tests.vectors import each, rows

TODAY = date(2026, 3, 4)
CALLS = {row["id"]: row for row in rows("deliverables")}
LATER = {row["id"]: row for row in rows("deliverable_tools")}


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


def test_every_row_is_read() -> None:
    """The data has all recorded rows."""
    assert (33, 12) == (len(CALLS), len(LATER))


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


def test_list_omits_deprecated() -> None:
    """Deprecated deliverables are not listed, and do not count for the limit of five."""
    known = made(*({"id": name, "status": "passed"} for name in "abcdefg"))
    known = known.deprecated("b", TODAY)
    listed = call("list", None, known).result.listed
    assert listed is not None
    assert list("acdef") == [item.id for item in listed]


def test_a_list_of_one() -> None:
    """With a limit of one, only the first deliverable is listed."""
    listed = call("list", {"limit": 1}, some(A="passed", B="passed")).result.listed
    assert listed is not None
    assert ["A"] == [item.id for item in listed]


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
