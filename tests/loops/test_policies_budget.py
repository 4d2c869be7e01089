"""Costs of the coding loop's agents, and the budgets that end it, in virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.errors import BudgetExceeded, LoopError
from cuggino.events import BudgetWarning, SessionEnded, StageCost
from cuggino.testing import no_leaks
from tests.loops.coding_loop import CodingLoop
from tests.loops.supervised_loop import (
    BEFORE,
    HOUR,
    SupervisedMarbles,
    course,
    error_of,
    events_of,
    failed,
    limited,
    loop_of,
    sessions,
)


class TestCosts:
    def test_costs_of_a_stage_and_of_the_run(self, tmp_path: Path) -> None:
        """A stage reports its cost and the running total right before its marker."""
        t = SupervisedMarbles()
        loop = CodingLoop(
            tmp_path,
            planning=[t.agent("(cs|)")],
            implementing=[t.agent("(gs|)"), t.agent("(u-d|)")],
            reviewing=[t.agent("(ys|)")],
        )
        seen = t.record(loop.run())
        costs = [cost for _, cost in events_of(seen, StageCost)]
        assert ["planning", "implementing", "implementing", "reviewing"] == [c.phase for c in costs]
        assert [0.5, 0.5, None, 0.5] == [cost.cost_usd for cost in costs]
        assert [0.5, 1.0, 1.0, 1.5] == [cost.total_cost for cost in costs]
        assert [None, None, 500, None] == [c.usage and c.usage.input_tokens for c in costs]
        order = [tag for _, tag in course(seen) if not tag.endswith("Start")]
        with_costs = [
            tag
            for mark in ("PlanComplete", "Progress", "Done", "Approved")
            for tag in ("StageCost", mark)
        ]
        assert [*with_costs, "LoopApproved"] == order

    def test_failed_attempts_count(self, tmp_path: Path) -> None:
        """A stage's cost includes its failed sessions."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("ax#", failed()), t.agent("u-"), t.agent("(ds|)"))
        seen = t.record(loop.run(max_retries=1, idle_timeout=5))
        ((_, cost),) = events_of(seen, StageCost)
        assert (0.75, 0.75) == (cost.cost_usd, cost.total_cost)
        assert cost.usage is not None
        assert (500, 100) == (cost.usage.input_tokens, cost.usage.output_tokens)

    def test_before_the_error(self, tmp_path: Path) -> None:
        """A failing stage reports its cost before the error."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("ax#", failed("auth")))
        seen = t.record(loop.run())
        assert [*BEFORE, (2, "StageCost"), (2, "LoopError 1")] == course(seen)

    def test_a_session_without_a_marker(self, tmp_path: Path) -> None:
        """The session and its reminder are one stage, with one cost."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("(as|)"), t.agent("(ds|)"))
        seen = t.record(loop.run())
        assert [1.0] == [cost.cost_usd for _, cost in events_of(seen, StageCost)]


