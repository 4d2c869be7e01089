"""Jobs: both shapes of their file, their fields, and changes that keep everything else."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cuggino.domain.jobs import MOST_JOBS, Job, Jobs
from cuggino.storage.jobs import jobs_of
from tests.vectors import each, rows

ROWS = {row["id"]: row for row in rows("lopen_state")}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=6), below),
    max_leaves=8,
)
TEXTS = ("id", "requirementCode", "requirement", "description", "partialImplementation", "notes")
KEYS = st.sampled_from([*TEXTS, "status", "priority"])
WORDS = st.sampled_from(["A", "B", "done", "Completed", "blocked", "open", "", "  "])
ENTRY = st.dictionaries(KEYS | st.text(max_size=5), WORDS | JSON, max_size=6)
JSON_OBJECT = st.dictionaries(st.text(max_size=6), JSON, max_size=3)
FILE = st.lists(ENTRY | JSON, max_size=5).flatmap(
    lambda entries: st.just(entries) | JSON_OBJECT.map(lambda more: {**more, "jobs": entries})
)


def of_kind(kind: str) -> list[str]:
    """Return the IDs of the rows of this kind."""
    return [row["id"] for row in ROWS.values() if row["kind"] == kind]


def jobs(*entries: object) -> Jobs:
    """Return the jobs of a file in object shape."""
    return jobs_of({"jobs": list(entries)})[0]


@each("case", of_kind("job_is_done"))
def test_the_words_for_done(case: str) -> None:
    """A job is done by the statuses that the case lists, case-insensitively."""
    row = ROWS[case]
    (job,) = jobs({"id": "A", "status": row["status"]}).items
    assert row["expected"] == job.is_done


@each("case", of_kind("highest_priority"))
def test_the_next_job(case: str) -> None:
    """The lowest priority is next, a missing one last, and ties keep the order of the file."""
    row = ROWS[case]
    found = jobs(*row["jobs"]).next_open
    assert row["expected"] == (found.id if found else None)


@each("case", of_kind("jobs_limit"))
def test_too_many_jobs(case: str) -> None:
    """More than a hundred jobs are reported, and none is dropped."""
    row = ROWS[case]
    found, warnings = jobs_of({"jobs": [{"id": str(n)} for n in range(row["count"])]})
    assert row["expected_warning"] == found.is_too_many == bool(warnings)
    assert row["count"] == len(found.items)
    if warnings:
        assert f"there are {row['count']} jobs; at most {MOST_JOBS} should be planned" in warnings


def test_one_is_found_by_its_id() -> None:
    """The first job with the ID is returned, or None."""
    found = jobs({"id": "A"}, {"id": "B", "status": "open"}, {"id": "B"})
    assert found.items[1] is found.get("B")
    assert found.get("C") is None


def test_counts() -> None:
    """Every unfinished job counts as open, including blocked ones."""
    found = jobs(
        {"id": "A", "status": "done"},
        {"id": "B", "status": " Blocked ", "priority": 1},
        {"id": "C", "status": "pending", "priority": 3},
        {"id": "D", "status": None, "priority": 2},
        {"id": "E"},
    )
    assert (1, 4, 1) == (found.count_done, found.count_open, found.count_blocked)
    assert ["D", "C", "E"] == [job.id for job in found.workable]
    assert ["B"] == [job.id for job in found.blocked]


@each("bare", [False, True])
def test_a_change_touches_nothing_else(bare: bool) -> None:
    """A status and a note are written to the keys of the shape, without other changes."""
    code, partial = (
        ("requirement", "notes") if bare else ("requirementCode", "partialImplementation")
    )
    entries = [
        {"x": 1, "status": "done", code: "REQ-1", "id": "A", partial: "There.", "y": None},
        "no job",
        {"id": "B", code: "REQ-2"},
    ]
    raw: Any = entries if bare else {"v": 2, "jobs": entries, "w": []}
    found, _ = jobs_of(copy.deepcopy(raw))
    changed = found.with_status("A", "in-progress").noted("A", "No tests.").noted("B", "New.")
    expected = copy.deepcopy(raw)
    items = expected if bare else expected["jobs"]
    items[0] |= {"status": "in-progress", partial: "There.\nNo tests."}
    items[2][partial] = "New."
    assert json.dumps(expected) == json.dumps(changed.content)
    assert json.dumps(raw) == json.dumps(found.content)


@each(
    "before, after",
    [
        (None, "Text."),
        ("", "Text."),
        ("A.", "A.\nText."),
        (["A."], ["A.", "Text."]),
        ({"a": 1}, [{"a": 1}, "Text."]),
        ("Before. Text.", "Before. Text."),
    ],
)
def test_a_note_loses_nothing(before: object, after: object) -> None:
    """A note is appended to any existing value, once."""
    found = jobs({"id": "A", "partialImplementation": before})
    twice = found.noted("A", "Text.").noted("A", "Text.")
    assert {"jobs": [{"id": "A", "partialImplementation": after}]} == twice.content


def test_no_change_gives_the_same_object() -> None:
    """A change without effect returns the same object."""
    found = jobs({"id": "A", "status": "open", "notes": "Text."})
    assert found is found.with_status("A", "open")
    assert found is found.noted("A", "Text.")


def test_an_unknown_job_cannot_be_changed() -> None:
    """An unknown ID is a `KeyError`."""
    with pytest.raises(KeyError):
        jobs().with_status("A", "done")
    with pytest.raises(KeyError):
        jobs().noted("A", "Text.")


def test_odd_jobs_are_reported_and_kept() -> None:
    """A job with a missing ID or code or odd values is kept, with one message per oddity."""
    found, warnings = jobs_of(
        [
            {"description": ["x"], "status": 5, "priority": "high"},
            7,
            {"id": 3, "requirement": "", "requirementCode": " REQ-1 ", "priority": "2"},
            {"id": "3", "priority": True},
        ]
    )
    assert ["#1", "3", "3"] == [job.id for job in found.items]
    assert ["", "REQ-1", ""] == [job.requirement_code for job in found.items]
    assert [None, 2, None] == [job.priority for job in found.items]
    assert (
        'jobs[0]: "description" is ["x"]: must be a string; ignored',
        'jobs[0]: "status" is 5: must be a string; ignored',
        'jobs[0]: "priority" is "high": must be a number; ignored',
        'jobs[0] has no "id"; it is called #1',
        "jobs[1] is not an object; ignored",
        'jobs[3]: "priority" is true: must be a number or a string; ignored',
        'several jobs have the id "3"',
    ) == warnings


@each("raw", [None, 1, "jobs", {}, {"jobs": {}}, {"jobs": None}, {"Jobs": []}])
def test_other_shapes_are_rejected(raw: object) -> None:
    """A value that is neither a list nor an object with one is rejected."""
    with pytest.raises(ValueError, match='object with a list "jobs"'):
        jobs_of(raw)


def test_a_new_file_is_an_object() -> None:
    """Without a file there are no jobs, and the shape is the object."""
    assert {"jobs": []} == Jobs().content
    assert Jobs() == jobs()


@given(FILE)
def test_whatever_agents_write_is_kept(raw: Any) -> None:
    """Any file of either shape is read and written back unchanged."""
    found, _ = jobs_of(raw)
    assert json.dumps(raw) == json.dumps(found.content)
    assert len(found.items) == found.count_open + found.count_done
    assert len(found.workable) + found.count_blocked == found.count_open


@given(FILE, st.sampled_from(["done", "in-progress"]), st.text(min_size=1, max_size=5))
def test_a_change_of_any_file_is_read_back(raw: Any, status: str, note: str) -> None:
    """A change sets the status and the note, and keeps the number of jobs and entries."""
    found, _ = jobs_of(raw)
    for job in found.items:
        changed, _ = jobs_of(json.loads(json.dumps(found.with_status(job.id, status).content)))
        assert {status} == {item.status for item in changed.items if item.id == job.id}
        noted = found.noted(job.id, note)
        assert (
            note in next(item for item in noted.items if item.id == job.id).partial_implementation
        )
        assert len(noted.entries) == len(changed.entries) == len(found.entries)


@given(JSON)
def test_any_value_is_read_or_refused(raw: object) -> None:
    """Random JSON gives jobs or a `ValueError` with a message."""
    try:
        found, _ = jobs_of(raw)
    except ValueError as error:
        assert str(error)
    else:
        assert all(isinstance(job, Job) for job in found.items)


@each(
    "expected, fields",
    [
        ({"partialImplementation": "x"}, {}),
        ({"notes": "x"}, {"requirement": "R"}),
        ({"partialImplementation": "x"}, {"requirement": "R", "requirementCode": "R"}),
        ({"notes": ["one", "two", "x"]}, {"notes": ["one", "two"]}),
    ],
)
def test_a_note_is_in_the_shape_of_its_job(
    expected: dict[str, object], fields: dict[str, object]
) -> None:
    """A note goes to the job's existing key for notes, or to the one of its shape."""
    (job,) = jobs({"id": "A", **fields}).items
    assert {"id": "A", **fields, **expected} == job.noted("x").fields


