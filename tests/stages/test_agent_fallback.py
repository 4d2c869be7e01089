"""An agent stage whose agent gives way to another, under the policies, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from cuggino import events as ev
from cuggino.domain.spending import Budget
from cuggino.errors import LoopError, QuotaExceeded
from cuggino.operators.supervision import is_outage
from tests.loops.supervised_loop import HOUR, events_of, failed, limited, second
from tests.stages.fallback_stage import Stage, course


def test_both_are_counted_once() -> None:
    """The cost of the stage is that of both agents."""
    t = Stage()
    seen = t.run([t.drawn("-uax#", limited(HOUR))], [t.drawn("-uds|")])
    assert ["AgentFellBack", "StageCost", "Done", "completed"] == course(seen)
    ((_, cost),) = events_of(seen, ev.StageCost)
    assert (0.75, 0.75) == (cost.cost_usd, cost.total_cost)
    assert cost.usage == ev.Usage(input_tokens=1000)


def test_a_session_without_its_end_is_counted() -> None:
    """The usage of the first agent is counted although it failed without a result."""
    t = Stage()
    seen = t.run([t.drawn("-u#", limited(HOUR))], [t.drawn("-uds|")])
    ((_, cost),) = events_of(seen, ev.StageCost)
    assert cost.usage == ev.Usage(input_tokens=1000)


class TestRetries:
    def test_first_the_retries(self) -> None:
        """A transient failure is retried; when the retries are used up another agent starts."""
        t = Stage()
        down = [t.drawn("-#", failed("overloaded")) for _ in range(3)]
        seen = t.run(down, [t.drawn("-ds|")], max_retries=2)
        expected = ["AgentRetry", "AgentRetry", "AgentFellBack", "StageCost", "Done", "completed"]
        assert expected == course(seen)
        ((when, fell),) = events_of(seen, ev.AgentFellBack)
        assert ("overloaded", "A", "B") == (fell.reason, fell.from_agent, fell.to_agent)
        assert fell.until is not None
        assert 900 == pytest.approx((fell.until - second(when)).total_seconds(), abs=0.01)
        assert 1 == len(t.b.spawned)

    def test_without_retries_at_once(self) -> None:
        """With no retry allowed another takes over at the first failure."""
        t = Stage()
        seen = t.run([t.drawn("-#", failed("crash"))], [t.drawn("-ds|")], max_retries=0)
        assert ["AgentFellBack", "StageCost", "Done", "completed"] == course(seen)

    def test_the_other_has_its_own_retries(self) -> None:
        """The second one is retried as often; then the stage fails with its error."""
        t = Stage()
        seen = t.run(
            [t.drawn("#", failed("server")) for _ in range(2)],
            [t.drawn("#", failed("connection")) for _ in range(2)],
            max_retries=1,
        )
        assert ["AgentRetry", "AgentFellBack", "AgentRetry", "LoopError"] == course(seen)
        assert [1, 1] == [retry.attempt for _, retry in events_of(seen, ev.AgentRetry)]
        assert isinstance(seen[-1][2], LoopError)
        assert "it was connection" in seen[-1][2].message

    def test_a_limit_is_what_is_left(self) -> None:
        """When the second is down for good, and the first has a limit, that is waited for."""
        t = Stage()
        seen = t.run(
            [t.drawn("#", limited(HOUR)), t.drawn("-ds|")],
            [t.drawn("#", failed("server")) for _ in range(2)],
            max_retries=1,
            wait_for_quota=True,
        )
        steps = [tag for tag in course(seen) if tag != "QuotaWaiting"]
        assert [
            *("AgentFellBack", "AgentRetry", "QuotaLifted", "StageCost", "Done", "completed")
        ] == steps
        assert {second(HOUR)} == {wait.resets_at for _, wait in events_of(seen, ev.QuotaWaiting)}
        assert (2, 2) == (len(t.a.spawned), len(t.b.spawned))

    def test_what_this_loop_does_not_retry(self) -> None:
        """A failure that is not retried lets another agent take over at once."""
        t = Stage()
        crash, good = t.drawn("#", failed("crash")), t.drawn("-ds|")
        seen = t.run([crash], [good], max_retries=3, transient=is_outage)
        assert ["AgentFellBack", "StageCost", "Done", "completed"] == course(seen)

    def test_it_is_its_own_error_when_nobody_is_left(self) -> None:
        """The last agent's crash is the error, not the first one's limit; a session may follow."""
        t = Stage()
        first, crash = t.drawn("#", limited(HOUR)), t.drawn("#", failed("crash"))
        seen = t.run([first], [crash], wait_for_quota=True, transient=is_outage)
        assert ["AgentFellBack", "LoopError"] == course(seen)
        assert "it was crash" in seen[-1][2].message

    @pytest.mark.parametrize("reason", ["prompt_too_long", "bad_request", "aborted", "max_turns"])
    def test_what_another_would_meet_too(self, reason: Any) -> None:
        """It is the stage's error at once."""
        t = Stage()
        seen = t.run([t.drawn("#", failed(reason))], [], max_retries=3)
        assert ["LoopError"] == course(seen)
        assert [] == t.b.spawned


