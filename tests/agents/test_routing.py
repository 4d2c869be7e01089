"""`RoutedAgent` in virtual time: agents per role, fallbacks, cooldowns, resumed sessions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from reactivex import Observable, abc
from reactivex.subject import Subject

from cuggino.agents import Capabilities, RoutedAgent, SpawnOptions, is_guarded
from cuggino.agents.base import Role
from cuggino.agents.cassettes import record_to
from cuggino.domain.fallback import AgentCooldown, Cooldown
from cuggino.errors import AgentFailed, AgentNotFound, GuardNotLive, LlmSessionError, QuotaExceeded
from cuggino.events import (
    AgentFellBack,
    AgentMessage,
    LlmAgentEvent,
    RateLimited,
    SessionEnded,
    Usage,
)
from cuggino.guard.roles import role_policy
from cuggino.testing import AgentRun, InMemoryAgent, Marbles
from tests.agents.routed import FULL, Drawn, Held, candidate, chain, fell, memory, options, values
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


def test_costs_of_both_sessions() -> None:
    """The costs of both sessions are emitted once each."""
    spent = Usage(input_tokens=10, output_tokens=1)
    t = Drawn(u=SessionEnded(outcome="quota", cost_usd=0.25, usage=spent))
    routed = RoutedAgent(chain(memory(t.agent("u#", limited(HOUR))), memory(t.cold("s|"))))
    ended = [e for e in values(t, routed.spawn(options())) if isinstance(e, SessionEnded)]
    assert [0.25, 0.5] == [event.cost_usd for event in ended]


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


def cooldown(agent: str = "A", until: float = HOUR, role: str = "coding") -> AgentCooldown:
    return AgentCooldown(
        role, agent, Cooldown(second(until), "limit met", second(until), is_quota=True)
    )


def test_sessions_go_to_the_next(tmp_path: Path) -> None:
    """Sessions go to the fallback until the cooldown ends, also in a recording."""
    for record in (False, True):
        t = Drawn()
        one, other = memory(t.cold("s|")), memory(t.cold("s|"))
        routed = RoutedAgent(chain(one, other))
        agent = record_to(tmp_path / "c", routed, env={}) if record else routed
        agent.restore_cooldowns([cooldown()])
        told = [values(t, agent.spawn(options(cwd=tmp_path)), HOUR) for _ in range(2)]
        assert [[FULL], [FULL]] == told
        assert (1, 1) == (len(one.spawned), len(other.spawned))


def test_unknown_and_ambiguous_names() -> None:
    """A name that matches no agent of the role, or several, restores no cooldown."""
    t = Drawn()
    one, other = memory(t.cold("s|")), memory()
    routed = RoutedAgent(
        [candidate(one, "A"), candidate(other, "A")], {"plan": [candidate(other, "B")]}
    )
    routed.restore_cooldowns(
        [
            cooldown("A"),
            cooldown("B"),
            cooldown("C"),
            cooldown("A", role="plan"),
            cooldown(role="x"),
        ]
    )
    assert [FULL] == values(t, routed.spawn(options()))
    assert 1 == len(one.spawned)


class TestResuming:
    """Sessions resumed by their id."""

    def test_the_owner_resumes_its_session(self) -> None:
        """The owner gets its own id and the new prompt, even if another agent has priority."""
        t = Drawn()
        one = memory(t.agent("#", limited(HOUR)), can_resume=True)
        other = memory(t.cold("s|"), t.cold("s|"), can_resume=True)
        routed = RoutedAgent(chain(one, other))
        values(t, routed.spawn(options(session_id="first")), HOUR + 9)
        values(t, routed.spawn(options(prompt="On.", resume_session_id="own")))
        begun, resumed = other.spawned
        assert begun.session_id not in (None, "first")
        assert ("On.", "own", None) == (
            resumed.prompt,
            resumed.resume_session_id,
            resumed.session_id,
        )

    def test_an_id_is_never_given_to_another(self) -> None:
        """While the owner is on cooldown, the fallback starts over with the first prompt."""
        t = Drawn()
        one = memory(t.agent("-a#", limited(HOUR)), can_resume=True)
        other = memory(t.agent("-b#", failed("crash")), t.cold("s|"), can_resume=True)
        routed = RoutedAgent(chain(one, other))
        values(t, routed.spawn(options(session_id="first")))
        # To the caller, the session has continued with the other agent.
        values(t, routed.spawn(options(prompt="On.", resume_session_id="first")))
        begun, resumed = other.spawned
        assert "first" != begun.session_id
        assert begun.session_id == resumed.resume_session_id
        assert 1 == len(one.spawned)

    def test_the_owner_meets_a_limit(self) -> None:
        """A session that cannot be resumed starts over with its complete original prompt."""
        t = Drawn()
        one = memory(t.cold("s|"), t.agent("#", limited(HOUR)), can_resume=True)
        other = memory(t.cold("s|"), can_resume=True)
        routed = RoutedAgent(chain(one, other))
        values(t, routed.spawn(options(session_id="first", system_prompt="You are.")))
        values(t, routed.spawn(options(prompt="On.", resume_session_id="own")))
        (anew,) = other.spawned
        assert ("Do it.", "You are.", None) == (
            anew.prompt,
            anew.system_prompt,
            anew.resume_session_id,
        )
        assert anew.session_id not in (None, "first", "own")

    def test_an_owner_without_resume_support(self) -> None:
        """An agent without support for resuming starts over."""
        t = Drawn()
        one = memory(t.cold("s|"), t.cold("s|"))
        routed = RoutedAgent(chain(one, memory(can_resume=True)))
        values(t, routed.spawn(options(session_id="first")))
        values(t, routed.spawn(options(prompt="On.", resume_session_id="first")))
        assert ["Do it.", "Do it."] == [spawned.prompt for spawned in one.spawned]
        assert [None, None] == [spawned.resume_session_id for spawned in one.spawned]

    def test_an_unknown_id(self) -> None:
        """An unknown id is a bad request before any event."""
        t = Drawn()
        one = memory(can_resume=True)
        (error,) = values(t, RoutedAgent(chain(one)).spawn(options(resume_session_id="who")))
        assert isinstance(error, AgentFailed)
        assert ("bad_request", "no agent has the session who") == (error.reason, error.message)
        assert [] == one.spawned

    def test_old_sessions_are_forgotten(self) -> None:
        """Old sessions can no longer be resumed, which bounds memory."""
        t = Drawn()
        spoken = AgentRun([AgentMessage(text="a")])
        one = memory(*[spoken] * 200, can_resume=True)
        routed = RoutedAgent(chain(one))
        for number in range(150):
            values(t, routed.spawn(options(session_id=f"id{number}")))
        assert [AgentMessage(text="a")] == values(
            t, routed.spawn(options(resume_session_id="id149"))
        )
        assert "id149" == one.spawned[-1].resume_session_id
        (error,) = values(t, routed.spawn(options(resume_session_id="id1")))
        assert isinstance(error, AgentFailed)


def test_messages_reach_whoever_works() -> None:
    """A session resumed or restarted by a fallback gets the latest options' messages."""
    t = Drawn()
    one = memory(t.cold("s|"), t.agent("#", limited(HOUR)), can_resume=True)
    other = memory(t.cold("s|"), can_resume=True)
    routed = RoutedAgent(chain(one, other))
    first: Subject[str] = Subject()
    later: Subject[str] = Subject()
    values(t, routed.spawn(options(session_id="first", messages=first)))
    values(t, routed.spawn(options(prompt="On.", resume_session_id="own", messages=later)))
    assert [first, later] == [given.messages for given in one.spawned]
    assert [later] == [given.messages for given in other.spawned]