def test_blank_codes_are_skipped() -> None:
    """A blank requirement code falls back to the other shape's key, and codes are trimmed."""
    (job,) = jobs(
        {"id": "A", "requirementCode": " ", "requirement": "R", "status": " Blocked "}
    ).items
    assert ("R", True, False) == (job.requirement_code, job.is_blocked, job.is_done)
    assert jobs({"id": "A", "status": "Done\n"}).count_done == 1


def test_zero_comes_before_one() -> None:
    """Zero is a valid priority."""
    known = jobs({"id": "A"}, {"id": "B", "priority": 1}, {"id": "C", "priority": 0})
    assert ["C", "B", "A"] == [job.id for job in known.workable]


def test_notes_may_be_a_list() -> None:
    """The texts in a list of notes are joined, one per line."""
    (job,) = jobs({"id": "A", "notes": ["one", 2, "two"]}).items
    assert "one\ntwo" == job.partial_implementation


@each(
    "expected, written",
    [(1.5, 1.5), (7, " 7 "), (None, float("nan")), (None, float("inf")), (None, True), (None, "x")],
)
def test_valid_priorities(expected: float | None, written: object) -> None:
    """A finite number, or its text, is a priority; anything else is reported."""
    found, warnings = jobs_of([{"id": "A", "priority": written}])
    assert expected == found.items[0].priority
    assert (expected is None) == bool(warnings)
