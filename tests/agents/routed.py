"""Scripted agents for a `RoutedAgent` to choose from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reactivex import Observable

from cuggino.agents import Candidate, Capabilities, LlmAgent, SpawnOptions
from cuggino.agents.base import Role
from cuggino.events import AgentFellBack, AgentMessage, RateLimited, SessionEnded
from cuggino.guard.policy import Policy
from cuggino.testing import InMemoryAgent, Marbles
from tests.loops.supervised_loop import HOUR, second

FULL = SessionEnded(outcome="completed", session_id="own", cost_usd=0.5)


class Drawn(Marbles):
    """Scripted agents: `a` and `b` emit text, `s` succeeds, `x` hits a limit, `l` reports one."""

    def __init__(self, **events: Any) -> None:
        super().__init__(
            **{
                "a": AgentMessage(text="a"),
                "b": AgentMessage(text="b"),
                "s": FULL,
                "x": SessionEnded(outcome="quota", cost_usd=0.25, session_id="own"),
                "l": RateLimited(status="rejected", resets_at=second(HOUR)),
                **events,
            }
        )

    def agent(self, diagram: str, error: Exception | None = None) -> Observable[Any]:
        self.error = error or self.error
        return self.cold(diagram)


class Held(InMemoryAgent):
    """An agent with a guard."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(guard="calls")

    def check_guard(self, policy: Policy) -> None:
        """Accept any policy."""


def memory(*runs: Any, name: str = "memory", role: Role = "coding", **given: Any) -> InMemoryAgent:
    return InMemoryAgent({role: runs}, name=name, **given)


def candidate(agent: LlmAgent, name: str = "", **given: Any) -> Candidate:
    return Candidate(agent=agent, name=name or agent.name, **given)


def chain(*agents: InMemoryAgent) -> tuple[Candidate, ...]:
    """Return candidates with the names `A`, `B`, ..."""
    return tuple(candidate(agent, chr(ord("A") + n)) for n, agent in enumerate(agents))


def options(**given: Any) -> SpawnOptions:
    return SpawnOptions(**{"prompt": "Do it.", "cwd": Path(), "role": "coding", **given})


def fell(
    reason: str = "quota",
    message: str = "limit met",
    until: float | None = HOUR,
    *,
    by: str = "AB",
    role: str = "coding",
) -> AgentFellBack:
    return AgentFellBack(
        role=role,
        from_agent=by[0],
        to_agent=by[1],
        reason=reason,
        message=message,
        until=None if until is None else second(until),
    )


def values(t: Marbles, stream: Observable[Any], seconds: float = 10) -> list[Any]:
    """Return the notifications of the next seconds, including an error."""
    seen = t.record(stream, until=seconds)
    return [value for _, _, value in seen if value is not None]
