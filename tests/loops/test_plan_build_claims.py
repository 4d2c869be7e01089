"""Claims that a job is done, and the verification of the build (LOP-095, LOP-096)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuggino.events import (
    BuildVerified,
    JobVerified,
    VerificationEnded,
)
from tests.loops.plan_build_loop import (
    DONE_FILE,
    JOBS,
    PlanBuildLoop,
    Turn,
    crash,
    has,
    jobs,
    plan_build_marbles,
    says,
    verdict,
)

OPEN = has(J1="open")
DONE = Turn(has(J1="done"))
LAST = Turn(has(True, J1="done"))
YES = verdict()


@pytest.mark.parametrize("role", ["plan", "build"])
def test_a_claim_of_a_failed_session(role: str, tmp_path: Path) -> None:
    """A job that a failed session calls done is verified before the next session."""
    failing = crash(leaves=has(J1="done"))
    turns: dict[str, list[Turn]] = {"plan": [Turn()], "build": [LAST]}
    turns[role].insert(0, failing)
    project = PlanBuildLoop(
        tmp_path, turns["build"], [verdict(False, "no"), YES, YES], turns["plan"]
    )
    story = project.run(start="plan")
    assert [("J1", False), ("J1", True)] == story.verdicts
    assert "J1: no" in project.prompts[-1]
    assert "complete" == story.ended.reason


def test_a_claim_of_the_plan(tmp_path: Path) -> None:
    """A job that the plan calls done is verified; one that was done before the run is not."""
    plan = [Turn(has(J1="done", J2="done"))]
    project = PlanBuildLoop(tmp_path, [Turn({DONE_FILE: "x"})], plan=plan, files=has(J1="done"))
    story = project.run(start="plan")
    assert [("J2", True)] == story.verdicts
    assert ("complete", 2) == (story.ended.reason, story.ended.iterations)


def test_a_claim_of_an_earlier_run(tmp_path: Path) -> None:
    """A new run verifies jobs that an earlier run saw open; others count as done."""
    t = plan_build_marbles()
    killed = Turn(has(J1="done"), stream=t.cold("a-----"))
    first = PlanBuildLoop(tmp_path, [killed], files=OPEN, marbles=t)
    first.run(dispose_at=203)
    assert {"J1": "done"} == first.statuses
    second = PlanBuildLoop(tmp_path, [Turn({DONE_FILE: "x"})], files=has(J1="done", J9="done"))
    assert [("J1", True)] == second.run().verdicts


def test_done_again(tmp_path: Path) -> None:
    """A job reopened in an iteration is verified again."""
    project = PlanBuildLoop(tmp_path, [Turn(OPEN), LAST], files=has(J1="done"))
    assert [("J1", True)] == project.run().verdicts


def test_the_same_id_twice(tmp_path: Path) -> None:
    """Jobs with the same id are done when all of them are; a refutation counts once."""
    twice = json.loads(jobs(J1="done"))
    twice["jobs"] *= 2
    project = PlanBuildLoop(
        tmp_path, [Turn({JOBS: json.dumps(twice)})], [YES, verdict(False, "no")]
    )
    story = project.run(max_sessions=1)
    assert [("J1", False)] == story.verdicts
    assert [{"J1": 1}] == [event.failures for event in story.of(VerificationEnded)]
    assert ["in-progress"] * 2 == [job["status"] for job in project.jobs]


def test_a_broken_file_that_is_mended(tmp_path: Path) -> None:
    """Jobs done before the file broke are not verified again."""
    turns = [Turn({JOBS: "["}), Turn(has(True, J1="done", J2="done"))]
    project = PlanBuildLoop(tmp_path, turns, files=has(J1="done", J2="open"))
    story = project.run()
    assert [("J2", True)] == story.verdicts
    assert "complete" == story.ended.reason


@pytest.mark.parametrize(
    ("answer", "passed"),
    [
        (says('{"buildSucceeds": true}'), [True]),
        (says('{"buildSucceeds": false, "issues": ["it"]}'), [False]),
        (says("fine"), [False]),
        (crash(), []),
    ],
)
def test_the_build_by_an_agent(answer: Turn, passed: list[bool], tmp_path: Path) -> None:
    """Its findings go to the next session; an agent that cannot answer has none."""
    project = PlanBuildLoop(tmp_path, [Turn(), Turn({DONE_FILE: "x"})], [answer, YES])
    story = project.run()
    assert [*passed, True] == [event.passed for event in story.of(BuildVerified)]
    assert (False in passed) == ("Verification findings" in project.prompts[1])
    assert "complete" == story.ended.reason


def test_the_model_of_the_verifier(tmp_path: Path) -> None:
    """The verifier uses the builder's model unless it has its own."""
    project = PlanBuildLoop(tmp_path, [Turn()])
    project.run(max_sessions=1, model="m")
    assert "m" == project.agent.of("judge")[0].model
    project = PlanBuildLoop(tmp_path, [Turn()])
    project.run(max_sessions=1, model="m", verify_model="v")
    assert "v" == project.agent.of("judge")[0].model


def test_commits_that_are_not_conventional(tmp_path: Path) -> None:
    """Unconventional commits are an issue of a job, not a failure."""
    project = PlanBuildLoop(tmp_path, [Turn(has(True, J1="done"), commits=("stuff",))], files=OPEN)
    (told,) = project.run().of(JobVerified)
    assert told.passed
    assert "Commit message is not conventional" in told.issues[0]


def test_a_claim_of_a_verifier(tmp_path: Path) -> None:
    """A job marked during the verification of others is reopened without a failure."""
    marks = Turn(has(J1="done", J2="done"), YES.events)
    project = PlanBuildLoop(tmp_path, [DONE], [marks, YES], files=has(J1="open", J2="open"))
    story = project.run(max_sessions=1)
    assert [("J1", True), ("J2", False)] == story.verdicts
    assert {"J1": "done", "J2": "in-progress"} == project.statuses
    (ended,) = story.of(VerificationEnded)
    assert (("J2: It could not be verified",), {}) == (ended.findings, ended.failures)
