"""`RoutedAgent` in virtual time: agents per role, and fallbacks."""

from __future__ import annotations

import pytest

from cuggino.agents import (
    RoutedAgent,
)
from cuggino.agents.base import Role
from cuggino.errors import AgentFailed, AgentNotFound, GuardNotLive
from cuggino.events import AgentFellBack, AgentMessage, SessionEnded, Usage
from cuggino.testing import AgentRun, InMemoryAgent
from tests.agents.routed import FULL, Drawn, candidate, chain, fell, memory, options, values
from tests.loops.supervised_loop import HOUR, failed, limited, second


class TestRoles:
    def test_each_role_has_its_agent(self) -> None:
        """A session goes to its role's agent, or else to the default one."""
        one, other = memory(), memory()
        routed = RoutedAgent([candidate(one)], {"reviewing": [candidate(other)]})
        t = Drawn()
        for role in ("reviewing", "planning", None):
            values(t, routed.spawn(options(role=role)))
        assert ["planning", None] == [spawned.role for spawned in one.spawned]
        assert ["reviewing"] == [spawned.role for spawned in other.spawned]

    def test_the_models_of_agents(self) -> None:
        """The model in the options is for the default agent, unless it has its own."""
        agents = [memory() for _ in range(3)]
        routed = RoutedAgent(
            [candidate(agents[0])],
            {
                "planning": [candidate(agents[1], model="own")],
                "reviewing": [candidate(agents[2], is_default=False)],
            },
        )
        roles: tuple[Role, ...] = ("coding", "planning", "reviewing")
        for role in roles:
            Drawn().record(routed.spawn(options(role=role, model="given")))
        models = [agent.spawned[0].model for agent in agents]
        assert ["given", "own", None] == models
        assert models == [routed.named_for(role, "given")[1] for role in roles]
        assert ("memory", "given") == agents[0].named_for("coding", "given")

    def test_common_capabilities(self) -> None:
        """Sessions can be resumed if any agent supports it; other features need all agents."""
        both = RoutedAgent([candidate(memory())], {"judge": [candidate(memory(can_resume=True))]})
        assert (True, True) == (both.capabilities.resume, both.capabilities.resume)
        assert "none" == both.capabilities.guard
        assert not RoutedAgent([candidate(memory())]).capabilities.resume
        assert "memory" == both.name

    def test_a_role_without_agents(self) -> None:
        """Each role needs an agent."""
        with pytest.raises(ValueError, match="each role needs a candidate"):
            RoutedAgent([])
        with pytest.raises(ValueError, match="each role needs a candidate"):
            RoutedAgent([candidate(memory())], {"audit": []})


class TestFallback:
    def test_the_fallback_starts_over(self) -> None:
        """Earlier output stays, the switch is emitted, and the fallback starts over."""
        t = Drawn(F=fell())
        one = memory(t.agent("-alx#", limited(HOUR)))
        other = memory(t.agent("--bs|"))
        routed = RoutedAgent(chain(one, other))
        t.check(routed.spawn(options()), "-alxF-bs|")
        assert ["Do it."] == [spawned.prompt for spawned in other.spawned]

    @pytest.mark.parametrize(
        "error",
        [AgentNotFound("gone"), failed("auth"), failed("billing")],
        ids=["not_found", "auth", "billing"],
    )
    def test_permanent_failures(self, error: AgentFailed | AgentNotFound) -> None:
        """A missing agent, or one without an account, is on cooldown for 15 minutes."""
        reason = error.reason if isinstance(error, AgentFailed) else "not_found"
        t = Drawn(F=fell(reason, error.message, 900))
        routed = RoutedAgent(chain(memory(t.agent("#", error)), memory(t.agent("-s|"))))
        t.check(routed.spawn(options()), "Fs|")

    @pytest.mark.parametrize(
        "error",
        [
            *(failed("overloaded"), failed("crash"), failed("connection")),
            *(failed("prompt_too_long"), failed("bad_request"), failed("aborted")),
            *(GuardNotLive("no"), RuntimeError("bug")),
        ],
        ids=repr,
    )
    def test_failures_without_fallback(self, error: Exception) -> None:
        """Transient failures, and those any agent would have, are the session's own error."""
        t = Drawn()
        other = memory()
        routed = RoutedAgent(chain(memory(t.agent("-a#", error)), other))
        t.check(routed.spawn(options()), "-a#")
        assert [] == other.spawned

    def test_an_error_after_success(self) -> None:
        """An error after a successful end does not cause a fallback."""
        t = Drawn()
        other = memory()
        routed = RoutedAgent(chain(memory(t.agent("-s#", limited(HOUR))), other))
        t.check(routed.spawn(options()), "-s#")
        assert [] == other.spawned

    def test_the_failed_session_ends_first(self) -> None:
        """The failed session ends before the switch is emitted, and one session runs at a time."""
        t = Drawn(F=fell())
        t.error = limited(HOUR)
        first, then = t.cold("-#"), t.cold("--s|")
        seen = t.record(RoutedAgent(chain(memory(first), memory(then))).spawn(options()))
        assert [(0, 1)] == first.subscriptions
        assert [(1, 4)] == then.subscriptions
        assert "completed" == seen[-1][1]

    def test_disposal_during_the_fallback(self) -> None:
        """Disposal during the fallback's session terminates it."""
        t = Drawn()
        then = t.cold("-b---")
        routed = RoutedAgent(chain(memory(t.agent("-#", limited(HOUR))), memory(then)))
        t.record(routed.spawn(options()), dispose_at=3)
        assert [(1, 3)] == then.subscriptions

    def test_several_fallbacks(self) -> None:
        """After the second agent the third takes over; each switch is emitted."""
        t = Drawn(F=fell(), G=fell("auth", "it was auth", 1 + 900, by="BC"))
        routed = RoutedAgent(
            chain(
                memory(t.agent("#", limited(HOUR))),
                memory(t.agent("-#", failed("auth"))),
                memory(t.agent("-s|")),
            )
        )
        t.check(routed.spawn(options()), "FGs|")

    def test_the_remaining_budget(self) -> None:
        """The fallback gets the remaining budget; without any it does not start."""
        t = Drawn()
        other = memory(t.agent("-s|"))
        routed = RoutedAgent(chain(memory(t.agent("x#", limited(HOUR))), other))
        values(t, routed.spawn(options(max_budget_usd=1.0)))
        assert 0.75 == other.spawned[0].max_budget_usd
        t, broke = Drawn(), memory()
        routed = RoutedAgent(chain(memory(t.agent("x#", limited(HOUR))), broke))
        t.check(routed.spawn(options(max_budget_usd=0.25)), "x#")
        assert [] == broke.spawned


