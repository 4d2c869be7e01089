"""The order of sessions in the plan/build loop, and its results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, defer, just

from cuggino import events as ev
from cuggino.errors import ConfigError
from cuggino.prompts.plan_build import PromptNotFound
from tests.loops.plan_build_loop import (
    DONE_FILE,
    JOBS,
    Does,
    PlanBuildLoop,
    Turn,
    crash,
    has,
    plan_build_marbles,
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
    assert [(0, 0), (1, 0), (0, 1)] == [(e.open, e.done) for e in story.of(ev.JobsCounted)]
    assert "Plan.\n" == project.agent.of("plan")[0].prompt
    assert ["Build.\n"] == project.prompts
    project.assert_released()


def test_plan_removes_an_old_done_file(tmp_path: Path) -> None:
    """A done file of an earlier run is removed before planning and does not end the loop."""
    seen: list[bool] = []

    def head(_scheduler: object) -> Observable[str]:
        seen.append(project.is_done)
        return just("0")

    given: Any = {"files": {DONE_FILE: "old"}, "head": defer(head)}
    project = PlanBuildLoop(tmp_path, [Turn(has(True))], plan=[Turn()], **given)
    assert "complete" == project.run(start="plan").ended.reason
    assert [False, False] == seen


def test_no_plan_prompt(tmp_path: Path) -> None:
    """A missing plan prompt is reported, and the existing jobs are built."""
    project = PlanBuildLoop(tmp_path, [Turn(has(True))], files={"PLAN.PROMPT.md": None})
    story = project.run(start="plan")
    assert ["Plan prompt not found: Prompt file not found: PLAN.PROMPT.md"] == [
        warning.partition("\n")[0] for warning in story.warnings
    ]
    assert ("complete", 1) == (story.ended.reason, story.ended.iterations)
    assert [1] == [event.iteration for event in story.of(ev.PlanBuildIterationEnded)]


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
