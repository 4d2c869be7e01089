"""The order of sessions in the plan/build loop, its results, claims, and jobs that are missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.errors import ConfigError
from cuggino.events import (
    BuildVerified,
    DoneFileRejected,
    JobsCounted,
    JobVerified,
    VerificationEnded,
)
from cuggino.prompts.plan_build import PromptNotFound
from tests.loops.plan_build_loop import (
    DONE_FILE,
    JOBS,
    Does,
    PlanBuildLoop,
    Turn,
    crash,
    has,
    jobs,
    plan_build_marbles,
    says,
    verdict,
    write,
)

ON_MAIN = {".git/HEAD": "ref: refs/heads/main\n"}


def test_phases_in_order(tmp_path: Path) -> None:
    """Planned first, then built; each iteration has its verification and its end."""
    project = PlanBuildLoop(tmp_path, [Turn(has(True, J1="done"))], plan=[Turn(has(J1="open"))])
    story = project.run(start="plan")
    assert [("plan", 1), ("build", 2), ("verify", 2), ("verify", 2)] == story.phases
    letters: dict[Any, str] = {
        ev.PlanBuildPhaseStarted: "P",
        ev.PlanBuildSessionEnded: "S",
        ev.VerificationEnded: "V",
        ev.JobsCounted: "C",
        ev.PlanBuildIterationEnded: "I",
        ev.PlanBuildEnded: "E",
    }
    assert "CPSCIPSPPVCIE" == "".join(letters.get(type(event), "") for event in story.events)
    assert ("complete", 2, 1, 0) == (
        story.ended.reason,
        story.ended.iterations,
        story.ended.done,
        story.ended.open,
    )
    assert 0.04 == pytest.approx(story.ended.cost_usd)
    assert [0.01, 0.01] == [event.cost_usd for event in story.of(ev.PlanBuildSessionEnded)]
    assert [(0, 0), (1, 0), (0, 1)] == [(e.open, e.done) for e in story.of(ev.JobsCounted)]
    assert "Plan.\n" == project.agent.of("plan")[0].prompt
    assert ["Build.\n"] == project.prompts
    project.assert_released()


def test_plan_only_without_a_plan_prompt(tmp_path: Path) -> None:
    """A missing plan prompt is an error with `plan_only`."""
    project = PlanBuildLoop(tmp_path, files={"PLAN.PROMPT.md": None})
    story = project.run(start="plan", plan_only=True)
    assert ("failed", 0) == (story.ended.reason, story.ended.iterations)
    assert isinstance(story.error, PromptNotFound)


@pytest.mark.parametrize("content", [None, " \n"])
def test_no_build_prompt(content: str | None, tmp_path: Path) -> None:
    """A missing build prompt is an error before any session starts."""
    project = PlanBuildLoop(tmp_path, plan=[Turn()], files={"BUILD.PROMPT.md": content})
    story = project.run(start="plan")
    assert ("failed", 1) == (story.ended.reason, story.ended.iterations)
    assert isinstance(story.error, ConfigError)
    assert story.error.message == story.ended.error
    assert [("plan", 1)] == story.phases
    project.assert_released()


def test_plan_only(tmp_path: Path) -> None:
    """With `plan_only` the loop ends after planning, as a success."""
    project = PlanBuildLoop(tmp_path, plan=[Turn(has(J1="open"))])
    ended = project.run(start="plan", plan_only=True).ended
    assert ("planned", 1, 1, True) == (ended.reason, ended.iterations, ended.open, ended.success)


def test_a_prompt_is_read_for_each_session(tmp_path: Path) -> None:
    """A prompt changed during the run applies from the next session on."""
    turns = [Turn({"BUILD.PROMPT.md": "Otherwise.\n"}), Turn(has(True))]
    project = PlanBuildLoop(tmp_path, turns)
    project.run()
    assert ["Build.\n", "Otherwise.\n"] == project.prompts


@pytest.mark.parametrize(
    ("files", "given", "sessions", "rejected"),
    [
        ({}, {}, 0, []),
        ({}, {"fresh": True}, 1, []),
        (has(J1="done"), {}, 0, []),
        (has(J1="open"), {}, 1, ["1 job is not done"]),
        (has(J1="open", J2="blocked"), {}, 1, ["2 jobs are not done"]),
        (has(J1="open"), {"fresh": True}, 1, []),
    ],
)
def test_a_done_file_at_the_start(
    files: dict[str, Any], given: Any, sessions: int, rejected: list[str], tmp_path: Path
) -> None:
    """A done file ends the loop at its start unless a job is open or the file is to be removed."""
    last = Turn(has(True, J1="done", J2="done"))
    project = PlanBuildLoop(tmp_path, [last], files={DONE_FILE: "old", **files})
    story = project.run(**given)
    assert "complete" == story.ended.reason
    assert sessions == len(project.agent.of("build"))
    assert rejected == [event.reason for event in story.of(ev.DoneFileRejected)]
    assert bool(rejected) == ("existed although" in "".join(project.prompts))


def test_a_folder_is_no_done_file(tmp_path: Path) -> None:
    """A folder with that name neither ends the loop nor is removed."""
    (tmp_path / DONE_FILE).mkdir()
    project = PlanBuildLoop(tmp_path, spare=Turn(), plan=[Turn()])
    assert "max_iterations" == project.run(start="plan", max_sessions=3).ended.reason
    assert (tmp_path / DONE_FILE).is_dir()


def test_a_done_file_in_a_pause(tmp_path: Path) -> None:
    """A done file created between two iterations ends the loop."""
    t = plan_build_marbles()
    project = PlanBuildLoop(tmp_path, [Turn()], marbles=t, files=has(J1="open"))
    t.scheduler.schedule_absolute(5.0, lambda *_: write(tmp_path, has(True, J1="done")))
    story = project.run(iteration_pause=10.0)
    assert ("complete", 1, 10.0) == (
        story.ended.reason,
        story.ended.iterations,
        story.times(ev.PlanBuildEnded)[0],
    )
    assert [("J1", True)] == story.verdicts


def test_a_done_file_in_mid_session(tmp_path: Path) -> None:
    """A done file does not end the running session, which is verified first."""
    t = plan_build_marbles(m=Does(has(True)))
    agent, judge = t.cold("-am--d|"), t.cold("--jd|")
    project = PlanBuildLoop(tmp_path, [Turn(stream=agent)], [Turn(stream=judge)], marbles=t)
    assert ("complete", 10.0) == ((story := project.run()).ended.reason, story.ended.duration)
    t.check_subscriptions(agent, "^-----!")
    t.check_subscriptions(judge, "------^---!")


def test_a_done_file_while_findings_are_open(tmp_path: Path) -> None:
    """It is removed after the iteration; the next session is informed of both once."""
    judge = [verdict(False, "it does not link"), verdict(), verdict()]
    turns = [Turn(has(True)), Turn({"a.c": "1"}), Turn(has(True))]
    project = PlanBuildLoop(tmp_path, turns, judge)
    story = project.run()
    assert ("complete", 3) == (story.ended.reason, story.ended.iterations)
    (rejected,) = story.of(ev.DoneFileRejected)
    assert "the verification found: it does not link" == rejected.reason
    first, second, third = project.prompts
    assert "Build.\n" == first == third
    assert second.endswith("\nBuild.\n")
    assert 2 == second.count("it does not link")
    assert second.startswith("# Verification findings\n")
    order = story.tags(ev.DoneFileRejected, ev.PlanBuildIterationEnded)
    assert ["DoneFileRejected", "PlanBuildIterationEnded"] == order[:2]


def test_a_rejected_done_file_may_return(tmp_path: Path) -> None:
    """A done file that was rejected before ends the loop when everything is done."""
    turns = [
        Turn(has(True, J1="open")),
        Turn(has(True, J1="open"), (), crash().error),
        Turn(has(True, J1="done")),
    ]
    project = PlanBuildLoop(tmp_path, turns)
    story = project.run()
    assert ["1 job is not done"] * 2 == [e.reason for e in story.of(ev.DoneFileRejected)]
    assert ("complete", 3) == (story.ended.reason, story.ended.iterations)
    assert [0, 1, 1] == [prompt.count("existed although") for prompt in project.prompts]


def test_blocked_jobs(tmp_path: Path) -> None:
    """If only blocked jobs are left, the loop ends and names them."""
    files = {DONE_FILE: "old", **has(J1="done", J2="blocked", J3="Blocked")}
    project = PlanBuildLoop(tmp_path, files=files)
    story = project.run()
    assert ("blocked", 2, False) == (story.ended.reason, story.ended.blocked, story.ended.success)
    assert "every open job is blocked: J2: bake J2; J3: bake J3" == story.ended.error
    assert not project.is_done


def test_a_broken_jobs_file(tmp_path: Path) -> None:
    """A broken jobs file is reported, and the loop is neither complete nor blocked."""
    broken = {JOBS: "{", DONE_FILE: "done"}
    turns = [Turn(broken), Turn(has(True, J1="done", J2="done"))]
    project = PlanBuildLoop(tmp_path, turns, files=has(J1="blocked", J2="open"))
    story = project.run()
    assert ["the jobs cannot be read"] == [event.reason for event in story.of(ev.DoneFileRejected)]
    assert 1 == len([w for w in story.warnings if "is broken" in w])
    assert ("complete", 2) == (story.ended.reason, story.ended.iterations)
    assert [("J1", True), ("J2", True)] == story.verdicts


@pytest.mark.parametrize("start", ["plan", "build"])
def test_on_a_protected_branch(start: str, tmp_path: Path) -> None:
    """No agent is started on a protected branch unless that is allowed."""
    project = PlanBuildLoop(tmp_path, [Turn(has(True))], plan=[Turn()], files=ON_MAIN)
    story = project.run(start=start)
    assert ("failed", 0) == (story.ended.reason, story.ended.iterations)
    assert isinstance(story.error, ConfigError)
    assert [] == project.agent.spawned
    again = PlanBuildLoop(tmp_path, [Turn(has(True))], plan=[Turn()], files=ON_MAIN)
    assert "complete" == again.run(start=start, allow_main=True).ended.reason


def test_onto_a_protected_branch(tmp_path: Path) -> None:
    """A retry does not start on a protected branch either; the names are configurable."""
    turns = [Turn(ON_MAIN, (), crash().error), Turn(has(True))]
    project = PlanBuildLoop(tmp_path, plan=turns[:1], build=turns[1:])
    story = project.run(start="plan")
    assert isinstance(story.error, ConfigError)
    assert 1 == len(project.agent.spawned)
    again = PlanBuildLoop(tmp_path, [Turn(has(True))], files=ON_MAIN)
    assert "complete" == again.run(protected_branches=("bread",)).ended.reason


def test_pauses(tmp_path: Path) -> None:
    """There is one pause between two sessions, even if the first failed."""
    project = PlanBuildLoop(tmp_path, [Turn(), crash(), Turn(has(True))], plan=[crash(), Turn()])
    story = project.run(start="plan", iteration_pause=5.0)
    assert [0, 5, 5, 10, 15] == story.times(ev.PlanBuildSessionEnded)


def test_completion_comes_before_a_stall(tmp_path: Path) -> None:
    """A loop that returns to the same state and is complete ends as complete."""
    project = PlanBuildLoop(tmp_path, [Turn(), Turn(has(True))], fingerprints=["same"] * 9)
    assert "complete" == project.run(progress_patience=2).ended.reason


# -- claims that a job is done, and the verification of the build (LOP-095, LOP-096)


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


# -- jobs removed from the list before they are verified (LOP-060, LOP-096)


BOTH_OPEN = has(J1="open", J2="open")
BOTH_DONE = Turn(has(True, J1="done", J2="done"))
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
    project = PlanBuildLoop(tmp_path, [Turn(leaves), BOTH_DONE], files=BOTH_OPEN)
    story = project.run()
    assert [reason] == rejections(story)
    assert ("complete", 2) == (story.ended.reason, story.ended.iterations)
    assert f"{DONE_FILE} existed although {reason}" in project.prompts[1]
    assert {("J1", True), ("J2", True)} == set(story.verdicts)


def test_it_is_missed_until_it_is_back(tmp_path: Path) -> None:
    """A removed job is missing until it is back, whenever the done file appears."""
    again = Turn({DONE_FILE: "x"})
    project = PlanBuildLoop(
        tmp_path, [Turn(has(J1="done")), Turn(), again, again, BOTH_DONE], files=BOTH_OPEN
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
    project = PlanBuildLoop(tmp_path, [Turn(has(True, J4="done"))], plan=plan, files=BOTH_OPEN)
    story = project.run(start="plan")
    assert ("complete", []) == (story.ended.reason, rejections(story))


@pytest.mark.parametrize(("is_called_done", "rejected"), [(False, []), (True, [GONE])])
def test_between_two_runs(is_called_done: bool, rejected: list[str], tmp_path: Path) -> None:
    """A person may remove a job between runs; the last session of a killed run may not."""
    t = plan_build_marbles()
    first = PlanBuildLoop(tmp_path, [Turn(stream=t.cold("a-----"))], files=BOTH_OPEN, marbles=t)
    first.run(dispose_at=203)
    write(tmp_path, has(is_called_done, J1="done"))
    second = PlanBuildLoop(tmp_path, [Turn(has(True, J1="done")), BOTH_DONE][is_called_done:])
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
