"""The parts of OpenCode's messages as events: texts, thoughts, calls and their results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cuggino.agents.json_values import Json, dict_or_empty, shown, text_or_none
from cuggino.agents.opencode.guard import OpenCodeWatch
from cuggino.agents.opencode.tools import Call, common_call
from cuggino.events import (
    AgentMessage,
    LlmAgentEvent,
    MessageDelta,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolResult,
)


@dataclass(slots=True)
class _Text:
    """A part of text that is being written."""

    message: str | None
    parent: str | None
    waiting: str = ""
    """What of it no message has told yet."""
    told: int = 0
    """How many characters of it messages have told."""


class Parts:
    """Each part gives its events once, however often it is told. Never raises.

    `servers` are the names of the MCP servers.
    """

    def __init__(
        self, *, servers: tuple[str, ...] = (), guard: OpenCodeWatch | None = None
    ) -> None:
        self.servers = servers
        self._guard = guard
        self._done: set[str] = set()
        self._calls: set[str] = set()
        self._results: set[str] = set()
        self._texts: dict[str, _Text] = {}
        """Parts of text that are being written."""
        self._unread: set[str] = set()
        """Messages that the model does not say: the user's, and summaries of the session so far."""
        self._children: dict[str, str] = {}
        """By the session of a sub-agent, the call that started it."""
        self._tasks: list[str] = []

    def message(self, info: Json) -> None:
        """A message begins."""
        if info.get("role") != "assistant" or info.get("summary") is True:
            self._unread.add(text_or_none(info.get("id")) or "")

    def child(self, session: str | None) -> None:
        """A sub-agent's session begins; by the last task that was called, as far as is known."""
        if session is not None:
            self._children.setdefault(session, self._tasks[-1] if self._tasks else session)

    def is_child(self, info: Json) -> bool:
        return text_or_none(info.get("sessionID")) in self._children

    def parent(self, session: str | None, main: str | None) -> str | None:
        """The call whose sub-agent's session this is; None for the main session `main`."""
        if session is None or session == main or (main is None and session not in self._children):
            return None
        return self._children.get(session, session)

    def read(self, part: Json, parent: str | None) -> list[LlmAgentEvent]:
        """The events of this part."""
        name = text_or_none(part.get("id")) or ""
        text = text_or_none(part.get("text"))
        message = text_or_none(part.get("messageID"))
        match part.get("type"):
            case "text" | "reasoning" as kind if text is not None:
                if message in self._unread or name in self._done:
                    return []
                if not dict_or_empty(part.get("time")).get("end"):
                    if kind == "text":
                        self._texts.setdefault(name, _Text(message, parent))
                    return []
                self._done.add(name)
                if kind == "reasoning":
                    return [Thinking(text=text)] if text else []
                told = self._texts.pop(name, None)
                rest = text[told.told :] if told else text
                if not rest:
                    return []
                return [AgentMessage(text=rest, message_id=message, parent_tool_use_id=parent)]
            case "tool":
                return self._tool(part, parent)
            case _:
                return []

    def delta(self, given: Json, parent: str | None) -> list[LlmAgentEvent]:
        """The next piece of a text."""
        text, message = text_or_none(given.get("delta")), text_or_none(given.get("messageID"))
        name = text_or_none(given.get("partID"))
        written = self._texts.get(name) if name is not None else None
        if not text or message is None or written is None or name in self._done:
            return []
        written.waiting += text
        return [MessageDelta(text=text, message_id=message, parent_tool_use_id=parent)]

    def call(self, part: Json, parent: str | None) -> list[LlmAgentEvent]:
        """A call, once; `part` has `tool`, `callID` and `state.input`."""
        call_id = text_or_none(part.get("callID")) or ""
        if call_id and call_id in self._calls:
            return []
        self._calls.add(call_id)
        call = self._common(part)
        if call.tool == "Task":
            self._tasks.append(call_id)
        said = self._said_before(parent)
        return [*said, ToolCall(name=call.tool, input=shown(call.input), id=call_id)]

    def _said_before(self, parent: str | None) -> list[LlmAgentEvent]:
        """What is written by now: the program ends a text only behind the calls that follow it."""
        events: list[LlmAgentEvent] = []
        for text in self._texts.values():
            if text.parent != parent or not text.waiting:
                continue
            events.append(
                AgentMessage(text=text.waiting, message_id=text.message, parent_tool_use_id=parent)
            )
            text.told += len(text.waiting)
            text.waiting = ""
        return events

    def _common(self, part: Json) -> Call:
        given = dict_or_empty(part.get("state")).get("input")
        return common_call(text_or_none(part.get("tool")) or "unknown", given, servers=self.servers)

    def _tool(self, part: Json, parent: str | None) -> list[LlmAgentEvent]:
        state = dict_or_empty(part.get("state"))
        status = state.get("status")
        if status not in ("running", "completed", "error"):
            return []
        if dict_or_empty(state.get("time")).get("compacted"):
            return []  # of an earlier turn: its output was dropped just now
        events = self.call(part, parent)
        call_id = text_or_none(part.get("callID")) or ""
        metadata = dict_or_empty(state.get("metadata"))
        if part.get("tool") == "task" and (session := text_or_none(metadata.get("sessionId"))):
            self._children[session] = call_id
        if status == "running" or (call_id and call_id in self._results):
            return events
        self._results.add(call_id)
        if status == "completed" and self._guard:
            self._guard.ran(call_id, text_or_none(part.get("tool")) or "a tool")
        told = (state.get("output"), state.get("error"))
        output = next((text for text in told if isinstance(text, str)), "")
        failed = status == "error" or metadata.get("exit") not in (None, 0)
        failed = failed or part.get("tool") == "invalid"
        result = ToolResult(name=call_id or "unknown", output=output, is_error=failed)
        return [*events, result]


def broken_servers(status: Any) -> list[LlmAgentEvent]:
    """One message for each MCP server that could not be started."""
    return [
        SystemMessage(text=f"MCP server {name} failed")
        for name, told in dict_or_empty(status).items()
        if dict_or_empty(told).get("status") == "failed"
    ]
