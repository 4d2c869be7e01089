"""Sessions of the plan/build loop that fail, wait, and spend (LOP-064)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.errors import AgentFailed, BudgetExceeded, QuotaExceeded
from tests.loops.plan_build_loop import PlanBuildLoop, Turn, crash, has, plan_build_marbles, verdict
from tests.loops.supervised_loop import limited

LAST = Turn(has(True))
LIMIT = Turn(events=(ev.SessionEnded(outcome="quota"),), error=limited())


@pytest.mark.parametrize("phase", ["plan", "build"])
@pytest.mark.parametrize("most", [0, 1, 3])
def test_too_many_crashes(phase: str, most: int, tmp_path: Path) -> None:
    """After `max_retries` failures in a row the next one ends the loop."""
    turns: dict[str, Any] = {phase: [crash(f"e{n}") for n in range(most + 1)]}
    project = PlanBuildLoop(tmp_path, **turns)
    story = project.run(start=phase, max_retries=most)
    assert ("max_retries_exceeded", most + 1, f"e{most}") == (
        story.ended.reason,
        story.ended.iterations,
        story.ended.error,
    )
    retries = [(e.attempt, e.max_retries, e.message) for e in story.of(ev.PlanBuildSessionRetry)]
    assert [(n + 1, most, f"e{n}") for n in range(most)] == retries
    assert [] == story.of(ev.PlanBuildIterationEnded)
    assert story.error is None
    project.assert_released()


def test_crashes_are_counted_in_a_row(tmp_path: Path) -> None:
    """A completed session, also a planning one, resets the count of failures."""
    turns = [crash(), crash(), Turn(), crash(), crash(), LAST]
    project = PlanBuildLoop(tmp_path, turns, plan=[crash(), crash(), Turn()])
    story = project.run(start="plan", max_retries=2)
    assert [1, 2] * 3 == [event.attempt for event in story.of(ev.PlanBuildSessionRetry)]
    assert ("complete", 9) == (story.ended.reason, story.ended.iterations)
    assert [3, 6, 9] == [event.iteration for event in story.of(ev.PlanBuildIterationEnded)]


def test_jobs_are_counted_after_a_crash(tmp_path: Path) -> None:
    """The result counts the jobs as they are."""
    project = PlanBuildLoop(tmp_path, [crash(leaves=has(J1="open", J2="open"))])
    ended = project.run(max_retries=0).ended
    assert ("max_retries_exceeded", 2) == (ended.reason, ended.open)


def test_an_outage(tmp_path: Path) -> None:
    """An outage is waited out within the session, as one iteration."""
    t = plan_build_marbles(x=ev.SessionEnded(outcome="failed"))
    t.error = AgentFailed("529", reason="overloaded")
    bad, good = t.cold("-x#"), t.cold("-ad|")
    project = PlanBuildLoop(tmp_path, [Turn(stream=bad), Turn(LAST.leaves, stream=good)], marbles=t)
    story = project.run(retry_pause=0.0)
    assert ("complete", 1) == (story.ended.reason, story.ended.iterations)
    t.check_subscriptions(bad, "^-!")
    t.check_subscriptions(good, "--^--!")
    assert ["completed"] == story.outcomes
    assert [] == story.of(ev.PlanBuildSessionRetry)


@pytest.mark.parametrize("role", ["plan", "build", "judge"])
def test_the_usage_limit(role: str, tmp_path: Path) -> None:
    """A usage limit ends the loop with its error in every phase."""
    turns: dict[str, Any] = {
        "plan": [Turn()],
        "build": [Turn()],
        "judge": [verdict()],
        role: [LIMIT],
    }
    project = PlanBuildLoop(tmp_path, **turns)
    story = project.run(start="plan")
    assert "quota_exceeded" == story.ended.reason
    assert isinstance(story.error, QuotaExceeded)
    assert story.error.message == story.ended.error
    assert 1 == len(project.agent.of(role))
    project.assert_released()


@pytest.mark.parametrize("role", ["plan", "build", "judge"])
def test_the_usage_limit_is_waited_for(role: str, tmp_path: Path) -> None:
    """With `wait_for_quota` the session continues when the limit is lifted, without a failure."""
    t = plan_build_marbles(q=ev.SessionEnded(outcome="quota"))
    t.error = limited(3600.0)
    limit = Turn(stream=t.cold("-q#"))
    turns: dict[str, Any] = {"plan": [Turn()], "build": [LAST], "judge": [verdict()]}
    turns[role].insert(0, limit)
    project = PlanBuildLoop(tmp_path, marbles=t, **turns)
    story = project.run(start="plan", wait_for_quota=True, quota_margin=60.0)
    assert ("complete", 2) == (story.ended.reason, story.ended.iterations)
    assert [3660.0] == story.times(ev.PlanBuildEnded)
    assert story.of(ev.QuotaWaiting)
    assert [] == story.of(ev.PlanBuildSessionRetry)


@pytest.mark.parametrize(("start", "budget", "sessions"), [("plan", 0.01, 2), ("build", 0.02, 1)])
def test_a_budget_before_a_session(
    start: str, budget: float, sessions: int, tmp_path: Path
) -> None:
    """No session is started or counted when the budget is spent."""
    project = PlanBuildLoop(tmp_path, [Turn()], plan=[crash(), Turn()])
    story = project.run(start=start, budget=budget)
    assert isinstance(story.error, BudgetExceeded)
    assert ("budget_exceeded", sessions, budget) == (
        story.ended.reason,
        story.ended.iterations,
        story.ended.cost_usd,
    )
    assert sessions == len(story.outcomes)
    project.assert_released()


def test_a_budget_within_a_session(tmp_path: Path) -> None:
    """A session that exceeds the budget ends the loop, after the session's own end event."""
    turn = Turn(events=(ev.SessionEnded(outcome="budget", cost_usd=0.5),))
    project = PlanBuildLoop(tmp_path, [turn])
    story = project.run(budget=0.1)
    assert ("budget_exceeded", 1, 0.5) == (
        story.ended.reason,
        story.ended.iterations,
        story.ended.cost_usd,
    )
    assert ["budget"] == story.outcomes
    assert isinstance(story.error, BudgetExceeded)


