"""Coding loops under supervision, in virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from reactivex import Observable

from cuggino import events as ev
from cuggino.agents import SpawnOptions
from cuggino.agents.base import Role
from cuggino.errors import AgentFailed, AgentFailure, CugginoError, QuotaExceeded
from cuggino.testing import DrawnStream, Marbles, Seen
from tests.loops.coding_loop import CodingLoop, marbles

E = TypeVar("E", bound=ev.Event)

HOUR = 3600.0
PLANNED = ["IterationStart", "PlanningStart", "PlanComplete", "ImplementingStart"]
APPROVED = ["Done", "ReviewingStart", "Approved", "LoopApproved"]


def second(n: float) -> datetime:
    """A second of virtual time as a time."""
    return datetime.fromtimestamp(n, UTC)


def failed(reason: AgentFailure = "overloaded") -> AgentFailed:
    return AgentFailed(f"it was {reason}", reason=reason)


def limited(resets: float | None = None) -> QuotaExceeded:
    resets_at = None if resets is None else second(resets)
    return QuotaExceeded("limit met", resets_at=resets_at)


class SupervisedMarbles(Marbles):
    """The marbles of the loop, and those of agents that spend, work with tools and fail.

    `u` is 600 tokens of a running session, `x` its end as a failure that cost 0.25 dollars, `t`
    and `o` a tool's call and result, `l` the report of a usage limit, `q` of a window. Time adds
    up to 9 hours.
    """

    def __init__(self) -> None:
        super().__init__(
            **{
                **marbles().events,
                "a": ev.AgentMessage(text="working"),
                "u": ev.UsageUpdate(usage=ev.Usage(input_tokens=500, output_tokens=100)),
                "x": ev.SessionEnded(outcome="failed", cost_usd=0.25),
                "t": ev.ToolCall(name="Bash", input={"command": "pytest"}, id="tool"),
                "o": ev.ToolResult(name="tool", output="ok"),
                "l": ev.RateLimited(status="rejected", resets_at=second(HOUR)),
                "q": ev.QuotaUsed(window="five_hour", used=0.85, resets_at=second(HOUR)),
            }
        )

    def agent(self, diagram: str, error: Exception | None = None) -> DrawnStream:
        """A cold stream, with its own error for `#`."""
        self.error = error or self.error
        return self.cold(diagram)

    @property
    def pending(self) -> int:
        """Timers that would still go off."""
        return sum(1 for item, _ in self.scheduler._queue.items if not item.is_cancelled())


def course(seen: list[Seen]) -> list[tuple[float, str]]:
    """Return the events of loop and supervision with their times; errors by class and code."""
    return list(_course(seen))


def _course(seen: list[Seen]) -> Iterator[tuple[float, str]]:
    for when, kind, value in seen:
        if kind == "error":
            assert isinstance(value, CugginoError)
            yield when, f"{type(value).__name__} {value.code}"
        elif kind == "next" and not isinstance(value, ev.LlmAgentEvent):
            yield when, value.tag


def events_of(seen: list[Seen], cls: type[E]) -> list[tuple[float, E]]:
    """Return the events of the class with their times."""
    return [(when, value) for when, _, value in seen if isinstance(value, cls)]


def error_of(seen: list[Seen]) -> CugginoError:
    """The error at the end of the story."""
    when, kind, error = seen[-1]
    assert kind == "error", f"{kind} at {when}"
    assert isinstance(error, CugginoError)
    return error


def sessions(loop: CodingLoop, role: Role) -> list[SpawnOptions]:
    """Return the options of the agents of a role."""
    return [options for options in loop.agent.spawned if options.role == role]


BEFORE = [
    (0, "IterationStart"),
    (0, "PlanningStart"),
    (0, "PlanComplete"),
    (0, "ImplementingStart"),
]


def loop_of(
    folder: Path, t: SupervisedMarbles, *implementing: Observable[Any], **kwargs: Any
) -> CodingLoop:
    """A loop that plans at once, implements as it is given, and is approved at once."""
    return CodingLoop(
        folder,
        planning=[t.agent("(c|)")],
        implementing=list(implementing),
        reviewing=[t.agent("(y|)")],
        **{"can_resume": True, **kwargs},
    )
