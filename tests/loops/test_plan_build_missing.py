"""Jobs removed from the list before they are verified (LOP-060, LOP-096)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuggino.events import DoneFileRejected, JobsCounted
from tests.loops.plan_build_loop import (
    DONE_FILE,
    JOBS,
    PlanBuildLoop,
    Turn,
    crash,
    has,
    plan_build_marbles,
    verdict,
    write,
)

OPEN = has(J1="open", J2="open")
LAST = Turn(has(True, J1="done", J2="done"))
GONE = f"J2 is gone from {JOBS} and was never verified"


def rejections(story: Any) -> list[str]:
    return [event.reason for event in story.of(DoneFileRejected)]


@pytest.mark.parametrize(
    ("leaves", "reason"),
    [
        (has(True, J1="done"), GONE),
        (has(True), f"J1, J2 are gone from {JOBS} and were never verified"),
        ({JOBS: None, DONE_FILE: "x"}, f"J1, J2 are gone from {JOBS} and were never verified"),
    ],
)
def test_an_open_job_that_is_taken_out(leaves: Any, reason: str, tmp_path: Path) -> None:
    """The done file is rejected, and the next session receives the missing job."""
    project = PlanBuildLoop(tmp_path, [Turn(leaves), LAST], files=OPEN)
    story = project.run()
    assert [reason] == rejections(story)
    assert ("complete", 2) == (story.ended.reason, story.ended.iterations)
    assert f"{DONE_FILE} existed although {reason}" in project.prompts[1]
    assert {("J1", True), ("J2", True)} == set(story.verdicts)


def test_it_is_missed_until_it_is_back(tmp_path: Path) -> None:
    """A removed job is missing until it is back, whenever the done file appears."""
    again = Turn({DONE_FILE: "x"})
    project = PlanBuildLoop(
        tmp_path, [Turn(has(J1="done")), Turn(), again, again, LAST], files=OPEN
    )
    story = project.run()
    assert [GONE, GONE] == rejections(story)
    assert ("complete", 5) == (story.ended.reason, story.ended.iterations)


def test_a_claim_that_is_taken_out(tmp_path: Path) -> None:
    """A refuted job that is removed is missing too."""
    judge = [verdict(), verdict(False, "no"), verdict()]
    project = PlanBuildLoop(tmp_path, [Turn(has(J2="done")), Turn(has(True))], judge)
    assert [GONE] == rejections(project.run(max_sessions=2))


def test_a_verified_job_that_is_taken_out(tmp_path: Path) -> None:
    """A verified job may be removed."""
    project = PlanBuildLoop(tmp_path, [Turn(has(J1="done")), Turn(has(True))], files=has(J1="open"))
    story = project.run()
    assert ("complete", []) == (story.ended.reason, rejections(story))


def test_a_new_plan(tmp_path: Path) -> None:
    """A new plan replaces the list; jobs that a failed plan removed are not missing."""
    plan = [crash(leaves=has(J3="open")), Turn(has(J4="open"))]
    project = PlanBuildLoop(tmp_path, [Turn(has(True, J4="done"))], plan=plan, files=OPEN)
    story = project.run(start="plan")
    assert ("complete", []) == (story.ended.reason, rejections(story))


@pytest.mark.parametrize(("is_called_done", "rejected"), [(False, []), (True, [GONE])])
def test_between_two_runs(is_called_done: bool, rejected: list[str], tmp_path: Path) -> None:
    """A person may remove a job between runs; the last session of a killed run may not."""
    t = plan_build_marbles()
    first = PlanBuildLoop(tmp_path, [Turn(stream=t.cold("a-----"))], files=OPEN, marbles=t)
    first.run(dispose_at=203)
    write(tmp_path, has(is_called_done, J1="done"))
    second = PlanBuildLoop(tmp_path, [Turn(has(True, J1="done")), LAST][is_called_done:])
    story = second.run()
    assert ("complete", rejected) == (story.ended.reason, rejections(story))


def test_jobs_without_ids(tmp_path: Path) -> None:
    """Jobs without ids are known by position, so that none of them is missing."""
    listed = [{"description": f"bake {n}", "status": "open"} for n in range(3)]
    left = {JOBS: json.dumps({"jobs": listed[1:]}), DONE_FILE: "x"}
    empty = {JOBS: json.dumps({"jobs": []}), DONE_FILE: "x"}
    project = PlanBuildLoop(tmp_path, [Turn(left), Turn(empty)], files={JOBS: json.dumps(listed)})
    story = project.run()
    assert ["2 jobs are not done"] == rejections(story)
    assert [3, 2, 0] == [event.open for event in story.of(JobsCounted)]
    assert "complete" == story.ended.reason