class TestTheLastWord:
    @pytest.mark.parametrize("ending", ["-dx#", "-d#", "-dlx#"])
    def test_nobody_begins_behind_it(self, ending: str) -> None:
        """A usage limit after the terminal marker starts no other agent."""
        t = Stage()
        seen = t.run([t.drawn(ending, limited(HOUR))], [t.drawn("-ds|")], max_retries=3)
        assert "AgentFellBack" not in course(seen)
        assert ["Done", "completed"] == course(seen)[-2:]
        assert [] == t.b.spawned

    def test_nor_when_it_fails_in_passing(self) -> None:
        """So it is with what would be retried."""
        t = Stage()
        seen = t.run([t.drawn("-d#", failed("crash"))], [t.drawn("-ds|")])
        assert ["Done", "completed"] == course(seen)[-2:]
        assert [] == t.b.spawned


class TestLiveness:
    def test_a_nudge_goes_to_who_works(self) -> None:
        """A silent fallback agent resumes its own session."""
        t = Stage(can_resume=True)
        seen = t.run(
            [t.drawn("x#", limited(HOUR))],
            [t.drawn("-a--------------------"), t.drawn("-ds|")],
            idle_timeout=5,
        )
        assert 1 == len(events_of(seen, ev.AgentNudged))
        begun, resumed = t.b.spawned
        assert begun.session_id == resumed.resume_session_id
        assert 1 == len(t.a.spawned)

    def test_a_fresh_agent_is_the_one_that_works(self) -> None:
        """A stalled agent is replaced by a new session of it, not of one on cooldown."""
        t = Stage()
        seen = t.run(
            [t.drawn("x#", limited(HOUR))],
            [t.drawn("-a--------------------"), t.drawn("-ds|")],
            idle_timeout=5,
        )
        assert 1 == len(events_of(seen, ev.AgentReplaced))
        assert (1, 2) == (len(t.a.spawned), len(t.b.spawned))

    def test_its_tools_are_over(self) -> None:
        """A tool that ran when the first one failed does not run in the second's session."""
        t = Stage()
        seen = t.run(
            [t.drawn("t#", limited(HOUR))],
            [t.drawn("-" * 30), t.drawn("-ds|")],
            idle_timeout=5,
            tool_timeout=100,
        )
        ((when, _),) = events_of(seen, ev.AgentReplaced)
        assert 1 + 5 == when


def test_a_budget_that_is_used_up_ends_it() -> None:
    """When the first agent has used up the budget, none takes over."""
    t = Stage()
    seen = t.run([t.drawn("ax#", limited(HOUR))], [t.drawn("-ds|")], budget=Budget(cost_usd=0.25))
    error = seen[-1][2]
    assert isinstance(error, LoopError)
    assert isinstance(error.cause, QuotaExceeded)
    assert [] == t.b.spawned
