"""The cost of one session: as its agent reports it, or estimated from its tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cuggino.agents.base import LlmAgent, SpawnOptions
from cuggino.domain import Pricing
from cuggino.events import AgentFellBack, CostUnknown, Event, SessionEnded, Usage, UsageUpdate
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

    With `is_limited`, a budget in dollars limits the run: then a session of unknown cost is
    announced by `CostUnknown`, once. An agent that reports dollars itself may do so at the end; any
    other is judged by its first tokens.
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
        self._reports_nothing = units == {"none"}
        self._is_limited = is_limited
        self._usage = Usage()

    def priced(self, event: Event) -> Iterator[Event]:
        """Yield the event, with the model and the cost if they are known."""
        match event:
            case UsageUpdate() | SessionEnded():
                self._model = event.model or self._model
                self._usage = event.usage or self._usage
                priced = self._pricing.estimated(event, self._model)
                if self._is_limited and (unknown := self._unknown(priced)) is not None:
                    self._is_limited = False
                    yield unknown
                yield priced
            case AgentFellBack(to_agent=name):
                self._name, self._model, self._usage = name, None, Usage()
                yield event
            case _:
                yield event

    def _unknown(self, event: UsageUpdate | SessionEnded) -> CostUnknown | None:
        if event.cost_usd is not None:
            return None
        if self._usage != Usage():
            if self._reports_dollars and isinstance(event, UsageUpdate):
                return None
            return CostUnknown(agent=self._name, model=self._model)
        match event:
            case SessionEnded(outcome="completed") if self._reports_nothing:
                return CostUnknown(agent=self._name, model=self._model, reports="nothing")
            case _:
                return None
