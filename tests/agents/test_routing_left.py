"""`RoutedAgent`: what is left when nobody is, and who may work at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.agents import (
    GuardedAgent,
    RoutedAgent,
    is_guarded,
)
from cuggino.agents.protocol import RoutingAgent
from cuggino.errors import AgentNotFound, GuardNotLive, QuotaExceeded
from cuggino.events import AgentFellBack, RateLimited
from cuggino.security.roles import role_policy
from cuggino.testing import InMemoryAgent
from tests.agents.routed import FULL, Drawn, Held, candidate, chain, fell, memory, options, values
from tests.loops.policed import HOUR, failed, limited, second


class TestNobodyLeft:
    def test_the_limit_that_is_lifted_first(self) -> None:
        """When all have met a limit, the error has the earliest time and everybody's words."""
        t = Drawn()
        routed = RoutedAgent(
            chain(memory(t.agent("#", limited(HOUR))), memory(t.agent("#", limited(2 * HOUR))))
        )
        told, error = values(t, routed.spawn(options()))
        assert fell() == told
        assert isinstance(error, QuotaExceeded)
        assert second(HOUR) == error.resets_at
        assert "no agent is left (A: limit met; B: limit met)" == error.message

    def test_a_limit_counts_before_another_failure(self) -> None:
        """What can be waited for is told when the others cannot be waited for."""
        t = Drawn()
        routed = RoutedAgent(
            chain(memory(t.agent("#", limited(HOUR))), memory(t.agent("#", failed("auth"))))
        )
        error = values(t, routed.spawn(options()))[-1]
        assert isinstance(error, QuotaExceeded)
        assert second(HOUR) == error.resets_at
        assert "B: it was auth" in error.message

    def test_without_a_limit_the_last_word(self) -> None:
        """Otherwise it is the error of the last one."""
        t = Drawn()
        last = failed("billing")
        routed = RoutedAgent(
            chain(memory(t.agent("#", AgentNotFound("gone"))), memory(t.agent("#", last)))
        )
        assert [fell("not_found", "gone", 900), last] == values(t, routed.spawn(options()))

    def test_what_may_pass_is_retried_with_the_last(self) -> None:
        """While the first is out of work, what may pass is the second one's own error."""
        t = Drawn()
        error = failed("overloaded")
        routed = RoutedAgent(
            chain(memory(t.agent("#", limited(HOUR))), memory(t.agent("#", error)))
        )
        assert [fell(), error] == values(t, routed.spawn(options()))

    def test_a_limit_is_told_as_it_binds(self) -> None:
        """The last one's rejection has the time at which any of them can go on."""
        t = Drawn(late=RateLimited(status="rejected", resets_at=second(3 * HOUR)))
        t.events["L"] = t.events.pop("late")
        routed = RoutedAgent(
            chain(memory(t.agent("l#", limited(HOUR))), memory(t.agent("L#", limited(3 * HOUR))))
        )
        first, _, last, error = values(t, routed.spawn(options()))
        assert (second(HOUR), second(HOUR)) == (first.resets_at, last.resets_at)
        assert second(HOUR) == error.resets_at

    def test_a_rejection_is_told_as_it_is_while_one_is_free(self) -> None:
        """The first one's rejection keeps its own time."""
        t = Drawn()
        routed = RoutedAgent(chain(memory(t.agent("l#", limited(HOUR))), memory(t.cold("s|"))))
        assert second(HOUR) == values(t, routed.spawn(options()))[0].resets_at

    @pytest.mark.parametrize("error", [limited(HOUR), failed("auth"), failed("bad_request")])
    def test_what_retries_have_not_failed_at(self, error: Exception) -> None:
        """Nobody gives way afterwards for what had its answer within the session."""
        routed = RoutedAgent(chain(memory(), memory()))
        values(Drawn(), routed.spawn(options()))
        assert [error] == values(Drawn(), routed.give_way("coding", error))
        (told,) = values(Drawn(), routed.give_way("coding", failed("crash")))
        assert fell("crash", "it was crash", 900) == told
        assert [error] == values(Drawn(), routed.give_way("plan", error))

    def test_then_the_soonest_is_asked(self) -> None:
        """A session that begins while all are out of work asks the one that is back first."""
        t = Drawn()
        one = memory(t.agent("#", limited(2 * HOUR)))
        other = memory(t.agent("#", limited(HOUR)), t.cold("s|"))
        routed = RoutedAgent(chain(one, other))
        values(t, routed.spawn(options()))
        assert [FULL] == values(t, routed.spawn(options()))


class TestGuard:
    def test_who_cannot_be_held_does_not_work(self) -> None:
        """A fall-back that cannot hold the policy fails instead of working without it."""
        policy = role_policy("deliver", project=Path("/p"), level="roles")
        t = Drawn()
        held, loose = Held({"coding": [t.agent("#", limited(HOUR))]}), memory()
        routed = RoutedAgent(chain(held, loose))
        told, error = values(t, routed.spawn(options(guard=policy)))
        assert isinstance(told, AgentFellBack)
        assert isinstance(error, GuardNotLive)
        assert [] == loose.spawned
        assert policy is held.spawned[0].guard

    def test_all_of_a_role(self) -> None:
        """A role is guarded when all that may work as it are; it is no guarded agent by itself."""
        held, loose = candidate(Held({})), candidate(memory())
        routed = RoutedAgent([held], {"plan": [held, loose], "build": [held, held]})
        assert [True, False, True] == [
            is_guarded(routed, role) for role in ("coding", "plan", "build")
        ]
        assert (True, False) == (is_guarded(held.agent, "plan"), is_guarded(loose.agent, "plan"))
        assert isinstance(routed, RoutingAgent)
        assert not isinstance(routed, GuardedAgent)


class Missing(InMemoryAgent):
    """One whose program is not there."""

    def check(self) -> str:
        """Never."""
        raise AgentNotFound(f"{self.name} is not there")


class TestChecks:
    def test_one_is_enough(self) -> None:
        """A role needs one agent that is there; the error is that of its first."""
        missing, there = candidate(Missing({}, name="one")), candidate(memory())
        routed = RoutedAgent([missing, there], {"audit": [missing], "judge": [there, missing]})
        assert "in memory" == routed.check()
        routed.check_roles(["coding", "judge"])
        with pytest.raises(AgentNotFound, match="one is not there"):
            routed.check_roles(["coding", "audit"])

    def test_each_candidate_once(self) -> None:
        """The candidates of roles are given in order and without repetition."""
        a, b, c = (candidate(memory()) for _ in range(3))
        routed = RoutedAgent([a, b], {"audit": [c, b]})
        assert (a, b, c) == routed.candidates()
        assert (c, b) == routed.candidates(["audit"])
        assert (a.agent, b.agent) == routed.agents_for("plan")