def test_any_agent_that_takes_messages_is_given_them() -> None:
    """Routed agents claim them if one of them does."""

    class Hears(InMemoryAgent):
        @property
        def capabilities(self) -> Capabilities:
            return Capabilities(messages=True)

    deaf, hears = memory(), Hears({})
    assert not RoutedAgent(chain(deaf, deaf)).capabilities.messages
    assert RoutedAgent(chain(deaf, hears)).capabilities.messages


ENDS = ("well", "unknown", "auth", "gone", "crash", "bad", "soon", "late", "silent")
"""Outcomes of a session; `silent` has no final event."""


class Strict(InMemoryAgent):
    """An agent that follows the scenario and resumes only its own sessions."""

    def __init__(self, name: str, ends: Iterator[str], ids: Iterator[int]) -> None:
        super().__init__({}, name=name, can_resume=True)
        self._ends = ends
        self._ids = ids
        self.mine: set[str] = set()
        self.times: list[tuple[float, float]] = []

    def spawn(self, given: SpawnOptions) -> Observable[LlmAgentEvent]:
        resumed = given.resume_session_id
        assert resumed is None or resumed in self.mine
        assert given.session_id is None or given.session_id not in self.mine
        own = f"{self.name}{next(self._ids)}"
        self.mine |= {own, *([given.session_id] if given.session_id else [])}
        self.spawned.append(given)
        end = next(self._ends, "well")

        def subscribe(
            observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            assert scheduler is not None
            began = scheduler.to_seconds(scheduler.now)

            def act(*_: Any) -> None:
                now = scheduler.to_seconds(scheduler.now)
                self.times.append((began, now))
                observer.on_next(AgentMessage(text=self.name))
                if end != "silent":
                    outcome: Any = "completed" if end == "well" else "failed"
                    observer.on_next(SessionEnded(outcome=outcome, session_id=own, cost_usd=1))
                error = _error(end, now)
                if error is None:
                    observer.on_completed()
                else:
                    observer.on_error(error)

            return scheduler.schedule_relative(1, act)

        return Observable(subscribe)


def _error(end: str, now: float) -> LlmSessionError | None:
    match end:
        case "unknown":
            return QuotaExceeded("limit")
        case "soon" | "late":
            later = 30 if end == "soon" else 9000
            return QuotaExceeded("limit", resets_at=second(now + later))
        case "gone":
            return AgentNotFound("gone")
        case "auth" | "crash":
            return failed(end)
        case "bad":
            return failed("bad_request")
        case _:
            return None


orders = st.lists(
    st.tuples(st.sampled_from(("new", "again", "first")), st.sampled_from((5.0, 40.0, 1000.0)))
)


@given(orders, st.lists(st.sampled_from(ENDS), max_size=30), st.integers(1, 3))
def test_any_scenario(story: list[tuple[str, float]], ends: list[str], size: int) -> None:
    """Each session has one outcome, and ids are only given to their own agent."""
    course, ids = iter(ends), count()
    agents = [Strict(name, course, ids) for name in "ABC"[:size]]
    routed = RoutedAgent([candidate(agent, agent.name) for agent in agents])
    t = Marbles()
    known: list[str] = []
    for number, (order, later) in enumerate(story):
        given_options = options(session_id=f"s{number}")
        if order != "new" and known:
            wanted = known[-1 if order == "again" else 0]
            given_options = replace(given_options, session_id=None, resume_session_id=wanted)
        elif order == "new":
            known.append(f"s{number}")
        else:
            continue
        before = sum(len(agent.spawned) for agent in agents)
        said = values(t, routed.spawn(given_options), later)
        sessions = sum(len(agent.spawned) for agent in agents) - before
        assert 1 <= sessions <= size
        assert sessions - 1 == sum(isinstance(event, AgentFellBack) for event in said)
        assert sum(isinstance(event, Exception) for event in said) <= 1
        known += [e.session_id for e in said if isinstance(e, SessionEnded) and e.session_id]
    times = sorted(span for agent in agents for span in agent.times)
    assert all(one[1] <= then[0] for one, then in pairwise(times))
