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


@pytest.fixture
def t() -> SupervisedMarbles:
    return SupervisedMarbles()


class TestRetries:
    def test_a_transient_failure_is_retried(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """A transient failure is reported, and the same session is resumed after a pause."""
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

    @pytest.mark.parametrize(
        ("sessions_", "can_resume", "is_resumed"),
        [
            (["a#"], False, [False]),
            (["#"], True, [False]),  # it ended before its first event
            (["a#", "lost"], True, [True, False]),
        ],
        ids=["cannot resume", "without events", "lost"],
    )
    def test_a_session_that_cannot_be_resumed(
        self,
        sessions_: list[str],
        can_resume: bool,
        is_resumed: list[bool],
        tmp_path: Path,
        t: SupervisedMarbles,
    ) -> None:
        """A new session gets the same prompts, at once if the agent has lost the first one."""
        lost = throw(AgentFailed("No conversation found", reason="bad_request"))
        turns = [lost if said == "lost" else t.agent(said, failed()) for said in sessions_]
        loop = loop_of(tmp_path, t, *turns, t.agent("d|"), can_resume=can_resume)
        seen = t.record(loop.run(max_retries=1))
        assert [*PLANNED, "AgentRetry", *APPROVED] == [tag for _, tag in course(seen)]
        begun, *later = sessions(loop, "implementing")
        assert is_resumed == [one.resume_session_id == begun.session_id for one in later]
        fresh = later[-1]
        assert (begun.prompt, begun.system_prompt) == (fresh.prompt, fresh.system_prompt)
        assert fresh.resume_session_id is None
        assert fresh.session_id not in (None, begun.session_id)

    def test_the_last_retry(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """After the last retry the loop fails, and the stage's cost is reported before."""
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

    def test_permanent_failures_are_not_retried(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """A permanent failure, such as a refused key, ends the loop at once."""
        loop = loop_of(tmp_path, t, t.agent("a#", failed("auth")), t.agent("d|"))
        seen = t.record(loop.run(max_retries=3, wait_for_quota=True))
        assert (1, "LoopError 1") == course(seen)[-1]
        assert 1 == len(sessions(loop, "implementing"))


class TestTogether:
    def test_crashes_and_limits_in_turn(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """Waits for usage limits restore no retries: crash, crash, limit in turn ends."""
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


class TestCosts:
    def test_costs_of_a_stage_and_of_the_run(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """A stage reports its cost and the running total right before its marker."""
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

    def test_failed_attempts_count(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """A stage's cost includes its failed sessions."""
        loop = loop_of(tmp_path, t, t.agent("ax#", failed()), t.agent("u-"), t.agent("(ds|)"))
        seen = t.record(loop.run(max_retries=1, idle_timeout=5))
        ((_, cost),) = events_of(seen, ev.StageCost)
        assert (0.75, 0.75) == (cost.cost_usd, cost.total_cost)
        assert cost.usage is not None
        assert (500, 100) == (cost.usage.input_tokens, cost.usage.output_tokens)


class TestTokens:
    def test_the_running_agent_is_cut(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """The message that exceeds the budget ends the agent, and the loop with exit code 13."""
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
    def test_each_session_may_spend_what_is_left(
        self, tmp_path: Path, t: SupervisedMarbles
    ) -> None:
        """An agent with its own budget option gets the rest of the run's budget."""
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


class TestTime:
    def test_the_running_agent_is_cut(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """The time budget ends the agent on the second, after a warning at 80 %."""
        agent = t.agent("a-a-a-a-a-a-a-a-")
        loop = loop_of(tmp_path, t, agent)
        seen = t.record(loop.run(max_duration=10, idle_timeout=900))
        assert [*BEFORE, (8, "BudgetWarning"), (10, "LoopError 13")] == course(seen)
        assert [(0, 10)] == agent.subscriptions
        assert "10 s of 10 s" in error_of(seen).message
        loop.assert_released()

    def test_a_command_is_cut_too(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """The time budget ends the check command."""
        check = t.agent("-")
        loop = loop_of(tmp_path, t, t.agent("(d|)"), commands={"check": [check]})
        seen = t.record(loop.run(max_duration=10, check_command="check"))
        assert (10, "BudgetExceeded 13") == course(seen)[-1]
        assert [(0, 10)] == check.subscriptions
        loop.assert_released()


class TestUsageLimits:
    @pytest.mark.parametrize("role", ["planning", "implementing", "reviewing"])
    def test_every_agent_waits(self, tmp_path: Path, role: Role, t: SupervisedMarbles) -> None:
        """The agent of any role is resumed when its usage limit is lifted."""
        ends = {"planning": "(c|)", "implementing": "(d|)", "reviewing": "(y|)"}
        agents: dict[str, Any] = {name: [t.agent(end)] for name, end in ends.items()}
        agents[role].insert(0, t.agent("a#", limited(HOUR)))
        loop = CodingLoop(tmp_path, can_resume=True, **agents)
        seen = t.record(loop.run(wait_for_quota=True))
        assert (HOUR + 60, "LoopApproved") == course(seen)[-1]
        begun, resumed = sessions(loop, role)
        assert begun.session_id == resumed.resume_session_id
        assert 4 == len(loop.agent.spawned)

    def test_without_waiting_it_can_be_resumed(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """Without `wait_for_quota` the loop ends with exit code 12 and can be resumed."""
        loop = loop_of(tmp_path, t, t.agent("ax#", limited(5 * HOUR)))
        seen = t.record(loop.run(max_retries=3, journal=True))
        assert [*PLANNED, "StageCost", "LoopError 12"] == [tag for _, tag in course(seen)]
        error = error_of(seen)
        assert isinstance(error, LoopError)
        assert isinstance(error.cause, QuotaExceeded)
        assert "start again after 1970-01-01 05:00 UTC" == error.hint
        (path,) = loop.workspace.journal.iterdir()
        journal = read_journal(path)
        assert journal.ended == ev.RunEnded(state="quota", message=error.message, exit_code=12)
        assert journal.resumable

    def test_the_reminder_has_no_waits_of_its_own(
        self, tmp_path: Path, t: SupervisedMarbles
    ) -> None:
        """The waits before and after the reminder of a missing marker count together."""
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


def approved_at(when: float) -> list[tuple[float, str]]:
    return [(when, tag) for tag in ("Done", "ReviewingStart", "Approved", "LoopApproved")]


class TestSilence:
    @pytest.mark.parametrize(
        ("said", "limits", "times", "why", "hint"),
        [
            (["a-", "a-a-", "-"], {"idle_timeout": 5}, (5, 12, 17), "(no tool was", "idleTimeout"),
            (["at-"] * 3, {"tool_timeout": 5, "idle_timeout": 2}, (6, 12, 18), "(Bash was", ""),
            (["a" * 20] * 3, {"stage_timeout": 6, "idle_timeout": 5}, (6, 12, 18), "", "stageTime"),
            (["a" + "to" * 9] * 3, {"repetition_limit": 3}, (6, 12, 18), "called Bash 3 times", ""),
        ],
        ids=["silent", "hanging tool", "stage", "repeating"],
    )
    def test_the_ladder(
        self,
        said: list[str],
        limits: dict[str, float],
        times: tuple[float, ...],
        why: str,
        hint: str,
        tmp_path: Path,
        t: SupervisedMarbles,
    ) -> None:
        """An agent that gets nowhere is nudged, then replaced; then comes exit code 14."""
        agents = [t.agent(diagram) for diagram in said]
        loop = loop_of(tmp_path, t, *agents)
        with no_leaks():
            seen = t.record(loop.run(max_retries=3, **limits))
        steps = zip(times, ("AgentNudged", "AgentReplaced", "LoopError 14"), strict=True)
        assert [*BEFORE, *steps] == course(seen)
        begins = (0, *times)
        assert [[span] for span in zip(begins, times, strict=False)] == [
            agent.subscriptions for agent in agents
        ]
        begun, nudged, fresh = sessions(loop, "implementing")
        assert begun.session_id == nudged.resume_session_id
        assert why in nudged.prompt
        assert fresh.resume_session_id is None
        assert fresh.prompt.startswith(begun.prompt)
        assert "Its last words:\n\n> " in fresh.prompt.removeprefix(begun.prompt)
        assert fresh.session_id not in (None, begun.session_id)
        error = error_of(seen)
        assert isinstance(error, LoopError)
        assert isinstance(error.cause, AgentStalled)
        assert "again after a nudge and a fresh agent" in error.message
        assert hint in (error.hint or "")
        loop.assert_released()

    @pytest.mark.parametrize("limits", [{"idle_timeout": 2}, {"stage_timeout": 2}])
    def test_an_agent_that_lingers(
        self, tmp_path: Path, limits: dict[str, float], t: SupervisedMarbles
    ) -> None:
        """An agent that emitted its terminal marker is not nudged."""
        loop = loop_of(tmp_path, t, t.agent("d-"), t.agent("(g|)"))
        seen = t.record(loop.run(linger=10, **limits))
        assert [*BEFORE, (2, "AgentNudged"), *approved_at(2)] == course(seen)
        assert 1 == len(sessions(loop, "implementing"))


class TestSilenceAndTheRest:
    def test_a_retry_after_a_nudge(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """A nudged session that fails is retried, without a second nudge for silence."""
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

    def test_a_reminder_is_supervised(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """A session reminded of its missing marker is supervised too."""
        loop = loop_of(tmp_path, t, t.agent("a|"), t.agent("a#", failed()), t.agent("a-"))
        seen = t.record(loop.run(idle_timeout=5, max_retries=1), until=30)
        expected = ["AgentNudged", "AgentRetry", "AgentNudged"]
        assert expected == [tag for _, tag in course(seen)[4:7]]

    @pytest.mark.parametrize("when", [3, 7])
    @pytest.mark.parametrize(
        "error", [None, failed(), limited(HOUR)], ids=["silent", "retry", "quota"]
    )
    def test_disposal_between_the_steps(
        self, error: Exception | None, when: float, tmp_path: Path, t: SupervisedMarbles
    ) -> None:
        """Disposal before or after a nudge, or in a pause, leaves no timer and no agent."""
        agents = [t.agent("a#", error) if error else t.agent("a-"), t.agent("a-")]
        loop = loop_of(tmp_path, t, *agents)
        options = {"idle_timeout": 5, "stage_timeout": 60, "max_duration": 600, "max_retries": 1}
        with no_leaks():
            t.record(loop.run(**options, wait_for_quota=True), dispose_at=when, until=when)
        assert all(end and end <= when for agent in agents for _, end in agent.subscriptions)
        assert 0 == t.pending
        loop.assert_released()
