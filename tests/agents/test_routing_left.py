"""`RoutedAgent` with all agents on cooldown, guarded roles, and checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.agents import RoutedAgent, is_guarded
from cuggino.errors import AgentNotFound, GuardNotLive, QuotaExceeded
from cuggino.events import AgentFellBack, RateLimited
from cuggino.guard.roles import role_policy
from cuggino.testing import InMemoryAgent
from tests.agents.routed import FULL, Drawn, Held, candidate, chain, fell, memory, options, values
from tests.loops.supervised_loop import HOUR, failed, limited, second


class TestAllOnCooldown:
    def test_the_earliest_reset_time(self) -> None:
        """If all agents met a limit, the error has the earliest reset time and all messages."""
        t = Drawn()
        routed = RoutedAgent(
            chain(memory(t.agent("#", limited(HOUR))), memory(t.agent("#", limited(2 * HOUR))))
        )
        told, error = values(t, routed.spawn(options()))
        assert fell() == told
        assert isinstance(error, QuotaExceeded)
        assert second(HOUR) == error.resets_at
        assert "no agent is available (A: limit met; B: limit met)" == error.message

    def test_a_limit_counts_before_another_failure(self) -> None:
        """A limit has priority over failures that waiting does not solve."""
        t = Drawn()
        routed = RoutedAgent(
            chain(memory(t.agent("#", limited(HOUR))), memory(t.agent("#", failed("auth"))))
        )
        error = values(t, routed.spawn(options()))[-1]
        assert isinstance(error, QuotaExceeded)
        assert second(HOUR) == error.resets_at
        assert "B: it was auth" in error.message

    def test_without_a_limit_the_last_error(self) -> None:
        """Otherwise the error is the last agent's."""
        t = Drawn()
        last = failed("billing")
        routed = RoutedAgent(
            chain(memory(t.agent("#", AgentNotFound("gone"))), memory(t.agent("#", last)))
        )
        assert [fell("not_found", "gone", 900), last] == values(t, routed.spawn(options()))

    def test_a_transient_failure_of_the_last_agent(self) -> None:
        """With the first agent on cooldown, a transient failure of the second is its own error."""
        t = Drawn()
        error = failed("overloaded")
        routed = RoutedAgent(
            chain(memory(t.agent("#", limited(HOUR))), memory(t.agent("#", error)))
        )
        assert [fell(), error] == values(t, routed.spawn(options()))

    def test_the_reset_time_of_the_last_rejection(self) -> None:
        """The last rejection has the earliest reset time of all agents."""
        t = Drawn(late=RateLimited(status="rejected", resets_at=second(3 * HOUR)))
        t.events["L"] = t.events.pop("late")
        routed = RoutedAgent(
            chain(memory(t.agent("l#", limited(HOUR))), memory(t.agent("L#", limited(3 * HOUR))))
        )
        first, _, last, error = values(t, routed.spawn(options()))
        assert (second(HOUR), second(HOUR)) == (first.resets_at, last.resets_at)
        assert second(HOUR) == error.resets_at

    def test_a_rejection_while_another_agent_is_available(self) -> None:
        """The first rejection keeps its own time while another agent is available."""
        t = Drawn()
        routed = RoutedAgent(chain(memory(t.agent("l#", limited(HOUR))), memory(t.cold("s|"))))
        assert second(HOUR) == values(t, routed.spawn(options()))[0].resets_at

    @pytest.mark.parametrize("error", [limited(HOUR), failed("auth"), failed("bad_request")])
    def test_errors_handled_within_the_session(self, error: Exception) -> None:
        """Failed retries cause no fallback for errors already handled within the session."""
        routed = RoutedAgent(chain(memory(), memory()))
        values(Drawn(), routed.spawn(options()))
        assert [error] == values(Drawn(), routed.fall_back("coding", error))
        (told,) = values(Drawn(), routed.fall_back("coding", failed("crash")))
        assert fell("crash", "it was crash", 900) == told
        assert [error] == values(Drawn(), routed.fall_back("plan", error))

    def test_the_agent_available_first(self) -> None:
        """A session started while all are on cooldown goes to the agent available first."""
        t = Drawn()
        one = memory(t.agent("#", limited(2 * HOUR)))
        other = memory(t.agent("#", limited(HOUR)), t.cold("s|"))
        routed = RoutedAgent(chain(one, other))
        values(t, routed.spawn(options()))
        assert [FULL] == values(t, routed.spawn(options()))


class TestGuard:
    def test_a_fallback_without_guard_support(self) -> None:
        """A fallback without guard support fails instead of working unguarded."""
        policy = role_policy("deliver", project=Path("/p"), level="roles")
        t = Drawn()
        held, loose = Held({"coding": [t.agent("#", limited(HOUR))]}), memory()
        routed = RoutedAgent(chain(held, loose))
        told, error = values(t, routed.spawn(options(guard=policy)))
        assert isinstance(told, AgentFellBack)
        assert isinstance(error, GuardNotLive)
        assert [] == loose.spawned
        assert policy is held.spawned[0].guard

    def test_a_guarded_role(self) -> None:
        """A role is guarded if all its agents are; `RoutedAgent` itself is not a guarded agent."""
        held, loose = candidate(Held({})), candidate(memory())
        routed = RoutedAgent([held], {"plan": [held, loose], "build": [held, held]})
        assert [True, False, True] == [
            is_guarded(routed, role) for role in ("coding", "plan", "build")
        ]
        assert (True, False) == (is_guarded(held.agent, "plan"), is_guarded(loose.agent, "plan"))
        assert routed.is_router
        assert routed.capabilities.guard == "none"


class Missing(InMemoryAgent):
    """An agent whose program is missing."""

    def check(self) -> str:
        """Raise an error."""
        raise AgentNotFound(f"{self.name} is not there")


class TestChecks:
    def test_one_available_agent_is_enough(self) -> None:
        """A role needs one available agent; the error is that of its first."""
        missing, there = candidate(Missing({}, name="one")), candidate(memory())
        routed = RoutedAgent([missing, there], {"audit": [missing], "judge": [there, missing]})
        assert "in memory" == routed.check()
        routed.check_roles(["coding", "judge"], guarded=False)
        with pytest.raises(AgentNotFound, match="one is not there"):
            routed.check_roles(["coding", "audit"], guarded=False)

    def test_each_candidate_once(self) -> None:
        """The candidates of roles are listed in order without repetition."""
        a, b, c = (candidate(memory()) for _ in range(3))
        routed = RoutedAgent([a, b], {"audit": [c, b]})
        assert (a, b, c) == routed.candidates()
        assert (c, b) == routed.candidates(["audit"])
        assert (a.agent, b.agent) == routed.agents_for("plan")
