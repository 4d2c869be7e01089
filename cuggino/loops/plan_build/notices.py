"""Notices of the work of a plan/build agent, read from its tool calls (LOP-082, LOP-083)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cuggino.events import (
    Event,
    FileTouched,
    SubAgentEnded,
    SubAgentStarted,
    ToolCall,
    ToolResult,
)
from cuggino.guard import FILE_TOOLS

_SUB_AGENTS = ("Task", "Agent")
_PATHS = ("file_path", "notebook_path", "path")


class WorkNotices:
    """Adds notices after the events of tools; one object for each session."""

    def __init__(self, project: Path) -> None:
        self._project = Path.cwd() / project
        self._real = project.resolve()
        """The project's folder with links resolved: some agents use it to name files."""
        self._calls: dict[str, ToolCall] = {}
        self._touched: set[str] = set()
        self.has_committed = False
        """True if a command that commits has ended since this was last checked and cleared."""

    def notice(self, event: Event) -> Iterable[Event]:
        """Return the event and its notices; a list, so that `has_committed` is of this event."""
        match event:
            case ToolCall(name=name, id=call):
                self._calls[call] = event
                return [event, _sub_agent(event)] if name in _SUB_AGENTS else [event]
            case ToolResult(name=call, is_error=is_error) if call in self._calls:
                return [event, *self._ended(self._calls.pop(call), is_error=is_error)]
            case _:
                return [event]

    def _ended(self, call: ToolCall, *, is_error: bool) -> Iterable[Event]:
        given = call.input if isinstance(call.input, dict) else {}
        if call.name in _SUB_AGENTS:
            yield SubAgentEnded(name=_sub_agent(call).name)
        elif call.name in FILE_TOOLS and not is_error:
            for path in _paths(given):
                yield from self.touched(self._relative(path))
        elif "git" in (command := str(given.get("command", ""))) and "commit" in command:
            self.has_committed = True

    def touched(self, path: str) -> Iterable[Event]:
        """Return the notice that the file was written, unless it was given before."""
        if path and path not in self._touched:
            self._touched.add(path)
            yield FileTouched(path=path)

    def _relative(self, path: str) -> str:
        place = Path(os.path.normpath(self._project / path))
        for project in (self._project, self._real):
            if place.is_relative_to(project):
                return place.relative_to(project).as_posix()
        return str(place)


def _paths(given: dict[str, Any]) -> list[str]:
    """Return the files that a call names: one, or one in each of its edits."""
    edits = given.get("edits")
    parts = [given, *(edits if isinstance(edits, list) else [])]
    named = [
        next((part[key] for key in _PATHS if part.get(key)), "")
        for part in parts
        if isinstance(part, dict)
    ]
    return [path for path in named if path and isinstance(path, str)]


def _sub_agent(call: ToolCall) -> SubAgentStarted:
    given = call.input if isinstance(call.input, dict) else {}
    name = given.get("subagent_type") or given.get("name") or "agent"
    return SubAgentStarted(name=str(name), description=str(given.get("description") or ""))