def test_the_time_of_a_run(tmp_path: Path) -> None:
    """The time limit applies to the project's commands too."""
    t = plan_build_marbles()
    make = t.cold("- 1h |")
    project = PlanBuildLoop(tmp_path, [Turn()], marbles=t, shells={"make": make})
    story = project.run(max_duration=60.0, verify_build="make")
    assert ("budget_exceeded", 60.0) == (story.ended.reason, story.ended.duration)
    assert [(0, 60)] == make.subscriptions
    project.assert_released()


@pytest.mark.parametrize("phase", ["plan", "build"])
def test_no_login(phase: str, tmp_path: Path) -> None:
    """A failed login ends the loop without a retry."""
    turns: dict[str, Any] = {phase: [crash("log in", reason="auth")]}
    project = PlanBuildLoop(tmp_path, **turns)
    story = project.run(start=phase)
    assert ("failed", "log in", 1) == (
        story.ended.reason,
        story.ended.error,
        story.ended.iterations,
    )
    assert [] == story.of(ev.PlanBuildSessionRetry)
    assert isinstance(story.error, AgentFailed)


def test_a_custom_agent(tmp_path: Path) -> None:
    """Any exception of an agent is a failed session."""
    project = PlanBuildLoop(tmp_path, [Turn(events=(), error=ValueError("own")), LAST])
    story = project.run()
    assert ["error", "completed"] == story.outcomes
    assert ["own"] == [event.message for event in story.of(ev.PlanBuildSessionRetry)]


def test_costs_are_reported(tmp_path: Path) -> None:
    """Costs are reported per session, and in the result with those of verifications."""
    project = PlanBuildLoop(tmp_path, [Turn(has(True, J1="done"))], plan=[Turn(has(J1="open"))])
    story = project.run(start="plan")
    assert [0.01, 0.01] == [event.cost_usd for event in story.of(ev.PlanBuildSessionEnded)]
    assert 0.04 == pytest.approx(story.ended.cost_usd)