class TestTokens:
    def test_the_running_agent_is_cut(self, tmp_path: Path) -> None:
        """The message that exceeds the budget ends the agent, and the loop with exit code 13."""
        t = SupervisedMarbles()
        agent = t.agent("a-u-a-a-a")
        loop = loop_of(tmp_path, t, agent)
        with no_leaks():
            seen = t.record(loop.run(max_tokens=500, max_retries=3, wait_for_quota=True))
        ends = [(2, "BudgetWarning"), (2, "StageCost"), (2, "LoopError 13")]
        assert [*BEFORE, *ends] == course(seen)
        assert [(0, 2)] == agent.subscriptions
        error = error_of(seen)
        assert isinstance(error, LoopError)
        assert isinstance(error.cause, BudgetExceeded)
        assert "600 of 500" in error.message
        assert "--max-tokens" in (error.hint or "")
        loop.assert_released()

    def test_a_warning_comes_once(self, tmp_path: Path) -> None:
        """There is one warning per run, at 80 % of a budget."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("(ugs|)"), t.agent("(ds|)"))
        seen = t.record(loop.run(max_tokens=700))
        warned = [(when, warning) for when, warning in events_of(seen, BudgetWarning)]
        assert [(0, BudgetWarning(budget="tokens", spent=600, limit=700))] == warned
        assert "LoopApproved" == course(seen)[-1][1]


class TestMoney:
    def test_each_session_may_spend_what_is_left(self, tmp_path: Path) -> None:
        """An agent with its own budget option gets the rest of the run's budget."""
        t = SupervisedMarbles()
        loop = CodingLoop(
            tmp_path,
            planning=[t.agent("(cs|)")],
            implementing=[t.agent("ax#", failed()), t.agent("(ds|)")],
            reviewing=[t.agent("(y|)")],
            can_resume=True,
        )
        t.record(loop.run(budget=2, max_retries=1))
        assert [2, 1.5, 1.25, 0.75] == [options.max_budget_usd for options in loop.agent.spawned]

    def test_no_session_starts_without_budget(self, tmp_path: Path) -> None:
        """A session that exceeds the budget counts when it has ended; the next is not started."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("(gs|)"), t.agent("(ds|)"))
        seen = t.record(loop.run(budget=0.5))
        ends = ["BudgetWarning", "StageCost", "Progress", "ImplementingStart", "LoopError 13"]
        assert ends == [tag for _, tag in course(seen)[4:]]
        assert 1 == len(sessions(loop, "implementing"))

    def test_no_retry_without_budget(self, tmp_path: Path) -> None:
        """A failed session is not retried when the budget is spent."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("ax#", failed()), t.agent("(d|)"))
        seen = t.record(loop.run(budget=0.25, max_retries=3))
        assert (2, "LoopError 13") == course(seen)[-1]
        assert 1 == len(sessions(loop, "implementing"))
        assert 0 == t.pending

    def test_the_agents_own_limit(self, tmp_path: Path) -> None:
        """An agent that stops at its own budget ends the loop with exit code 13."""
        t = SupervisedMarbles()
        t.events["x"] = SessionEnded(outcome="budget", cost_usd=0.6)
        own = BudgetExceeded("Reached maximum budget ($0.5)", hint="allow more")
        loop = loop_of(tmp_path, t, t.agent("ax#", own), t.agent("(d|)"))
        seen = t.record(loop.run(budget=0.5, max_retries=3))
        assert (2, "LoopError 13") == course(seen)[-1]
        assert "$0.6000 of $0.5000 spent" in error_of(seen).message
        assert "--budget" in (error_of(seen).hint or "")


class TestTime:
    def test_the_running_agent_is_cut(self, tmp_path: Path) -> None:
        """The time budget ends the agent on the second, after a warning at 80 %."""
        t = SupervisedMarbles()
        agent = t.agent("a-a-a-a-a-a-a-a-")
        loop = loop_of(tmp_path, t, agent)
        seen = t.record(loop.run(max_duration=10, idle_timeout=900))
        assert [*BEFORE, (8, "BudgetWarning"), (10, "LoopError 13")] == course(seen)
        assert [(0, 10)] == agent.subscriptions
        assert "10 s of 10 s" in error_of(seen).message
        loop.assert_released()

    @pytest.mark.parametrize("pause", ["retry", "quota"])
    def test_a_pause_is_cut_too(self, tmp_path: Path, pause: str) -> None:
        """The time budget ends retry pauses and waits for usage."""
        t = SupervisedMarbles()
        error = failed() if pause == "retry" else limited(HOUR)
        loop = loop_of(tmp_path, t, t.agent("a#", error), t.agent("(d|)"))
        policies = {"max_retries": 1, "retry_pause": 3000.0, "wait_for_quota": True}
        seen = t.record(loop.run(max_duration=100, **policies), until=100)
        assert [(80, "BudgetWarning"), (100, "LoopError 13")] == [
            said for said in course(seen)[5:] if said[1] != "QuotaWaiting"
        ]
        assert 0 == t.pending
        assert 1 == len(sessions(loop, "implementing"))

    def test_a_command_is_cut_too(self, tmp_path: Path) -> None:
        """The time budget ends the check command."""
        t = SupervisedMarbles()
        check = t.agent("-")
        loop = loop_of(tmp_path, t, t.agent("(d|)"), commands={"check": [check]})
        seen = t.record(loop.run(max_duration=10, check_command="check"))
        assert (10, "BudgetExceeded 13") == course(seen)[-1]
        assert [(0, 10)] == check.subscriptions
        loop.assert_released()

    def test_an_outcome_before_the_time_is_up(self, tmp_path: Path) -> None:
        """An outcome counts even if the time is up before the agent has ended."""
        t = SupervisedMarbles()
        agent = t.agent("a-g-a-a-a-")
        loop = loop_of(tmp_path, t, agent, t.agent("(d|)"))
        seen = t.record(loop.run(max_duration=5, linger=10))
        ends = [(5, "Progress"), (5, "ImplementingStart"), (5, "LoopError 13")]
        assert [*BEFORE, (4, "BudgetWarning"), *ends] == course(seen)
        assert [(0, 5)] == agent.subscriptions
        assert 1 == len(sessions(loop, "implementing"))
