"""What agents write of a job, and where a note about it goes."""

from __future__ import annotations

import pytest

from cuggino.domain.jobs import jobs_of
from tests.domain.test_jobs import jobs


@pytest.mark.parametrize(
    ("expected", "fields"),
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
    """A note goes where the job has notes, or else where jobs of its shape have them."""
    (job,) = jobs({"id": "A", **fields}).items
    assert {"id": "A", **fields, **expected} == job.noted("x").fields


def test_what_says_nothing_is_passed_over() -> None:
    """A blank requirement code leaves it to the key of the other shape; blanks around are none."""
    (job,) = jobs(
        {"id": "A", "requirementCode": " ", "requirement": "R", "status": " Blocked "}
    ).items
    assert ("R", True, False) == (job.requirement_code, job.is_blocked, job.is_done)
    assert jobs({"id": "A", "status": "Done\n"}).count_done == 1


def test_zero_comes_before_one() -> None:
    """Zero is a priority like any other, and no missing one."""
    known = jobs({"id": "A"}, {"id": "B", "priority": 1}, {"id": "C", "priority": 0})
    assert ["C", "B", "A"] == [job.id for job in known.workable]


def test_notes_may_be_a_list() -> None:
    """Of a list of notes the texts count, a line each."""
    (job,) = jobs({"id": "A", "notes": ["one", 2, "two"]}).items
    assert "one\ntwo" == job.partial_implementation


@pytest.mark.parametrize(
    ("expected", "written"),
    [(1.5, 1.5), (7, " 7 "), (None, float("nan")), (None, float("inf")), (None, True), (None, "x")],
)
def test_what_a_priority_may_be(expected: float | None, written: object) -> None:
    """A finite number, or one written as a text, is a priority; anything else is told."""
    found, warnings = jobs_of([{"id": "A", "priority": written}])
    assert expected == found.items[0].priority
    assert (expected is None) == bool(warnings)
