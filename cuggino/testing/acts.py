"""What a session in memory says and does, one thing after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path
from string import Template
from typing import Any, TypeAlias

from reactivex import Observable, timer

from cuggino.agents.protocol import SpawnOptions
from cuggino.domain.deliverable_tools import agent_tool, tool_named
from cuggino.events import AgentMessage, Event, Thinking, ToolCall, ToolResult
from cuggino.operators import Flow, ask, emit, flow, forward
from cuggino.stages import clock
from cuggino.storage.deliverables import DeliverableStore
from cuggino.storage.verified import VerifiedFile
from cuggino.testing.clock import seconds
from cuggino.testing.conformance_acts import Run, Say, Think, Write


@dataclass(frozen=True, slots=True)
class Wait:
    """Time passes: so many seconds, or `20m`."""

    time: float | str | timedelta


@dataclass(frozen=True, slots=True)
class Use:
    """The model uses a tool.

    Those for deliverables (`create_deliverable`, `set_deliverable_status`, `verify`, ...) do their
    work in the project, and answer themselves. Any other is only told, with this output.
    """

    tool: str
    input: Mapping[str, Any] = field(default_factory=dict)
    output: str = ""
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Do:
    """Something is done that no event tells; it is given the options of the session."""

    what: Callable[[SpawnOptions], object]


Item: TypeAlias = Event | Say | Think | Write | Run | Use | Wait | Do | Exception
"""One thing in a session: an event as it is, an act, or an exception, with which it fails."""


def session_of(items: Iterable[Item], options: SpawnOptions) -> Observable[Any]:
    """Play the items one after the other; what comes behind the end of the session is not done."""
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
    match item:
        case Write(path, text):
            return _told(call, "Write", {"file_path": path, "content": text}, _write(item, options))
        case Run(command):
            return _told(call, "Bash", {"command": command}, Use("Bash"))
        case Use(tool, given):
            known = tool_named(tool)
            if known is None:
                return _told(call, tool, given, item)
            return flow(lambda: _deliverables(item, call, agent_tool(known), options))


def _told(call: str, name: str, given: Mapping[str, Any], answer: Use) -> Observable[Any]:
    return flow(
        lambda: emit(
            ToolCall(name=name, input=dict(given), id=call),
            ToolResult(name=call, output=answer.output, is_error=answer.is_error),
        )
    )


def _write(item: Write, options: SpawnOptions) -> Use:
    """The file, also where a variable of the session's environment says it is."""
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
