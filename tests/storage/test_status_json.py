"""The JSON of a status file: parsing, and writing it back unchanged."""

from __future__ import annotations

import json
from datetime import date
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cuggino.domain.deliverables import DELIVERABLE_STATUSES
from cuggino.files import DEEPEST
from cuggino.storage.deliverables import parse_status, render_status
from tests.vectors import each

TODAY = date(2026, 3, 4)

FILE_KEYS = ("createdAt", "updatedAt", "deliverables")
ITEM_KEYS = ("id", "description", "acceptanceCriteria", "passed", "blocked", "deprecatedAt")
TEXT = st.text(max_size=8)  # without lone surrogates, which have a separate test
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXT, below, max_size=3),
    max_leaves=4,
)


def shuffled(known: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Return objects with these and unknown keys, in any order."""
    unknown = st.dictionaries(
        st.text(max_size=6).filter(lambda key: key not in FILE_KEYS + ITEM_KEYS), JSON, max_size=2
    )
    return st.builds(_in_any_order, st.fixed_dictionaries(known), unknown, st.integers(0, 99))


def _in_any_order(known: dict[str, Any], unknown: dict[str, Any], seed: int) -> dict[str, Any]:
    items = list({**unknown, **known}.items())
    Random(seed).shuffle(items)
    return dict(items)


FLAGS = st.sampled_from([(False, False), (True, False), (False, True)])
ITEM = FLAGS.flatmap(
    lambda flags: shuffled(
        {
            "id": st.text(min_size=1, max_size=4).filter(str.strip),
            "description": TEXT,
            "acceptanceCriteria": st.lists(TEXT, max_size=3),
            "passed": st.just(flags[0]),
            "blocked": st.just(flags[1]),
        }
    )
)
FILE = shuffled(
    {
        "createdAt": st.just("2025-01-01"),
        "updatedAt": st.just("2025-02-01"),
        "deliverables": st.lists(ITEM, max_size=2, unique_by=lambda item: item["id"]),
    }
)


@given(FILE)
def test_a_file_round_trips(raw: dict[str, Any]) -> None:
    """A file is written back as the same text: every key, value and position."""
    text = json.dumps(raw, indent=2, ensure_ascii=False)
    deliverables, warnings = parse_status(text.encode(), today=TODAY)
    assert text == render_status(deliverables)
    assert () == warnings


@given(FILE, st.sampled_from(DELIVERABLE_STATUSES))
def test_a_change_touches_nothing_else(raw: dict[str, Any], status: Any) -> None:
    """After a status change only its two flags differ."""
    deliverables, _ = parse_status(json.dumps(raw).encode(), today=TODAY)
    for number, item in enumerate(deliverables.items):
        changed = json.loads(json.dumps(raw))
        changed["deliverables"][number] |= {
            "passed": status == "passed",
            "blocked": status == "blocked",
        }
        expected = json.dumps(changed, indent=2, ensure_ascii=False)
        assert expected == render_status(deliverables.with_status(item.id, status))


@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_garbage_is_a_value_error(content: bytes) -> None:
    """Any bytes are read, or rejected with a message."""
    try:
        deliverables, _ = parse_status(content, today=TODAY)
    except ValueError as error:
        assert str(error)
    else:
        assert len(deliverables.items) == len({item.id for item in deliverables.items})


def file(*items: object, **more: object) -> bytes:
    """Return a file with these deliverables."""
    return json.dumps({"deliverables": items, **more}).encode()


@each(
    "problem, content",
    [
        ("nested too deeply", file(x=json.loads("[" * DEEPEST + "]" * DEEPEST))),
        ('it has no "deliverables"', b"{}"),
        ('"deliverables" is {}: must be a list', b'{"deliverables": {}}'),
        ('"createdAt" is 5: must be a string', file(createdAt=5)),
        ('"deliverables[1]" is "B": must be an object', file({"id": "A"}, "B")),
        ('"deliverables[0]" has no "id"', file({"description": "x"})),
        ('"deliverables[0].id" is " ": must not be blank', file({"id": " "})),
        ('"deliverables[0].id" is 1: must be a string', file({"id": 1})),
        ('deliverables[1] has the id of another one, "A"', file({"id": "A"}, {"id": "A"})),
        ('"deliverables[0].description" is []', file({"id": "A", "description": []})),
        (
            '"deliverables[0].acceptanceCriteria" is "x": must be a list',
            file({"id": "A", "acceptanceCriteria": "x"}),
        ),
        (
            '"deliverables[0].acceptanceCriteria[0]" is 1: must be a string',
            file({"id": "A", "acceptanceCriteria": [1]}),
        ),
        (
            '"deliverables[0].passed" is "yes": must be true or false',
            file({"id": "A", "passed": "yes"}),
        ),
        ('"deliverables[0].deprecatedAt" is 5', file({"id": "A", "deprecatedAt": 5})),
    ],
)
def test_unusable(problem: str, content: bytes) -> None:
    """An unusable file is rejected with the error and its location."""
    with pytest.raises(ValueError) as caught:
        parse_status(content, today=TODAY)
    assert problem in str(caught.value)


def test_missing_values_have_defaults() -> None:
    """Missing dates are today, missing texts and flags empty and false, without a warning."""
    deliverables, warnings = parse_status(b"\xef\xbb\xbf" + file({"id": "A"}), today=TODAY)
    assert ("2026-03-04", "2026-03-04") == (deliverables.created_at, deliverables.updated_at)
    (item,) = deliverables.items
    assert ("", (), "pending") == (item.description, item.acceptance_criteria, item.status)
    assert () == warnings


def test_a_contradiction_is_reported() -> None:
    """Both flags mean passed, with a warning."""
    content = file({"id": "A", "passed": True, "blocked": True})
    deliverables, warnings = parse_status(content, today=TODAY)
    assert "passed" == deliverables.items[0].status
    assert ('deliverable "A" is passed and blocked; passed counts',) == warnings
    written = json.loads(render_status(deliverables))["deliverables"][0]
    assert (True, False) == (written["passed"], written["blocked"])


def test_half_a_character() -> None:
    """A lone surrogate is kept."""
    content = b'{"deliverables": [], "note": "\\ud800 \\ud83d\\ude00"}'
    text = render_status(parse_status(content, today=TODAY)[0])
    assert '"note": "\\ud800 \U0001f600"' in text
    assert text.encode()


def test_a_deprecation_date() -> None:
    """The date of a deprecation is read and kept; an empty one is None."""
    content = file({"id": "A", "deprecatedAt": "2025-01-10"}, {"id": "B", "deprecatedAt": ""})
    deliverables, _ = parse_status(content, today=TODAY)
    assert ["2025-01-10", None] == [item.deprecated_at for item in deliverables.items]
    written = json.loads(render_status(deliverables.deprecated("B", TODAY)))["deliverables"]
    assert ["2025-01-10", "2026-03-04"] == [item["deprecatedAt"] for item in written]
