"""The policies of the coding loop in virtual time: retries, budgets, usage limits, silence.

The laws of each policy are proven in tests/operators; here is what the loop makes of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import throw

from cuggino import events as ev
from cuggino.agents.base import Role
from cuggino.config import Config
from cuggino.errors import AgentFailed, AgentStalled, BudgetExceeded, LoopError, QuotaExceeded
from cuggino.storage import read_journal
from cuggino.testing import no_leaks
from tests.loops.coding_loop import CodingLoop, drawn
from tests.loops.supervised_loop import (
    APPROVED,
    BEFORE,
    HOUR,
    PLANNED,
    SupervisedMarbles,
    course,
    error_of,
    events_of,
    failed,
    limited,
    loop_of,
    sessions,
)


class TestRetries:
    def test_a_transient_failure_is_retried(self, tmp_path: Path) -> None:
        """A transient failure is reported, and the same session is resumed after a pause."""
        t = SupervisedMarbles()
        first, second = t.agent("aa#", failed()), t.agent("-d|")
        loop = loop_of(tmp_path, t, first, second)
        with no_leaks():
            seen = t.record(loop.run(max_retries=3))
        assert [*PLANNED, "AgentRetry", *APPROVED] == [tag for _, tag in course(seen)]
        ((when, retry),) = events_of(seen, ev.AgentRetry)
        assert (2, "overloaded", 1, 3) == (when, retry.reason, retry.attempt, retry.max_retries)
        assert 4 <= retry.retry_in <= 6
        again = when + retry.retry_in
        assert [(0, 2)] == first.subscriptions
        assert pytest.approx((again, again + 2), abs=0.01) == second.subscriptions[0]
        begun, resumed = sessions(loop, "implementing")
        assert begun.session_id == resumed.resume_session_id
        assert resumed.session_id is None
        assert "was cut off (it was overloaded)" in resumed.prompt
        assert (begun.turn, begun.env) == (resumed.turn, resumed.env)
        loop.assert_released()

    def test_without_session_resumption(self, tmp_path: Path) -> None:
        """Without session resumption a new session gets the same prompts."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("a#", failed()), t.agent("d|"), can_resume=False)
        t.record(loop.run(max_retries=1))
        begun, fresh = sessions(loop, "implementing")
        assert (begun.prompt, begun.system_prompt) == (fresh.prompt, fresh.system_prompt)
        assert fresh.resume_session_id is None
        assert fresh.session_id not in (None, begun.session_id)

    def test_a_session_without_events_is_not_resumed(self, tmp_path: Path) -> None:
        """A session that ended before its first event is not resumed."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("#", failed("connection")), t.agent("d|"))
        t.record(loop.run(max_retries=1))
        begun, fresh = sessions(loop, "implementing")
        assert fresh.resume_session_id is None
        assert begun.prompt == fresh.prompt

    def test_a_lost_session_is_replaced(self, tmp_path: Path) -> None:
        """A session that the agent has lost is replaced at once."""
        t = SupervisedMarbles()
        unknown = throw(AgentFailed("No conversation found", reason="bad_request"))
        loop = loop_of(tmp_path, t, t.agent("a#", failed()), unknown, t.agent("d|"))
        seen = t.record(loop.run(max_retries=1))
        assert [*PLANNED, "AgentRetry", *APPROVED] == [tag for _, tag in course(seen)]
        begun, refused, fresh = sessions(loop, "implementing")
        assert begun.session_id == refused.resume_session_id
        assert (None, begun.prompt) == (fresh.resume_session_id, fresh.prompt)

    def test_the_last_retry(self, tmp_path: Path) -> None:
        """After the last retry the loop fails, and the stage's cost is reported before."""
        t = SupervisedMarbles()
        broken = [t.agent("ax#", failed()) for _ in range(4)]
        loop = loop_of(tmp_path, t, *broken, t.agent("d|"))
        seen = t.record(loop.run(max_retries=3))
        expected = [*PLANNED, *["AgentRetry"] * 3, "StageCost", "LoopError 1"]
        assert expected == [tag for _, tag in course(seen)]
        begun, *resumed = sessions(loop, "implementing")
        assert [begun.session_id] * 3 == [options.resume_session_id for options in resumed]
        error = error_of(seen)
        assert isinstance(error, LoopError)
        assert "Loop error in implementing phase: it was overloaded" == error.message
        assert isinstance(error.cause, AgentFailed)
        assert [1.0] == [cost.cost_usd for _, cost in events_of(seen, ev.StageCost)]
        loop.assert_released()

    def test_each_stage_has_all_its_retries(self, tmp_path: Path) -> None:
        """Each stage has the full number of retries."""
        t = SupervisedMarbles()
        loop = drawn(
            tmp_path,
            t,
            [t.agent("a#", failed()), t.agent("a#", failed("server")), t.agent("c|")],
            [t.agent("a#", failed()), t.agent("a#", failed("crash")), t.agent("d|")],
            "(y|)",
            can_resume=True,
        )
        seen = t.record(loop.run(max_retries=2))
        assert "LoopApproved" == course(seen)[-1][1]
        retries = [(retry.reason, retry.attempt) for _, retry in events_of(seen, ev.AgentRetry)]
        expected = [("overloaded", 1), ("server", 2), ("overloaded", 1), ("crash", 2)]
        assert expected == retries

    def test_permanent_failures_are_not_retried(self, tmp_path: Path) -> None:
        """A permanent failure, such as a refused key, ends the loop at once."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("a#", failed("auth")), t.agent("d|"))
        seen = t.record(loop.run(max_retries=3, wait_for_quota=True))
        assert (1, "LoopError 1") == course(seen)[-1]
        assert 1 == len(sessions(loop, "implementing"))


class TestTogether:
    def test_crashes_and_limits_in_turn(self, tmp_path: Path) -> None:
        """Waits for usage limits restore no retries: crash, crash, limit in turn ends."""
        t = SupervisedMarbles()
        turns = [
            t.agent("a#", error)
            for n in range(4)
            for error in (failed("crash"), failed("crash"), limited(n * HOUR + HOUR))
        ]
        loop = loop_of(tmp_path, t, *turns)
        seen = t.record(loop.run(max_retries=3, wait_for_quota=True))
        assert [1, 2, 3] == [retry.attempt for _, retry in events_of(seen, ev.AgentRetry)]
        assert "LoopError 1" == course(seen)[-1][1]
        assert 5 == len(sessions(loop, "implementing"))

    @pytest.mark.parametrize("pause", ["retry", "quota"])
    def test_disposal_in_a_pause(self, tmp_path: Path, pause: str) -> None:
        """Disposal during a retry pause leaves no timer and frees the workspace."""
        t = SupervisedMarbles()
        error = failed() if pause == "retry" else limited(HOUR)
        loop = loop_of(tmp_path, t, t.agent("a#", error), t.agent("d|"))
        with no_leaks():
            seen = t.record(
                loop.run(
                    max_retries=3,
                    wait_for_quota=True,
                    idle_timeout=900,
                    stage_timeout=9000,
                    max_duration=86400,
                ),
                dispose_at=3,
                until=3,
            )
        expected = "AgentRetry" if pause == "retry" else "QuotaWaiting"
        assert (1, expected) == course(seen)[-1]
        assert 0 == t.pending
        assert 1 == len(sessions(loop, "implementing"))
        loop.assert_released()


class TestCosts:
    def test_costs_of_a_stage_and_of_the_run(self, tmp_path: Path) -> None:
        """A stage reports its cost and the running total right before its marker."""
        t = SupervisedMarbles()
        loop = drawn(tmp_path, t, "(cs|)", "(gs|) (u-d|)", "(ys|)")
        seen = t.record(loop.run())
        costs = [cost for _, cost in events_of(seen, ev.StageCost)]
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
        ((_, cost),) = events_of(seen, ev.StageCost)
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
        assert [1.0] == [cost.cost_usd for _, cost in events_of(seen, ev.StageCost)]


class TestTokens:
    def test_the_running_agent_is_cut(self, tmp_path: Path) -> None:
        """The message that exceeds the budget ends the agent, and the loop with exit code 13."""
        t = SupervisedMarbles()
        agent = t.agent("a-u-a-a-a")
        loop = loop_of(tmp_path, t, agent)
        with no_leaks():
            plain = {"max_tokens": 500, "count_tokens": "plain"}
            seen = t.record(loop.run(**plain, max_retries=3, wait_for_quota=True))
        ends = [(2, "BudgetWarning"), (2, "StageCost"), (2, "LoopError 13")]
        assert [*BEFORE, *ends] == course(seen)
        assert [(0, 2)] == agent.subscriptions
        error = error_of(seen)
        assert isinstance(error, LoopError)
        assert isinstance(error.cause, BudgetExceeded)
        assert "600 of 500 tokens" in error.message
        assert "--max-tokens" in (error.hint or "")
        loop.assert_released()


class TestMoney:
    def test_each_session_may_spend_what_is_left(self, tmp_path: Path) -> None:
        """An agent with its own budget option gets the rest of the run's budget."""
        t = SupervisedMarbles()
        loop = drawn(
            tmp_path,
            t,
            "(cs|)",
            [t.agent("ax#", failed()), t.agent("(ds|)")],
            "(y|)",
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

    def test_the_agents_own_limit(self, tmp_path: Path) -> None:
        """An agent that stops at its own budget ends the loop with exit code 13."""
        t = SupervisedMarbles()
        t.events["x"] = ev.SessionEnded(outcome="budget", cost_usd=0.6)
        own = BudgetExceeded("Reached maximum budget ($0.5)", hint="allow more")
        loop = loop_of(tmp_path, t, t.agent("ax#", own), t.agent("(d|)"))
        seen = t.record(loop.run(budget=0.5, max_retries=3))
        assert (2, "LoopError 13") == course(seen)[-1]
        assert "$0.60 of $0.50 spent" in error_of(seen).message
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


class TestUsageLimits:
    @pytest.mark.parametrize("role", ["planning", "implementing", "reviewing"])
    def test_every_agent_waits(self, tmp_path: Path, role: Role) -> None:
        """The agent of any role is resumed when its usage limit is lifted."""
        t = SupervisedMarbles()
        ends = {"planning": "(c|)", "implementing": "(d|)", "reviewing": "(y|)"}
        agents: dict[str, Any] = {name: [t.agent(end)] for name, end in ends.items()}
        agents[role].insert(0, t.agent("a#", limited(HOUR)))
        loop = CodingLoop(tmp_path, can_resume=True, **agents)
        seen = t.record(loop.run(wait_for_quota=True))
        assert (HOUR + 60, "LoopApproved") == course(seen)[-1]
        begun, resumed = sessions(loop, role)
        assert begun.session_id == resumed.resume_session_id
        assert 4 == len(loop.agent.spawned)

    def test_without_waiting_it_can_be_resumed(self, tmp_path: Path) -> None:
        """Without `wait_for_quota` the loop ends with exit code 12 and can be resumed."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("ax#", limited(5 * HOUR)))
        seen = t.record(loop.run(max_retries=3, journal=True))
        assert [*PLANNED, "StageCost", "LoopError 12"] == [tag for _, tag in course(seen)]
        error = error_of(seen)
        assert isinstance(error, LoopError)
        assert isinstance(error.cause, QuotaExceeded)
        assert "start again after 1970-01-01 05:00 UTC" == error.hint
        (path,) = loop.workspace.journal.iterdir()
        journal = read_journal(path)
        assert journal.ended == ev.RunEnded(state="quota", message=error.message)
        assert journal.resumable

    def test_a_completed_session_resets_the_pauses(self, tmp_path: Path) -> None:
        """A completed session resets the pauses to 15 minutes."""
        t = SupervisedMarbles()
        loop = drawn(
            tmp_path,
            t,
            [t.agent("a#", limited()), t.agent("a#", limited()), t.agent("(c|)")],
            [t.agent("a#", limited()), t.agent("(d|)")],
            "(y|)",
            can_resume=True,
        )
        seen = t.record(loop.run(wait_for_quota=True))
        assert [900, 1800, 900] == [lifted.waited for _, lifted in events_of(seen, ev.QuotaLifted)]
        assert "LoopApproved" == course(seen)[-1][1]

    def test_the_reminder_has_no_waits_of_its_own(self, tmp_path: Path) -> None:
        """The waits before and after the reminder of a missing marker count together."""
        t = SupervisedMarbles()
        agents = [
            t.agent("a#", limited(HOUR)),
            t.agent("a|"),
            t.agent("a#", limited(2 * HOUR)),
            t.agent("a#", limited(3 * HOUR)),
        ]
        loop = loop_of(tmp_path, t, *agents)
        seen = t.record(loop.run(wait_for_quota=True, max_quota_waits=2))
        assert 2 == len(events_of(seen, ev.QuotaLifted))
        assert "LoopError 12" == course(seen)[-1][1]

    def test_the_margin_can_be_set(self, tmp_path: Path) -> None:
        """The session is resumed `quota_margin` seconds after the reset."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("a#", limited(HOUR)), t.agent("d|"))
        seen = t.record(loop.run(wait_for_quota=True, quota_margin=1.5))
        assert [HOUR + 1.5] == [when for when, _ in events_of(seen, ev.QuotaLifted)]

    def test_a_limit_that_was_overcome(self, tmp_path: Path) -> None:
        """A limit reported by a session that completes delays nothing."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("al-ds|"))
        seen = t.record(loop.run(wait_for_quota=True))
        assert [] == events_of(seen, ev.QuotaWaiting)
        assert (5, "LoopApproved") == course(seen)[-1]


def approved_at(when: float) -> list[tuple[float, str]]:
    return [(when, tag) for tag in ("Done", "ReviewingStart", "Approved", "LoopApproved")]


class TestSilence:
    def test_the_ladder(self, tmp_path: Path) -> None:
        """Silence leads to a nudge, then to a new agent, then to exit code 14."""
        t = SupervisedMarbles()
        agents = [t.agent("a-"), t.agent("a-a-"), t.agent("-")]
        loop = loop_of(tmp_path, t, *agents)
        with no_leaks():
            seen = t.record(loop.run(idle_timeout=5, max_retries=3))
        ends = [(5, "AgentNudged"), (12, "AgentReplaced"), (17, "LoopError 14")]
        assert [*BEFORE, *ends] == course(seen)
        assert [[(0, 5)], [(5, 12)], [(12, 17)]] == [agent.subscriptions for agent in agents]
        begun, nudged, fresh = sessions(loop, "implementing")
        assert begun.session_id == nudged.resume_session_id
        assert "the agent was silent for 5 s (no tool was running)" in nudged.prompt
        assert fresh.resume_session_id is None
        assert fresh.prompt.startswith(begun.prompt)
        assert "Its last words:\n\n> " in fresh.prompt.removeprefix(begun.prompt)
        assert fresh.session_id not in (None, begun.session_id)
        error = error_of(seen)
        assert isinstance(error, LoopError)
        assert isinstance(error.cause, AgentStalled)
        assert "again after a nudge and a fresh agent" in error.message
        assert "idleTimeout" in (error.hint or "")
        loop.assert_released()

    def test_each_stage_has_its_own_remedies(self, tmp_path: Path) -> None:
        """Each stage has its own nudge."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("a-"), t.agent("(g|)"), t.agent("a-"), t.agent("(d|)"))
        seen = t.record(loop.run(idle_timeout=5))
        assert [5, 10] == [when for when, _ in events_of(seen, ev.AgentNudged)]
        assert [] == events_of(seen, ev.AgentReplaced)
        assert (10, "LoopApproved") == course(seen)[-1]

    def test_an_agent_that_cannot_resume_is_replaced(self, tmp_path: Path) -> None:
        """Without session resumption a silent agent is replaced at once."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("a-"), t.agent("-"), can_resume=False)
        seen = t.record(loop.run(idle_timeout=5))
        assert [*BEFORE, (5, "AgentReplaced"), (10, "LoopError 14")] == course(seen)

    def test_a_tool_that_hangs(self, tmp_path: Path) -> None:
        """A running tool has a separate timeout and is named."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("at-"), t.agent("(d|)"))
        seen = t.record(loop.run(idle_timeout=900, tool_timeout=7200))
        assert [(7201, ev.AgentNudged(idle=7200.0, tool="Bash"))] == events_of(seen, ev.AgentNudged)
        assert "(Bash was running)" in sessions(loop, "implementing")[1].prompt

    @pytest.mark.parametrize("limits", [{"idle_timeout": 2}, {"stage_timeout": 2}])
    def test_an_agent_that_lingers(self, tmp_path: Path, limits: dict[str, float]) -> None:
        """An agent that emitted its terminal marker is not nudged."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("d-"), t.agent("(g|)"))
        seen = t.record(loop.run(linger=10, **limits))
        assert [*BEFORE, (2, "AgentNudged"), *approved_at(2)] == course(seen)
        assert 1 == len(sessions(loop, "implementing"))


class TestStageTimeout:
    def test_the_ladder(self, tmp_path: Path) -> None:
        """A stage timeout leads to a nudge, a new agent and exit code 14, like silence."""
        t = SupervisedMarbles()
        busy = "aaaaaaaaaaaaaaaaaaaa"
        agents = [t.agent(busy), t.agent(busy), t.agent(busy)]
        loop = loop_of(tmp_path, t, *agents)
        seen = t.record(loop.run(stage_timeout=6, idle_timeout=5))
        steps = [(6, "AgentNudged"), (12, "AgentReplaced"), (18, "LoopError 14")]
        assert [*BEFORE, *steps] == course(seen)
        assert [ev.AgentNudged()] == [nudge for _, nudge in events_of(seen, ev.AgentNudged)]
        assert "stageTimeout" in (error_of(seen).hint or "")


class TestRepetition:
    def test_the_ladder(self, tmp_path: Path) -> None:
        """An agent that repeats a tool call is nudged, replaced, and ends with exit code 14."""
        t = SupervisedMarbles()
        agents = [t.agent("a" + "to" * 9) for _ in range(3)]
        loop = loop_of(tmp_path, t, *agents)
        with no_leaks():
            seen = t.record(loop.run(repetition_limit=3, idle_timeout=900, max_retries=3))
        steps = [(6, "AgentNudged"), (12, "AgentReplaced"), (18, "LoopError 14")]
        assert [*BEFORE, *steps] == course(seen)
        begun, nudged, fresh = sessions(loop, "implementing")
        assert begun.session_id == nudged.resume_session_id
        assert "called Bash 3 times in a row" in nudged.prompt
        assert fresh.resume_session_id is None
        assert fresh.prompt.startswith(begun.prompt)
        assert "Its last words:\n\n> " in fresh.prompt.removeprefix(begun.prompt)
        loop.assert_released()

    def test_the_projects_default(self, tmp_path: Path) -> None:
        """The settings of a project limit repetition to 20 calls."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("to" * 30), t.agent("to" * 19 + "(d|)"))
        seen = t.record(loop.run(repetition_limit=Config().repetition_limit))
        ((when, nudged),) = events_of(seen, ev.AgentNudged)
        assert (39, ev.AgentNudged(tool="Bash", repeated=20)) == (when, nudged)
        assert "LoopApproved" == course(seen)[-1][1]


class TestSilenceAndTheRest:
    def test_a_retry_after_a_nudge(self, tmp_path: Path) -> None:
        """A nudged session that fails is retried, without a second nudge for silence."""
        t = SupervisedMarbles()
        loop = loop_of(
            tmp_path, t, t.agent("a-"), t.agent("a#", failed()), t.agent("a-"), t.agent("(d|)")
        )
        seen = t.record(loop.run(idle_timeout=5, max_retries=1))
        ((failed_at, retry),) = events_of(seen, ev.AgentRetry)
        assert 6 == failed_at
        ((replaced, _),) = events_of(seen, ev.AgentReplaced)
        assert replaced == pytest.approx(6 + retry.retry_in + 5, abs=0.002)
        steps = [(5, "AgentNudged"), (6, "AgentRetry"), (replaced, "AgentReplaced")]
        assert [*BEFORE, *steps, *approved_at(replaced)] == course(seen)
        begun, nudged, retried, fresh = sessions(loop, "implementing")
        assert [begun.session_id] * 2 == [nudged.resume_session_id, retried.resume_session_id]
        assert fresh.resume_session_id is None

    def test_silence_after_a_usage_limit(self, tmp_path: Path) -> None:
        """A session resumed after a usage limit has an idle timeout, which excludes the wait."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("a#", limited(HOUR)), t.agent("a-"), t.agent("(d|)"))
        seen = t.record(loop.run(idle_timeout=5, stage_timeout=60, wait_for_quota=True))
        assert [HOUR + 60] == [when for when, _ in events_of(seen, ev.QuotaLifted)]
        assert [HOUR + 65] == [when for when, _ in events_of(seen, ev.AgentNudged)]
        assert (HOUR + 65, "LoopApproved") == course(seen)[-1]

    def test_a_reminder_is_supervised(self, tmp_path: Path) -> None:
        """A session reminded of its missing marker is supervised too."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("a|"), t.agent("a#", failed()), t.agent("a-"))
        seen = t.record(loop.run(idle_timeout=5, max_retries=1), until=30)
        expected = ["AgentNudged", "AgentRetry", "AgentNudged"]
        assert expected == [tag for _, tag in course(seen)[4:7]]

    @pytest.mark.parametrize("when", [3, 7])
    def test_disposal_between_the_steps(self, tmp_path: Path, when: float) -> None:
        """Disposal before or after a nudge leaves no timer and no agent."""
        t = SupervisedMarbles()
        agents = [t.agent("a-"), t.agent("a-")]
        loop = loop_of(tmp_path, t, *agents)
        with no_leaks():
            t.record(
                loop.run(idle_timeout=5, stage_timeout=60, max_duration=600),
                dispose_at=when,
                until=when,
            )
        assert when == [agent.subscriptions for agent in agents if agent.subscriptions][-1][0][1]
        assert 0 == t.pending
        loop.assert_released()
