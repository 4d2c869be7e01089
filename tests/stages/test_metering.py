"""The cost of one session: reported, estimated, or unknown."""

from __future__ import annotations

from typing import Any

import pytest

from cuggino import events as ev
from cuggino.agents import Candidate, Capabilities, RoutedAgent
from cuggino.domain import Pricing
from cuggino.stages import unpriceable
from cuggino.stages.metering import Meter
from cuggino.testing import InMemoryAgent
from tests.agents.routed import options
from tests.vectors import each

SONNET, CODEX = "claude-sonnet-4-5", "gpt-5.3-codex"
"""A million input tokens cost $3.00 and $1.75."""


class Agent(InMemoryAgent):
    """An agent that reports tokens only."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(cost="tokens")


def used(millions: float, model: str | None = None, cost: float | None = None) -> ev.UsageUpdate:
    tokens = ev.Usage(input_tokens=round(millions * 1e6))
    return ev.UsageUpdate(usage=tokens, model=model, cost_usd=cost)


def ended(millions: float | None = None, **fields: Any) -> ev.SessionEnded:
    usage = None if millions is None else used(millions).usage
    return ev.SessionEnded(outcome="completed", usage=usage, **fields)


def costs(*events: ev.Event, model: str | None = None) -> list[tuple[float | None, bool]]:
    """Return the cost of each event and whether it is an estimate."""
    meter = Meter(Pricing(), Agent({}), options(model=model), is_limited=False)
    return [
        (one.cost_usd and round(one.cost_usd, 6), one.cost_estimated)
        for event in events
        for one in meter.priced(event)
        if isinstance(one, ev.UsageUpdate | ev.SessionEnded)
    ]


@each(
    "events, expected",
    [
        # Each event has the total so far.
        ([used(1, SONNET), used(2, SONNET), ended(2)], [(3, True), (6, True), (6, True)]),
        # The model of the end counts for what came since the last update.
        ([used(1, SONNET), ended(2, model=CODEX)], [(3, True), (4.75, True)]),
        # A sub-agent, or a model that was switched to, has its own price.
        (
            [used(1, SONNET), used(2, CODEX), used(3, SONNET)],
            [(3, True), (4.75, True), (7.75, True)],
        ),
        # Reported dollars stay, with and without an earlier estimate.
        ([used(1, SONNET), ended(1, cost_usd=2.5)], [(3, True), (2.5, False)]),
        ([used(1, SONNET, cost=0.0), used(2, SONNET)], [(0, False), (6, True)]),
        # An end without tokens has no cost of its own: the last update counts.
        ([used(1, SONNET), ended()], [(3, True), (None, False)]),
        # A total that falls, as a count was corrected, adds nothing.
        ([used(2, SONNET), used(1, SONNET)], [(6, True), (6, True)]),
        # What nobody knows stays unknown.
        ([used(1), used(2, SONNET)], [(None, False), (None, False)]),
        ([used(1, SONNET), used(2, "gpt-99")], [(3, True), (None, False)]),
        ([ended()], [(None, False)]),
        ([ended(0)], [(0, True)]),
        # The fallback begins anew, with its own model.
        (
            [
                used(1, SONNET),
                ev.AgentFellBack(role="", from_agent="a", to_agent="b", reason="", message=""),
                used(1, CODEX),
            ],
            [(3, True), (1.75, True)],
        ),
    ],
)
def test_costs(events: list[ev.Event], expected: list[tuple[float | None, bool]]) -> None:
    """Tokens are priced as they are reported, by the model of the event."""
    assert expected == costs(*events)


def test_the_configured_model() -> None:
    """The configured model is used until the agent names one."""
    assert [(3, True), (4.75, True)] == costs(used(1), used(2, CODEX), model=SONNET)


def chain(*agents: tuple[str, str | None, str]) -> RoutedAgent:
    """Return a router of agents: their names, models and units of cost."""

    def made(name: str, unit: str) -> InMemoryAgent:
        return Agent({}, name=name) if unit == "tokens" else InMemoryAgent({}, name=name)

    return RoutedAgent(
        [Candidate(agent=made(name, unit), name=name, model=model) for name, model, unit in agents]
    )


@pytest.mark.parametrize(
    ("agents", "model", "price_as", "expected"),
    [
        ([("a", None, "tokens")], "gpt-99", None, [("a", "gpt-99")]),
        ([("a", None, "tokens")], "gpt-99", SONNET, []),
        ([("a", None, "tokens")], CODEX, None, []),
        # Its default model is known only when it has started.
        ([("a", None, "tokens")], None, None, []),
        # An alias, which the agent resolves.
        ([("a", None, "tokens")], "auto", None, []),
        ([("a", None, "dollars")], "gpt-99", None, []),
        (
            [("a", CODEX, "tokens"), ("b", "gpt-98", "tokens"), ("c", "gpt-97", "dollars")],
            "gpt-99",
            None,
            [("b", "gpt-98")],
        ),
    ],
)
def test_unpriceable_agents(
    agents: list[tuple[str, str | None, str]],
    model: str | None,
    price_as: str | None,
    expected: list[tuple[str, str]],
) -> None:
    """An agent without dollars whose configured model has no price is known before the start."""
    found = unpriceable(chain(*agents), ["planning"], model=model, pricing=Pricing(price_as))
    assert expected == [(one.agent, one.model) for one in found]
