"""The messages and actions of a session in memory."""

from __future__ import annotations

import json
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
from cuggino.operators import Flow, ask, emit, flow
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
        # Each in a turn of its own on the lane: an earlier event may end the session.
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
                yield from _use(item, f"call-{next(numbers)}", options)
            case _:
                raise TypeError(f"{item!r} is nothing that a session in memory could do")


def _use(item: Write | Run | Use, call: str, options: SpawnOptions) -> Flow[None]:
    """Emit the call of a tool and its result."""
    match item:
        case Write(path, text):
            use = Use("Write", {"file_path": path, "content": text}, _write(path, text, options))
        case Run(command):
            use = Use("Bash", {"command": command})
        case Use(name) if (known := tool_named(name)) is not None:
            use = yield from _deliverables(item, agent_tool(known), options)
        case Use():
            use = item
    yield from emit(
        ToolCall(name=use.tool, input=dict(use.input), id=call),
        ToolResult(name=call, output=use.output, is_error=use.is_error),
    )


def _write(path: str, text: str, options: SpawnOptions) -> str:
    """Write a file, at the path that a variable of the session may give; return the result."""
    file = options.cwd / Template(path).safe_substitute(options.env)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return f"{file} was written"


def _deliverables(item: Use, name: str, options: SpawnOptions) -> Flow[Use]:
    """Call a tool for deliverables; return the call with its answer, that of the MCP server."""
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
    output = json.dumps(called.answer(), ensure_ascii=False)
    return Use(name, item.input, output, is_error=not called.result.success)
