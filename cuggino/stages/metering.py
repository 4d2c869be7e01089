"""The cost of one session: as its agent reports it, or estimated from its tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cuggino.agents.base import LlmAgent, SpawnOptions
from cuggino.domain import Pricing
from cuggino.events import (
    AgentFellBack,
    CostUnknown,
    Event,
    SessionEnded,
    Usage,
    UsageUpdate,
)
from cuggino.guard import Role


def unpriceable(
    agent: LlmAgent, roles: Iterable[Role], *, model: str | None, pricing: Pricing
) -> Iterator[CostUnknown]:
    """Yield the agents of these roles whose cost will be unknown, as far as is known beforehand.

    Those report only tokens, and have a configured `model` without a known price. A name without a
    version, such as `auto`, is an alias: the agent reports the model itself.
    """
    for role in roles:
        chain = zip(agent.agents_for(role), agent.models_for(role, model), strict=True)
        for one, its_model in chain:
            if its_model is None or not any(map(str.isdigit, its_model)):
                continue
            if one.capabilities.cost == "tokens" and pricing.rates(its_model) is None:
                yield CostUnknown(agent=one.name, model=its_model)


class Meter:
    """Prices the events of one session that have tokens and no dollars.

    Tokens are priced as they are reported, by the model that an event names: a session may change
    its model, and its sub-agents may have others. With `is_limited`, a budget in dollars limits the
    run: then a session of unknown cost is announced by `CostUnknown`, once. An agent that reports
    dollars itself may do so at the end; any other is judged by its first tokens.
    """

    def __init__(
        self,
        pricing: Pricing,
        agent: LlmAgent,
        options: SpawnOptions,
        *,
        is_limited: bool,
    ) -> None:
        self._pricing = pricing
        agents = agent.agents_for(options.role)
        self._name = agents[0].name
        # A router adds the model of each agent to its events.
        self._model = None if agent.is_router else options.model
        units = {each.capabilities.cost for each in agents}
        self._reports_dollars = "dollars" in units
        self._is_limited = is_limited
        self._usage = Usage()
        self._estimate: float | None = 0.0
        """The price of this usage; None once it is unknown."""

    def priced(self, event: Event) -> Iterator[Event]:
        """Yield the event, with the model and the cost if they are known."""
        match event:
            case UsageUpdate() | SessionEnded():
                self._count(event)
                priced = self._estimated(event)
                if self._is_limited and (unknown := self._unknown(priced)) is not None:
                    self._is_limited = False
                    yield unknown
                yield priced
            case AgentFellBack(to_agent=name):
                self._name, self._model = name, None
                self._usage, self._estimate = Usage(), 0.0
                yield event
            case _:
                yield event

    def _count(self, event: UsageUpdate | SessionEnded) -> None:
        """Add the price of the tokens since the last event."""
        model = event.model or self._model
        if isinstance(event, SessionEnded) or self._model is None:
            self._model = model
        if event.usage is None or event.usage == self._usage:
            return
        before, self._usage = self._usage, event.usage
        added = {name: max(0, count - getattr(before, name)) for name, count in self._usage}
        cost = self._pricing.cost(Usage(**added), model)
        if cost is None or self._estimate is None:
            self._estimate = None
        else:
            self._estimate += cost

    def _estimated(self, event: UsageUpdate | SessionEnded) -> UsageUpdate | SessionEnded:
        changes: dict[str, object] = {}
        if event.model is None and self._model is not None:
            changes["model"] = self._model
        if event.cost_usd is None and event.usage is not None and self._estimate is not None:
            changes |= {"cost_usd": self._estimate, "cost_estimated": True}
        return event.model_copy(update=changes) if changes else event

    def _unknown(self, event: UsageUpdate | SessionEnded) -> CostUnknown | None:
        if event.cost_usd is not None:
            return None
        if self._usage != Usage():
            if self._reports_dollars and isinstance(event, UsageUpdate):
                return None
            return CostUnknown(agent=self._name, model=self._model)
        match event:
            case SessionEnded(outcome="completed", usage=None) if not self._reports_dollars:
                return CostUnknown(agent=self._name, model=self._model, reports="nothing")
            case _:
                return None
