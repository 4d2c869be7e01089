"""Journals of the deliverables loop, recorded by the real loop with scripted agents."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from reactivex import Observable, concat, from_iterable, just, never, operators as ops

from cuggino.errors import AgentFailed
from cuggino.events import AgentMessage, Event, SessionEnded, ToolCall, ToolResult, Usage
from cuggino.storage import Workspace, list_journals
from cuggino.storage.journal import JournalFile, read_journal
from tests.loops.deliver_loop import DeliverLoop, Statuses, Turn, Writes

SECONDS = 5.0
"""What a session of `turn` takes, in virtual time."""


def turn(
    *said: Event | Writes,
    words: str = "",
    leaves: Statuses | None = None,
    verifies: Iterable[str] = (),
    cost: float = 0.25,
) -> Turn:
    """Return a session that ends with this text and these deliverables."""
    ended = SessionEnded(outcome="completed", cost_usd=cost, usage=Usage(output_tokens=10))
    items = [*said, *([AgentMessage(text=words)] if words else []), ended]
    stream: Observable[Any] = from_iterable(items).pipe(ops.delay(SECONDS))
    return Turn(stream=stream, leaves=leaves, verifies=verifies)


def bash(command: str, name: str = "t1") -> tuple[ToolCall, ToolResult]:
    """Return a command call and its result."""
    call = ToolCall(name="Bash", input={"command": command}, id=name)
    return call, ToolResult(name=name, output="")


PLANNED: Statuses = {"DL-1": "pending", "DL-2": "pending", "DL-3": "pending"}
DONE: Statuses = {"DL-1": "passed", "DL-2": "passed", "DL-3": "blocked"}
TURNS = (
    turn(words="Planned.", leaves=PLANNED),
    turn(*bash("curl http://x"), words="One <done>.", leaves={**PLANNED, "DL-1": "passed"}),
    Turn(events=(), error=AgentFailed("it crashed\nin a loop", reason="crash")),
    turn(words="All done.", leaves=DONE, cost=0.5),
    turn(*bash("ls"), verifies=["DL-1", "DL-2"]),
)
"""Planned, one done, a crash, two done and one blocked, and the two verified."""


def deliver(
    folder: Path,
    *turns: Turn,
    start: Statuses | None = None,
    seconds: float | None = None,
    **given: Any,
) -> JournalFile:
    """Return the journal of a run with these sessions, interrupted after `seconds` if given."""
    project = DeliverLoop(folder, turns or TURNS, start)
    interrupt: Observable[object] = never()
    if seconds is not None:
        interrupt = just("stop").pipe(ops.delay(seconds))
    project.run(interrupt=interrupt, journal=True, **given)
    return latest(folder)


def go_on(folder: Path, *turns: Turn, **given: Any) -> JournalFile:
    """Return the journal of the latest run after another process resumed it an hour later."""
    project = DeliverLoop(folder, turns)
    project.marbles.scheduler.advance_to(3600.0)
    options = project.options(journal=True, **given)
    project.marbles.record(project.service.run(options, resume=latest(folder)))
    return latest(folder)


def latest(folder: Path) -> JournalFile:
    """Return the latest journal."""
    return read_journal(path_of(folder))


def path_of(folder: Path) -> Path:
    """Return the path of the journal."""
    return list_journals(Workspace(folder).journal)[0]


def hanging(*said: Event) -> Turn:
    """Return a session that emits this text and then hangs."""
    return Turn(stream=concat(from_iterable(said), never()))
