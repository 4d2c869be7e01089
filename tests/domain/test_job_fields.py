"""Job fields as agents write them, and the key for notes."""

from __future__ import annotations

from cuggino.storage.jobs import jobs_of
from tests.domain.test_jobs import jobs
from tests.vectors import each


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
