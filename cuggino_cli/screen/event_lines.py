"""The lines of a run: each event in words, with the project's paths and the agent's text."""

from __future__ import annotations

from collections import deque
from datetime import datetime

from cuggino import events as ev
from cuggino.runs.words import SILENT, format_duration, tool_text, words
from cuggino_cli.screen.format import format_event
from cuggino_cli.screen.fragments import Fragment, Verbosity
from cuggino_cli.screen.messages import Partial
from cuggino_cli.screen.text import clip, first_line

_REASON = 200
_LAST = 8
"""The messages that the result of a session may consist of."""


class EventLines:
    """The lines of one run, in the order of its events.

    Unlike `format_event`, it knows what came before: which tool call has failed, what a stage has
    taken, and that a wait has been reported.

    Args:
        project: the folder that paths are relative to.
        messages: the least verbosity that shows the agent's messages.
    """

    def __init__(self, project: str = "", *, messages: Verbosity = Verbosity.NORMAL) -> None:
        self._prefix = f"{project.rstrip('/')}/" if project else ""
        self._messages = messages
        self._partial = Partial()
        self._printed: deque[str] = deque(maxlen=_LAST)
        """The last messages of the session that were printed, without spaces."""
        self._tools: dict[str, str] = {}
        """The names of running tool calls by id."""
        self._denied: set[str] = set()
        self._last: dict[type[ev.Event], ev.Event] = {}
        self._waits = False
        self._stage = ""
        self._stage_began: datetime | None = None

    def repeats(self, event: ev.Event) -> bool:
        """Return whether a wait, a list or a phase is only reported again; the status has it."""
        if isinstance(event, SILENT):
            return False
        waited, self._waits = self._waits, isinstance(event, ev.QuotaWaiting)
        match event:
            case ev.QuotaWaiting():
                return waited
            case ev.DeliverablesListed() | ev.JobsCounted() | ev.PlanBuildPhaseStarted():
                before, self._last[type(event)] = self._last.get(type(event)), event
                if isinstance(event, ev.PlanBuildPhaseStarted):  # several agents verify
                    is_same = (
                        isinstance(before, ev.PlanBuildPhaseStarted) and before.phase == "verify"
                    )
                    return is_same and event.phase == "verify"
                return event == before
            case _:
                return False

    def fragments(
        self, event: ev.Event, verbosity: Verbosity, *, at: datetime
    ) -> list[Fragment] | None:
        """Return the event as fragments; None shows nothing."""
        match event:
            case ev.ToolResult():
                return self._result(event, verbosity)
            case ev.ToolCall():
                return self._call(event, verbosity)
            case ev.AgentMessage() | ev.MessageDelta():
                return self._message(event, verbosity)
            case ev.LlmTerminalMarkerEvent():
                return self._marker(event, verbosity, at)
            case ev.PlanningStart() | ev.ImplementingStart() | ev.ReviewingStart():
                spoken = words(event)
                self._stage = spoken.title if spoken is not None else ""
                self._stage_began = at
                self._printed.clear()
            case ev.DeliverSessionEnded():
                event = self.without_printed(event)
            case ev.StageCost():
                self._stage = ""
            case ev.GuardDenied(tool_use_id=call):
                self._denied.add(call)
            case ev.SessionEnded():
                self._tools.clear()
                self._denied.clear()
            case _:
                pass
        return format_event(event, verbosity=verbosity)

    def without_printed(self, event: ev.DeliverSessionEnded) -> ev.DeliverSessionEnded:
        """Return the end of a session without its last message, if that was printed."""
        printed = "".join(self._printed)
        self._printed.clear()
        if event.outcome == "completed" and _dense(event.message) in printed:
            return event.model_copy(update={"message": ""})
        return event

    def _relative(self, text: str) -> str:
        """Return the text with paths relative to the project."""
        return text.replace(self._prefix, "") if self._prefix else text

    def _call(self, event: ev.ToolCall, verbosity: Verbosity) -> list[Fragment] | None:
        if verbosity < Verbosity.NORMAL:
            return None
        self._tools[event.id] = event.name
        return [Fragment("tool", f"▶ {tool_text(event.name, event.input, self._relative)}")]

    def _result(self, event: ev.ToolResult, verbosity: Verbosity) -> list[Fragment] | None:
        name = self._tools.pop(event.name, "")
        if not event.is_error and verbosity < Verbosity.VERBOSE:
            return None
        shown = format_event(event, verbosity=verbosity)
        if not event.is_error or verbosity < Verbosity.NORMAL or event.name in self._denied:
            return shown
        if shown is not None:
            return [Fragment("failure", f"✗ {name or 'tool'} failed\n"), *shown]
        reason = clip(self._relative(first_line(event.output)), _REASON)
        return [
            Fragment("failure", f"✗ {name or 'tool'} failed"),
            Fragment("plain", f": {reason}" if reason else ""),
        ]

    def _message(
        self, event: ev.AgentMessage | ev.MessageDelta, verbosity: Verbosity
    ) -> list[Fragment] | None:
        """Return the message, with `VERBOSE` by lines as they arrive."""
        if verbosity < self._messages:
            return None
        is_own = event.parent_tool_use_id is None
        if isinstance(event, ev.AgentMessage) and is_own:
            self._printed.append(_dense(event.text))
        if verbosity >= Verbosity.VERBOSE:
            shown = self._partial.read(event)
            return None if shown is None else format_event(shown, verbosity=verbosity)
        if isinstance(event, ev.MessageDelta) or not is_own or not event.text.strip():
            return None
        return [Fragment("plain", event.text.strip("\n"))]

    def _marker(
        self, event: ev.LlmTerminalMarkerEvent, verbosity: Verbosity, at: datetime
    ) -> list[Fragment] | None:
        """Return the marker, below the duration of a stage whose cost is unknown."""
        shown = format_event(event, verbosity=verbosity)
        stage, self._stage = self._stage, ""
        if shown is None or not stage or self._stage_began is None:
            return shown
        seconds = (at - self._stage_began).total_seconds()
        return [Fragment("prose", f"[{stage}] {format_duration(seconds)}"), *shown]


def _dense(text: str) -> str:
    return "".join(text.split())
