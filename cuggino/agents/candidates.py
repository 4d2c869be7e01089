"""The agents among which `RoutedAgent` chooses, and what they can do together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from reactivex import Observable, throw

from cuggino.agents.protocol import (
    Capabilities,
    GuardedAgent,
    LlmAgent,
    SpawnOptions,
    capabilities_of,
)
from cuggino.errors import AgentNotFound, GuardNotLive
from cuggino.events import LlmAgentEvent

_Cost = Literal["dollars", "tokens", "none"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """An agent that may work. One object in several roles is one account, with one usage limit."""

    agent: LlmAgent
    name: str
    """How it is called in events and messages."""
    model: str | None = None
    """The model that it is asked to use, whatever the session's options say."""
    is_default: bool = True
    """Whether the model of the session's options is meant for it."""

    def model_of(self, options: SpawnOptions) -> str | None:
        """The model for a session with these options; None leaves it to the agent."""
        return self.model or (options.model if self.is_default else None)

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """A session with it, which fails with `GuardNotLive` when it cannot hold the policy."""
        if options.guard is not None and not isinstance(self.agent, GuardedAgent):
            return throw(
                GuardNotLive(
                    f"{self.name} cannot be held to the policy of its role",
                    hint='take another agent for it, or turn the guard off with "guard": "off"',
                )
            )
        return self.agent.spawn(options)


def first_there(chain: Sequence[Candidate]) -> str:
    """The version of the first of them that is there.

    Raises:
        AgentNotFound: none is; it is the error of the first.
    """
    first: AgentNotFound | None = None
    for candidate in chain:
        try:
            return candidate.agent.check()
        except AgentNotFound as error:
            first = first or error
    assert first is not None
    raise first


def common_capabilities(candidates: Sequence[Candidate]) -> Capabilities:
    """What each of them can do; a session can be gone on with if that is so for any."""
    each = [capabilities_of(candidate.agent) for candidate in candidates]
    guards = {one.guard for one in each}
    return Capabilities(
        guard="none" if "none" in guards else "files" if "files" in guards else "calls",
        mcp=all(one.mcp for one in each),
        resume=any(one.resume for one in each),
        cost=_least_told(one.cost for one in each),
        sandbox=all(one.sandbox for one in each),
        deltas=all(one.deltas for one in each),
        interactive=each[0].interactive,
    )


def _least_told(costs: Iterable[_Cost]) -> _Cost:
    told = set(costs)
    return "none" if "none" in told else "tokens" if "tokens" in told else "dollars"