class TestCooldown:
    def test_a_cooldown_until_the_reset(self) -> None:
        """Further sessions go to the fallback silently, and to the first agent after the reset."""
        t = Drawn()
        one = memory(t.agent("#", limited(HOUR)), t.agent("s|"))
        other = memory(*(t.cold("s|") for _ in range(3)))
        routed = RoutedAgent(chain(one, other))
        told = [
            values(t, routed.spawn(options()), seconds) for seconds in (100, HOUR - 101, 1, 100)
        ]
        assert [[fell(), FULL], [FULL], [FULL], [FULL]] == told
        assert (2, 3) == (len(one.spawned), len(other.spawned))

    def test_a_limit_holds_in_all_roles(self) -> None:
        """A candidate with two roles has a single account."""
        t = Drawn()
        one = InMemoryAgent({"plan": [t.agent("#", limited(HOUR))]})
        other = InMemoryAgent({"plan": [t.cold("s|")], "build": [t.cold("s|")]})
        shared, rest = chain(one, other)
        routed = RoutedAgent([shared], {"plan": [shared, rest], "build": [shared, rest]})
        assert [fell(role="plan"), FULL] == values(t, routed.spawn(options(role="plan")))
        assert [FULL] == values(t, routed.spawn(options(role="build")))
        assert 1 == len(one.spawned)

    def test_success_resets_the_cooldown(self) -> None:
        """After a successful session the first cooldown is 15 minutes again."""
        t = Drawn()
        one = memory(t.agent("#", failed("auth")), t.cold("s|"), t.cold("#"))
        routed = RoutedAgent(chain(one, memory(t.cold("s|"), t.cold("s|"))))
        told = [values(t, routed.spawn(options()), 1000) for _ in range(3)]
        until = [event.until for said in told for event in said if isinstance(event, AgentFellBack)]
        assert [second(900), second(2900)] == until

    def test_only_one_agent(self) -> None:
        """A role without a fallback calls its agent each time and passes its error through."""
        t = Drawn()
        error = limited(HOUR)
        one = memory(*(t.agent("a#", error) for _ in range(2)))
        routed = RoutedAgent(chain(one))
        for _ in range(2):
            assert [AgentMessage(text="a"), error] == values(t, routed.spawn(options()))
        assert 2 == len(one.spawned)


def test_costs_of_both_sessions() -> None:
    """The costs of both sessions are emitted once each."""
    spent = Usage(input_tokens=10, output_tokens=1)
    t = Drawn(u=SessionEnded(outcome="quota", cost_usd=0.25, usage=spent))
    routed = RoutedAgent(chain(memory(t.agent("u#", limited(HOUR))), memory(t.cold("s|"))))
    ended = [e for e in values(t, routed.spawn(options())) if isinstance(e, SessionEnded)]
    assert [0.25, 0.5] == [event.cost_usd for event in ended]


def test_a_run_may_leave_files() -> None:
    """Files written by the first agent are visible to its fallback."""
    t = Drawn()
    plan = AgentRun(t.agent("#", limited(HOUR)))
    other = memory(t.cold("s|"))
    values(t, RoutedAgent(chain(memory(plan), other)).spawn(options(env={"X": "1"})))
    assert {"X": "1"} == other.spawned[0].env
