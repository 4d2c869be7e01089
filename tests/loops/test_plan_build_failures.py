"""Failures and interruptions of what only plan/build has: verifications, commands, commits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.errors import QuotaExceeded
from tests.loops.plan_build_loop import PlanBuildLoop, Turn, crash, has, plan_build_marbles, verdict
from tests.loops.session_loop import replayed
from tests.loops.supervised_loop import limited


def test_jobs_are_counted_after_a_crash(tmp_path: Path) -> None:
    """The result counts the jobs as they are."""
    project = PlanBuildLoop(tmp_path, [crash(leaves=has(J1="open", J2="open"))])
    story = project.run(max_retries=0)
    assert ("max_retries_exceeded", 2) == (story.ended.reason, story.ended.open)
    assert [] == story.of(ev.PlanBuildIterationEnded)


def test_the_usage_limit_of_a_verification(tmp_path: Path) -> None:
    """A usage limit of a verification ends the loop with its error."""
    limit = Turn(events=(ev.SessionEnded(outcome="quota"),), error=limited())
    project = PlanBuildLoop(tmp_path, [Turn()], [limit])
    story = project.run()
    assert "quota_exceeded" == story.ended.reason
    assert isinstance(story.error, QuotaExceeded)
    assert story.error.message == story.ended.error
    assert 1 == len(project.agent.of("judge"))
    project.assert_released()


@pytest.mark.parametrize("stop", [None, 100.0])
def test_a_verification_waits_for_the_usage_limit(stop: float | None, tmp_path: Path) -> None:
    """With `wait_for_quota` it waits for the end of the limit, or of the run."""
    t = plan_build_marbles(q=ev.SessionEnded(outcome="quota"))
    t.error = limited(3600.0)
    judge = [Turn(stream=t.cold("-q#")), verdict()]
    project = PlanBuildLoop(tmp_path, [Turn(has(True))], judge, marbles=t)
    interrupt = replayed(t, stop or 1e6)
    story = project.run(interrupt=interrupt, wait_for_quota=True, quota_margin=60.0)
    assert 2 == story.times(ev.QuotaWaiting)[0]
    expected = ("interrupted", 100.0) if stop else ("complete", 3660.0)
    assert expected == (story.ended.reason, story.ended.duration)
    assert [] == story.of(ev.PlanBuildSessionRetry)


def test_the_time_of_a_run(tmp_path: Path) -> None:
    """The time limit applies to the project's commands too."""
    t = plan_build_marbles()
    make = t.cold("- 1h |")
    project = PlanBuildLoop(tmp_path, [Turn()], marbles=t, shells={"make": make})
    story = project.run(max_duration=60.0, verify_build="make")
    assert ("budget_exceeded", 60.0) == (story.ended.reason, story.ended.duration)
    assert [(0, 60)] == make.subscriptions
    project.assert_released()


def test_costs_are_reported(tmp_path: Path) -> None:
    """Costs are reported per session, and in the result with those of verifications."""
    project = PlanBuildLoop(tmp_path, [Turn(has(True, J1="done"))], plan=[Turn(has(J1="open"))])
    story = project.run(start="plan")
    assert [0.01, 0.01] == [event.cost_usd for event in story.of(ev.PlanBuildSessionEnded)]
    assert 0.04 == pytest.approx(story.ended.cost_usd)


@pytest.mark.parametrize("slow", ["commits", "head", "commit"])
def test_interrupted_in_git(slow: str, tmp_path: Path) -> None:
    """Reading many commits, and a commit whose hook hangs, are canceled."""
    t = plan_build_marbles()
    look = t.cold("- 1h -")
    project = PlanBuildLoop(tmp_path, [Turn()], marbles=t)
    if slow == "head":
        project.head = look
    elif slow == "commit":
        project.committing = look
    else:
        calls: list[str | None] = []
        commits = project.service.services.commits

        def looked(cwd: Path, base: str | None) -> Any:
            calls.append(base)
            return look if len(calls) > 1 else commits(cwd, base)

        project.replace(commits=looked)
    story = project.run(interrupt=replayed(t, 5.0), auto_commit=slow == "commit")
    assert ("interrupted", 5.0) == (story.ended.reason, story.ended.duration)
    t.check_subscriptions(look, "^----!")
    project.assert_released()


def test_no_verification_behind_an_interruption(tmp_path: Path) -> None:
    """A session that reported a result is completed; its verification is not started."""
    t = plan_build_marbles()
    project = PlanBuildLoop(tmp_path, [Turn(stream=t.cold("-ad 9s |"))], [], marbles=t)
    story = project.run(interrupt=replayed(t, 5.0))
    assert (["completed"], "interrupted") == (story.outcomes, story.ended.reason)
    assert 5.0 == story.ended.duration
    project.assert_released()
