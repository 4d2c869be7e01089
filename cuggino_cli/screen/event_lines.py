"""The lines of a run: each event in words, with the project's paths and the agent's text."""

from __future__ import annotations

import os
from datetime import datetime

from cuggino.events import (
    AgentMessage,
    Event,
    GuardDenied,
    ImplementingStart,
    LlmTerminalMarkerEvent,
    MessageDelta,
    PingEvent,
    PlanningStart,
    QuotaWaiting,
    ReviewingStart,
    SessionEnded,
    StageCost,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolResult,
    UsageUpdate,
    UserMessage,
)
from cuggino.runs.words import format_duration, tool_text, words
from cuggino_cli.screen.format import format_event
from cuggino_cli.screen.fragments import Fragment, Verbosity
from cuggino_cli.screen.partial import Partial, Printed
from cuggino_cli.screen.text import clip, first_line

_REASON = 200
_HIDDEN = (MessageDelta, PingEvent, SystemMessage, Thinking, UsageUpdate, UserMessage)
"""Frequent events that only `VERBOSE` shows."""


def own_words(event: AgentMessage) -> list[Fragment] | None:
    """Return the text of the agent itself, rather than of a sub-agent; None without any."""
    text = event.text.strip("\n")
    if event.parent_tool_use_id is not None or not text.strip():
        return None
    return [Fragment("plain", text)]


class EventLines:
    """The lines of one run, in the order of its events.

    Unlike `format_event`, it knows what came before: which tool call has failed, what a stage has
    taken, and that a wait has been reported.

    Args:
        project: the folder that paths are relative to.
    """

    def __init__(self, *, project: str | os.PathLike[str] | None = None) -> None:
        self._prefix = f"{os.fspath(project).rstrip('/')}/" if project else ""
        self._partial = Partial()
        self._printed = Printed()
        self._tools: dict[str, str] = {}
        """The names of running tool calls by id."""
        self._denied: set[str] = set()
        self._waits = False
        self._stage = ""
        self._stage_began: datetime | None = None

    def fragments(
        self, event: Event, verbosity: Verbosity, *, at: datetime
    ) -> list[Fragment] | None:
        """Return the event as fragments; None shows nothing."""
        if isinstance(event, _HIDDEN) and verbosity < Verbosity.VERBOSE:
            return None
        match event:
            case ToolResult():
                return self._result(event, verbosity)
            case ToolCall():
                return self._call(event, verbosity)
            case _:
                waited, self._waits = self._waits, isinstance(event, QuotaWaiting)
        match event:
            case AgentMessage() | MessageDelta():
                return self._words(event, verbosity)
            case LlmTerminalMarkerEvent():
                return self._marker(event, verbosity, at)
            case _ if waited and self._waits:
                return None  # printed once; the status counts down
            case _:
                self._follow(event, at)
        return format_event(self._printed.read(event), verbosity=verbosity)

    def _follow(self, event: Event, at: datetime) -> None:
        """Note the beginning and the end of stages and sessions."""
        match event:
            case PlanningStart() | ImplementingStart() | ReviewingStart():
                spoken = words(event)
                self._stage = spoken.title if spoken is not None else ""
                self._stage_began = at
            case StageCost():
                self._stage = ""
            case GuardDenied(tool_use_id=call):
                self._denied.add(call)
            case SessionEnded():
                self._tools.clear()
                self._denied.clear()
            case _:
                pass

    def relative(self, text: str) -> str:
        """Return the text with paths relative to the project."""
        return text.replace(self._prefix, "") if self._prefix else text

    def _call(self, event: ToolCall, verbosity: Verbosity) -> list[Fragment] | None:
        if verbosity < Verbosity.NORMAL:
            return None
        self._tools[event.id] = event.name
        return [Fragment("tool", f"▶ {tool_text(event.name, event.input, self.relative)}")]

    def _result(self, event: ToolResult, verbosity: Verbosity) -> list[Fragment] | None:
        name = self._tools.pop(event.name, "")
        if not event.is_error and verbosity < Verbosity.VERBOSE:
            return None
        shown = format_event(event, verbosity=verbosity)
        if not event.is_error or verbosity < Verbosity.NORMAL or event.name in self._denied:
            return shown
        if shown is not None:
            return [Fragment("failure", f"✗ {name or 'tool'} failed\n"), *shown]
        reason = clip(self.relative(first_line(event.output)), _REASON)
        return [
            Fragment("failure", f"✗ {name or 'tool'} failed"),
            Fragment("plain", f": {reason}" if reason else ""),
        ]

    def _words(
        self, event: AgentMessage | MessageDelta, verbosity: Verbosity
    ) -> list[Fragment] | None:
        if isinstance(event, AgentMessage) and verbosity >= Verbosity.NORMAL:
            self._printed.add(event)
        if verbosity >= Verbosity.VERBOSE:
            shown = self._partial.read(event)
            return None if shown is None else format_event(shown, verbosity=verbosity)
        if verbosity < Verbosity.NORMAL or isinstance(event, MessageDelta):
            return None
        return own_words(event)

    def _marker(
        self, event: LlmTerminalMarkerEvent, verbosity: Verbosity, at: datetime
    ) -> list[Fragment] | None:
        """Return the marker, below the duration of a stage whose cost is unknown."""
        shown = format_event(event, verbosity=verbosity)
        stage, self._stage = self._stage, ""
        if shown is None or not stage or self._stage_began is None:
            return shown
        seconds = (at - self._stage_began).total_seconds()
        return [Fragment("prose", f"[{stage}] {format_duration(seconds)}"), *shown]
