"""A budget in dollars for agents that report none, in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, empty, merge, operators as ops

from cuggino import events as ev
from cuggino.agents import Candidate, Capabilities, RoutedAgent
from cuggino.agents.base import Role
from cuggino.domain import Budget, Pricing
from cuggino.errors import BudgetExceeded, LoopError
from cuggino.stages import Supervision
from cuggino.testing import InMemoryAgent, Marbles, Seen, no_leaks
from tests.agents.routed import options
from tests.loops.supervised_loop import (
    BEFORE,
    SupervisedMarbles,
    course,
    error_of,
    events_of,
    loop_of,
    sessions,
)

MODEL = "gpt-5.3-codex"
"""A million input tokens cost $1.75."""


def used(millions: float, model: str | None = MODEL, cost: float | None = None) -> ev.UsageUpdate:
    tokens = ev.Usage(input_tokens=round(millions * 1e6))
    return ev.UsageUpdate(usage=tokens, model=model, cost_usd=cost)


class Silent(InMemoryAgent):
    """An agent that reports tokens and no dollars, or not even tokens."""

    unit = "tokens"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(resume=True, cost="tokens" if self.unit == "tokens" else "none")


class Nothing(Silent):
    unit = "nothing"


def supervised(
    t: Marbles, agent: Any, *, budget: float | None = 2.0, price_as: str | None = None, **given: Any
) -> list[Seen]:
    """Record a session under this budget."""
    supervision = Supervision(budget=Budget(cost_usd=budget), pricing=Pricing(price_as))
    stream = supervision.session(agent, options(**given), read=lambda events: events)
    return t.record(stream)


def told(seen: list[Seen]) -> list[tuple[float, str]]:
    """Return the tags and times of all events, and the error by its exit code."""
    return [
        (when, value.tag if kind == "next" else f"{type(value).__name__} {value.code}")
        for when, kind, value in seen
        if kind != "completed"
    ]


def silent(stream: Observable[Any], cls: type[Silent] = Silent) -> Silent:
    role: Role = "coding"
    return cls({role: [stream]}, name="codex")


class TestLoop:
    def test_the_running_agent_is_cut(self, tmp_path: Path) -> None:
        """The update whose estimate exceeds the budget ends the agent; its cost is marked."""
        t = SupervisedMarbles()
        t.events |= {"u": used(1), "v": used(1.2)}
        agent = t.agent("a-u-v-a-a")
        loop = loop_of(tmp_path, t, agent)
        with no_leaks():
            seen = t.record(loop.run(budget=2, max_retries=3, wait_for_quota=True))
        ends = [(2, "BudgetWarning"), (4, "StageCost"), (4, "LoopError 13")]
        assert [*BEFORE, *ends] == course(seen)
        assert [(0, 4)] == agent.subscriptions
        ((_, warning),) = events_of(seen, ev.BudgetWarning)
        assert (1.75, True) == (warning.spent, warning.estimated)
        ((_, cost),) = events_of(seen, ev.StageCost)
        assert pytest.approx(2.1) == cost.cost_usd
        assert (True, True) == (cost.cost_estimated, cost.total_estimated)
        assert "The budget of the run is used up: ~$2.10 of $2.00 spent" in error_of(seen).message
        loop.assert_released()

    def test_reported_dollars_replace_the_estimate(self, tmp_path: Path) -> None:
        """The dollars at the end of a session count, and what is left goes to the next one."""
        t = SupervisedMarbles()
        t.events |= {"u": used(1), "s": ev.SessionEnded(outcome="completed", cost_usd=0.5)}
        loop = loop_of(tmp_path, t, t.agent("u-(ds|)"))
        seen = t.record(loop.run(budget=10))
        ((_, cost), *_) = events_of(seen, ev.StageCost)
        assert (0.5, False) == (cost.cost_usd, cost.cost_estimated)
        (reviewing,) = sessions(loop, "reviewing")
        assert 9.5 == reviewing.max_budget_usd

    def test_a_mixed_sum_is_an_estimate(self, tmp_path: Path) -> None:
        """Reported dollars and an estimate make an estimate."""
        t = SupervisedMarbles()
        end = {"outcome": "completed", "usage": used(1).usage, "model": MODEL}
        t.events["s"] = ev.SessionEnded.model_validate(end)
        loop = loop_of(tmp_path, t, t.agent("(gx|)"), t.agent("(ds|)"))
        seen = t.record(loop.run())
        costs = [cost for _, cost in events_of(seen, ev.StageCost)]
        assert [(0.25, False, 0.25, False), (1.75, True, 2.0, True)] == [
            (one.cost_usd, one.cost_estimated, one.total_cost, one.total_estimated) for one in costs
        ]

    def test_tokens_are_counted_by_price(self, tmp_path: Path) -> None:
        """A million cache reads count as a tenth of a million tokens, and end the agent."""
        t = SupervisedMarbles()
        for name, reads in (("u", 900_000), ("v", 1_100_000)):
            tokens = ev.Usage(input_tokens=1000, cache_read_tokens=reads)
            t.events[name] = ev.UsageUpdate(usage=tokens)
        loop = loop_of(tmp_path, t, t.agent("u-v-a-"))
        seen = t.record(loop.run(max_tokens=100_000))
        assert (2, "LoopError 13") == course(seen)[-1]
        assert "111,000 of 100,000 weighted tokens spent" in error_of(seen).message

    def test_an_unknown_price(self, tmp_path: Path) -> None:
        """A session of unknown cost keeps its outcome, and no further one starts."""
        t = SupervisedMarbles()
        end = {"outcome": "completed", "usage": used(1).usage, "model": "gpt-99"}
        t.events["s"] = ev.SessionEnded.model_validate(end)
        loop = loop_of(tmp_path, t, t.agent("(gs|)"), t.agent("(ds|)"))
        seen = t.record(loop.run(budget=5))
        ends = ["CostUnknown", "StageCost", "Progress", "ImplementingStart", "LoopError 13"]
        assert ends == [tag for _, tag in course(seen)[4:]]
        error = error_of(seen)
        assert isinstance(error, LoopError)
        assert isinstance(error.cause, BudgetExceeded)
        assert "The budget of $5.00 cannot hold: memory reports no dollars" in error.message
        assert 'the price of its model "gpt-99" is unknown' in error.message
        assert "--price-as" in (error.hint or "")
        loop.assert_released()


class TestSession:
    def test_an_agent_without_dollars_is_cut_at_its_first_tokens(self) -> None:
        """An agent that reports tokens only is cut when their price is unknown."""
        t = Marbles(a=ev.AgentMessage(text="a"), u=used(1, model=None))
        stream = t.cold("a-u-a-a")
        seen = supervised(t, silent(stream), budget=1000.0)
        ends = [(2, "CostUnknown"), (2, "UsageUpdate"), (2, "BudgetExceeded 13")]
        assert [(0, "AgentMessage"), *ends] == told(seen)
        assert [(0, 2)] == stream.subscriptions
        assert "of its model is unknown" in str(seen[-1][2])

    def test_the_named_model_prices_it(self) -> None:
        """With `price_as` the same session is priced, and cut at its budget."""
        t = Marbles(u=used(1, model=None), v=used(2, model=None))
        seen = supervised(t, silent(t.cold("u-v-u-")), budget=5.0, price_as="claude-sonnet-4-5")
        ends = [(2, "BudgetWarning"), (2, "UsageUpdate"), (2, "BudgetExceeded 13")]
        assert [(0, "UsageUpdate"), *ends] == told(seen)
        costs = [event for _, event in events_of(seen, ev.UsageUpdate)]
        assert [(3.0, True), (6.0, True)] == [(one.cost_usd, one.cost_estimated) for one in costs]

    def test_the_configured_model(self) -> None:
        """The model of the options is used unless the agent reports its own."""
        t = Marbles(u=used(1, model=None), v=used(2))
        seen = supervised(t, silent(t.cold("u-(v|)")), budget=50.0, model="claude-sonnet-4-5")
        costs = [event for _, event in events_of(seen, ev.UsageUpdate)]
        assert [("claude-sonnet-4-5", 3.0), (MODEL, 4.75)] == [
            (one.model, one.cost_usd) for one in costs
        ]

    def test_without_a_budget_nothing_is_told(self) -> None:
        """An unknown price is no matter for a run without a budget in dollars."""
        t = Marbles(u=used(1, model=None))
        assert [(0, "UsageUpdate")] == told(supervised(t, silent(t.cold("(u|)")), budget=None))

    @pytest.mark.parametrize("agent", [Nothing, Silent])
    @pytest.mark.parametrize("outcome", ["completed", "failed"])
    def test_an_agent_that_reports_nothing(
        self, outcome: ev.SessionOutcome, agent: type[Silent]
    ) -> None:
        """The end of a session without any tokens is told, unless the session has failed."""
        t = Marbles(s=ev.SessionEnded(outcome=outcome))
        seen = supervised(t, silent(t.cold("-(s|)"), agent))
        unknown = [(1, "CostUnknown")] * (outcome == "completed")
        assert [*unknown, (1, "SessionEnded")] == told(seen)

    def test_no_tokens_cost_nothing(self) -> None:
        """A session that has used no tokens has no unknown cost."""
        t = Marbles(s=ev.SessionEnded(outcome="failed", usage=ev.Usage()))
        assert [(0, "SessionEnded")] == told(supervised(t, silent(t.cold("(s|)"))))
        t = Marbles(s=ev.SessionEnded(outcome="completed", usage=ev.Usage()))
        assert [(0, "SessionEnded")] == told(supervised(t, silent(t.cold("(s|)"))))

    def test_each_fallback_has_its_own_model(self) -> None:
        """A router's events are priced by the model of the agent that works."""
        t = Marbles(u=used(1, model=None))
        first, second = (silent(t.cold("(u|)")) for _ in "ab")
        routed = RoutedAgent(
            [Candidate(agent=first, name="A", model="claude-sonnet-4-5")],
            {"coding": [Candidate(agent=second, name="B", model=MODEL)]},
        )
        for role, cost in (("coding", 1.75), (None, 3.0)):
            first.runs = {"planning": [t.cold("(u|)")]}
            seen = supervised(t, routed, role=role, model="gpt-99")
            ((_, update),) = events_of(seen, ev.UsageUpdate)
            assert cost == update.cost_usd

    def test_other_sessions_are_cut_too(self) -> None:
        """After an unknown cost no stream of the ledger continues."""
        t = Marbles(u=used(1, model=None), a=ev.AgentMessage(text="a"))
        supervision = Supervision(budget=Budget(cost_usd=5.0))
        drawn = [t.cold("a-a-a-a-"), t.cold("--u-a-")]
        streams = [
            supervision.session(silent(one), options(), read=lambda events: events) for one in drawn
        ]
        t.record(merge(*(one.pipe(ops.catch(empty())) for one in streams)))
        assert [[(0, 2)], [(0, 2)]] == [one.subscriptions for one in drawn]
