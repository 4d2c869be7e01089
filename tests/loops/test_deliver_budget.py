"""Budgets of the deliverables loop: money, tokens, time (AUT-055, AUT-056)."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.errors import AgentFailed, BudgetExceeded
from tests.loops.deliver_loop import DeliverLoop, Turn, deliver_marbles

START = {"a": "pending"}
HALF = ev.SessionEnded(outcome="completed", cost_usd=0.5)
SPENT = ev.SessionEnded(outcome="budget", cost_usd=0.5)
USED = ev.UsageUpdate(usage=ev.Usage(input_tokens=500, output_tokens=100))


def test_money_that_is_spent(tmp_path: Path) -> None:
    """No session is started when the budget is spent: the result follows, then the error."""
    project = DeliverLoop(tmp_path, [Turn((HALF,))] * 2, START)
    story = project.run(budget=1.0, session_pause=2.0)
    assert [0, 2] == story.times(ev.DeliverSessionStarted)
    assert [4] == story.times(ev.DeliverEnded)
    end = story.ended
    assert ("budget_exceeded", 2, 1.0) == (end.reason, end.sessions, end.cost_usd)
    assert isinstance(story.error, BudgetExceeded)
    assert story.error.message == end.error
    assert ["completed", "completed"] == story.outcomes
    assert [1.0, 0.5] == [options.max_budget_usd for options in project.agent.spawned]
    assert 1 == len(story.of(ev.BudgetWarning))
    project.assert_released()


def test_all_passed_with_the_last_cent(tmp_path: Path) -> None:
    """Success takes precedence over a spent budget."""
    story = DeliverLoop(tmp_path, [Turn((HALF,), {"a": "passed"})], START).run(budget=0.5)
    assert "all_passed" == story.ended.reason
    assert story.error is None


def test_tokens_that_are_overdrawn(tmp_path: Path) -> None:
    """The running session is stopped, and its end is reported before the result."""
    t = deliver_marbles(u=USED)
    agent = t.cold("-u-a-d|")
    project = DeliverLoop(tmp_path, [Turn(stream=agent)], START, t)
    story = project.run(max_tokens=100)
    assert ["budget"] == story.outcomes
    assert ("budget_exceeded", 1) == (story.ended.reason, story.ended.sessions)
    assert isinstance(story.error, BudgetExceeded)
    t.check_subscriptions(agent, "^!")
    project.assert_released()


def test_the_time_is_up(tmp_path: Path) -> None:
    """The session is stopped on the second; pauses count too."""
    t = deliver_marbles()
    second = t.cold("-a- 1m d|")
    turns = [Turn(stream=t.cold("--d|")), Turn(stream=second)]
    project = DeliverLoop(tmp_path, turns, START, t)
    story = project.run(max_duration=20.0, session_pause=5.0)
    assert [(8, 20)] == second.subscriptions
    assert ["completed", "budget"] == story.outcomes
    assert ("budget_exceeded", 20.0) == (story.ended.reason, story.ended.duration)
    project.assert_released()


def test_the_time_is_up_in_a_pause(tmp_path: Path) -> None:
    """A budget that ends in a pause starts no further session."""
    story = DeliverLoop(tmp_path, [Turn()], START).run(max_duration=2.0, session_pause=5.0)
    assert ("budget_exceeded", 1) == (story.ended.reason, story.ended.sessions)
    assert [0] == story.times(ev.DeliverSessionStarted)


def test_the_time_is_up_behind_a_good_result(tmp_path: Path) -> None:
    """A session with a good result counts even if the time is up (AUT-024)."""
    t = deliver_marbles()
    agent = t.cold("-d- 1m |")
    project = DeliverLoop(tmp_path, [Turn(stream=agent, leaves={"a": "passed"})], START, t)
    story = project.run(max_duration=20.0)
    assert [(0, 20)] == agent.subscriptions
    assert (["completed"], "all_passed") == (story.outcomes, story.ended.reason)
    assert story.error is None


@pytest.mark.parametrize("error", [BudgetExceeded("spent"), None, AgentFailed("1", reason="crash")])
def test_an_agent_that_spent_the_run_budget(error: Exception | None, tmp_path: Path) -> None:
    """An agent that spent the whole budget ends the loop."""
    story = DeliverLoop(tmp_path, [Turn((SPENT,), error=error)], START).run(budget=0.5)
    assert (["budget"], "budget_exceeded") == (story.outcomes, story.ended.reason)
    assert isinstance(story.error, BudgetExceeded)
    assert [] == story.of(ev.DeliverSessionRetry)


def test_an_agent_with_a_budget_of_its_own(tmp_path: Path) -> None:
    """An agent's own budget ends its session without a failure; another follows (AUT-055)."""
    spent = Turn((SPENT,), error=BudgetExceeded("spent"))
    turns = [spent, spent, Turn(leaves={"a": "passed"})]
    story = DeliverLoop(tmp_path, turns, START).run(max_retries=0)
    assert ["budget", "budget", "completed"] == story.outcomes
    assert "all_passed" == story.ended.reason
    assert [] == story.of(ev.DeliverSessionRetry)
