"""The messages and actions of a session in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path
from string import Template
from typing import Any, TypeAlias

from reactivex import Observable, timer

from cuggino.agents.base import SpawnOptions
from cuggino.domain import agent_tool, tool_named
from cuggino.events import AgentMessage, Event, Thinking, ToolCall, ToolResult
from cuggino.operators import Flow, ask, emit, flow, forward
from cuggino.stages import clock
from cuggino.storage import DeliverableStore, VerifiedFile
from cuggino.testing.clock import seconds
from cuggino.testing.conformance.acts import Run, Say, Think, Write


@dataclass(frozen=True, slots=True)
class Wait:
    """A pause, in seconds or as text such as `20m`."""

    time: float | str | timedelta


@dataclass(frozen=True, slots=True)
class Use:
    """A tool call of the model.

    The tools for deliverables (`create_deliverable`, `set_deliverable_status`, `verify`, ...)
    change the project and return their own result. Any other tool only emits events, with this
    output.
    """

    tool: str
    input: Mapping[str, Any] = field(default_factory=dict)
    output: str = ""
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Do:
    """An action without an event. It is called with the options of the session."""

    what: Callable[[SpawnOptions], object]


Item: TypeAlias = Event | Say | Think | Write | Run | Use | Wait | Do | Exception
"""An item of a session: an event, an action, or an exception that fails the session."""


def session_of(items: Iterable[Item], options: SpawnOptions) -> Observable[Any]:
    """Play the items in order; items after the end of the session are skipped."""
    return flow(lambda: _play(items, options))


def _play(items: Iterable[Item], options: SpawnOptions) -> Flow[None]:
    numbers = count(1)
    for item in items:
        # Each in a turn of its own on the lane: the session may be ended by what was said before.
        yield from ask(timer(seconds(item.time) if isinstance(item, Wait) else 0.0))
        match item:
            case Event():
                yield from emit(item)
            case Say(text):
                yield from emit(AgentMessage(text=text))
            case Think(text):
                yield from emit(Thinking(text=text))
            case Wait():
                pass
            case Do(what):
                what(options)
            case Exception():
                raise item
            case Write() | Run() | Use():
                yield from forward(_tool(item, f"call-{next(numbers)}", options))
            case _:
                raise TypeError(f"{item!r} is nothing that a session in memory could do")


def _tool(item: Write | Run | Use, call: str, options: SpawnOptions) -> Observable[Any]:
    if isinstance(item, Write):
        given = {"file_path": item.path, "content": item.text}
        return _told(call, "Write", given, _write(item, options))
    if isinstance(item, Run):
        return _told(call, "Bash", {"command": item.command}, Use("Bash"))
    known = tool_named(item.tool)
    if known is None:
        return _told(call, item.tool, item.input, item)
    return flow(lambda: _deliverables(item, call, agent_tool(known), options))


def _told(call: str, name: str, given: Mapping[str, Any], answer: Use) -> Observable[Any]:
    return flow(
        lambda: emit(
            ToolCall(name=name, input=dict(given), id=call),
            ToolResult(name=call, output=answer.output, is_error=answer.is_error),
        )
    )


def _write(item: Write, options: SpawnOptions) -> Use:
    """Return the tool call for the file, at the path that a variable of the session may give."""
    path = options.cwd / Template(item.path).safe_substitute(options.env)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(item.text, encoding="utf-8")
    return Use("Write", output=f"{path} was written")


def _deliverables(item: Use, call: str, name: str, options: SpawnOptions) -> Flow[None]:
    now = yield from ask(clock())
    assert now is not None
    session = options.env.get("CUGGINO_SESSION_FILE")
    kept = Path(session).with_suffix(".verified.json") if session else None
    called = DeliverableStore(options.cwd).call(
        item.tool,
        dict(item.input),
        now=now,
        verified=VerifiedFile(kept) if kept is not None and kept.exists() else None,
    )
    answer = called.result
    yield from forward(
        _told(call, name, item.input, Use(name, {}, answer.message, not answer.success))
    )
