"""Silence and usage limits as the tests of supervision draw them, and timers that are due."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import reactivex as rx
from reactivex import Observable

from cuggino import events as ev
from cuggino.errors import AgentStalled, QuotaExceeded
from cuggino.events import AgentMessage, QuotaLifted, QuotaWaiting, SessionEnded
from cuggino.operators.supervision import idle_timeout
from cuggino.testing import Marbles

RETRY = ev.AgentRetry(reason="overloaded", message="", attempt=1, max_retries=3, retry_in=1)


def watched(**options: Any) -> Any:
    """Return the operator, untyped to fit a `pipe`; these tests are not about types."""
    return idle_timeout(**options)


def marbles(**more: Any) -> Marbles:
    """The events of these tests: messages, tools (C and D call, c and d answer), the remedies."""
    events: dict[str, Any] = {
        "a": AgentMessage(text="a"),
        "b": AgentMessage(text="b"),
        "C": ev.ToolCall(name="Bash", id="1"),
        "c": ev.ToolResult(name="1", output=""),
        "D": ev.ToolCall(name="Read", id="2"),
        "d": ev.ToolResult(name="2", output=""),
        "p": ev.PingEvent(timestamp=0),
        "E": SessionEnded(outcome="completed"),
        "Y": RETRY,
        "N": ev.AgentNudged(idle=5),
        "R": ev.AgentReplaced(idle=5),
        "?": ev.ToolResult(name="unknown", output=""),
        "U": ev.ToolCall(name="Fetch"),
    }
    return Marbles(**(events | more))


def check_stalled(t: Marbles, stream: Any, diagram: str) -> AgentStalled:
    """Assert that the stream looks like the diagram, whose `#` is an AgentStalled; give it."""
    seen = t.record(stream)
    (when, kind, error) = seen[-1]
    assert "error" == kind
    assert isinstance(error, AgentStalled)
    assert t.parse(diagram) == [*seen[:-1], (when, kind, t.error)]
    return error


def pending(t: Marbles) -> int:
    """Count the pending timers."""
    return sum(not item.is_cancelled() for item, _ in t.scheduler._queue.items)


HOUR = 3600.0
HI = AgentMessage(text="hi")
DONE = SessionEnded(outcome="completed")


def second(n: float) -> datetime:
    return datetime.fromtimestamp(n, UTC)


def limit(resets: float | None = None, message: str = "limit") -> QuotaExceeded:
    return QuotaExceeded(message, resets_at=None if resets is None else second(resets))


def waiting(remaining: float, resets: float | None = None, message: str = "limit") -> QuotaWaiting:
    resets_at = None if resets is None else second(resets)
    return QuotaWaiting(remaining=remaining, resets_at=resets_at, message=message)


def limited_marbles(error: Exception, **events: Any) -> Marbles:
    return Marbles(error=error, a=HI, d=DONE, **events)


def one_after_the_other(*sources: Observable[Any]) -> Observable[Any]:
    """A cold source that is another one at each subscription."""
    left = iter(sources)
    return rx.defer(lambda _: next(left))


def is_end(event: Any) -> bool:
    return isinstance(event, QuotaLifted)
