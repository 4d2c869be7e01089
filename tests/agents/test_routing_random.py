"""`RoutedAgent` under random scenarios: one session at a time, an outcome, correct ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count, pairwise
from typing import Any

from hypothesis import given, strategies as st
from reactivex import Observable, abc

from cuggino.agents import RoutedAgent, SpawnOptions
from cuggino.errors import AgentNotFound, LlmSessionError, QuotaExceeded
from cuggino.events import AgentFellBack, AgentMessage, LlmAgentEvent, SessionEnded
from cuggino.testing import InMemoryAgent, Marbles
from tests.agents.routed import candidate, options, values
from tests.loops.supervised_loop import failed, second

ENDS = ("well", "unknown", "auth", "gone", "crash", "bad", "soon", "late", "silent")
"""Outcomes of a session; `silent` has no final event."""

Story = list[tuple[str, ...]]


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
