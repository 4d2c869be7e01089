"""The wire format of OpenCode: parts of messages as events, and the fold over one session.

There are two kinds of lines: those of `opencode run --format json`, which report completed parts,
and those of our plugin (`opencode.plugin`), which report the same earlier, and more. Whichever
comes first counts; a run without the plugin is supported too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, Unpack

from cuggino.agents.base.calls import Call
from cuggino.agents.base.reader import Ending, LineReader, ReaderOptions
from cuggino.agents.base.watch import Watch, same_text
from cuggino.agents.base.wire import (
    Json,
    count_or_zero,
    dict_or_empty,
    is_number,
    media_texts,
    output_text,
    shown,
    text_or_none,
)
from cuggino.agents.opencode.failure import (
    DIALECT,
    broken_off,
    elsewhere,
    refusal_of,
    says_nothing,
    waits_too_long,
)
from cuggino.agents.opencode.tools import call_of
from cuggino.domain import added_usage
from cuggino.errors import AgentFailed, LlmSessionError
from cuggino.events import (
    AgentMessage,
    LlmAgentEvent,
    McpServerFailed,
    MessageDelta,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)


@dataclass(slots=True)
class _Text:
    """A text part being written."""

    message: str | None
    parent: str | None
    waiting: str = ""
    """Text that no message contains yet."""
    told: int = 0
    """Number of characters that messages contain."""


class Parts:
    """Parts of messages as events; each part has its events once, however often it is reported.

    `servers` are the names of the MCP servers. Never raises.
    """

    def __init__(self, *, servers: tuple[str, ...] = (), guard: Watch | None = None) -> None:
        self.servers = servers
        self._guard = guard
        self._seen: set[tuple[str, str]] = set()
        """The texts, calls, results and steps so far, by their ids."""
        self._texts: dict[str, _Text] = {}
        """Text parts being written."""
        self._unread: set[str] = set()
        """Messages that are not the model's: the user's, and summaries of the session."""
        self._children: dict[str, str] = {}
        """The call that started each sub-agent's session."""
        self._tasks: list[str] = []
        self.answer = ""
        """The last text of the main session."""

    def is_new(self, kind: str, name: str) -> bool:
        """Return whether this is the first of its kind with this id."""
        is_new = (kind, name) not in self._seen
        self._seen.add((kind, name))
        return is_new

    def message(self, info: Json) -> None:
        if info.get("role") != "assistant" or info.get("summary") is True:
            self._unread.add(text_or_none(info.get("id")) or "")

    def child(self, session: str | None) -> None:
        """Record a sub-agent's session, presumably started by the last task."""
        if session is not None:
            self._children.setdefault(session, self._tasks[-1] if self._tasks else session)

    def is_child(self, info: Json) -> bool:
        return text_or_none(info.get("sessionID")) in self._children

    def parent(self, session: str | None, main: str | None) -> str | None:
        """Return the call that started a sub-agent's session; None for the main session `main`."""
        if session is None or session == main or (main is None and session not in self._children):
            return None
        return self._children.get(session, session)

    def read(self, part: Json, parent: str | None) -> list[LlmAgentEvent]:
        name = text_or_none(part.get("id")) or ""
        text = text_or_none(part.get("text"))
        message = text_or_none(part.get("messageID"))
        match part.get("type"):
            case "text" | "reasoning" as kind if text is not None:
                if message in self._unread or ("text", name) in self._seen:
                    return []
                if not dict_or_empty(part.get("time")).get("end"):
                    if kind == "text":
                        self._texts.setdefault(name, _Text(message, parent))
                    return []
                self._seen.add(("text", name))
                if kind == "reasoning":
                    return [Thinking(text=text)] if text else []
                told = self._texts.pop(name, None)
                rest = text[told.told :] if told else text
                if not rest:
                    return []
                self.answer = text if parent is None else self.answer
                return [AgentMessage(text=rest, message_id=message, parent_tool_use_id=parent)]
            case "tool":
                return self._tool(part, parent)
            case _:
                return []

    def delta(self, given: Json, parent: str | None) -> list[LlmAgentEvent]:
        """Return the events of the next piece of a text."""
        text, message = text_or_none(given.get("delta")), text_or_none(given.get("messageID"))
        name = text_or_none(given.get("partID"))
        written = self._texts.get(name) if name is not None else None
        if not text or message is None or written is None:
            return []
        written.waiting += text
        return [MessageDelta(text=text, message_id=message, parent_tool_use_id=parent)]

    def call(self, part: Json, parent: str | None) -> list[LlmAgentEvent]:
        """Return the events of a call, once; `part` has `tool`, `callID` and `state.input`."""
        call_id = text_or_none(part.get("callID")) or ""
        if not self.is_new("call", call_id) and call_id:
            return []
        call = self._common(part)
        if call.tool == "Task":
            self._tasks.append(call_id)
        said = self._said_before(parent)
        return [*said, ToolCall(name=call.tool, input=shown(call.input), id=call_id)]

    def _said_before(self, parent: str | None) -> list[LlmAgentEvent]:
        """Return the text so far.

        The program completes a text only after the calls that follow it.
        """
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
        return call_of(text_or_none(part.get("tool")) or "unknown", given, servers=self.servers)

    def _tool(self, part: Json, parent: str | None) -> list[LlmAgentEvent]:
        state = dict_or_empty(part.get("state"))
        status = state.get("status")
        if status not in ("running", "completed", "error"):
            return []
        if dict_or_empty(state.get("time")).get("compacted"):
            return []  # of an earlier turn, whose output was just dropped
        events = self.call(part, parent)
        call_id = text_or_none(part.get("callID")) or ""
        metadata = dict_or_empty(state.get("metadata"))
        if part.get("tool") == "task" and (session := text_or_none(metadata.get("sessionId"))):
            self._children[session] = call_id
        if status == "running" or (not self.is_new("result", call_id) and call_id):
            return events
        if status == "completed" and self._guard:
            self._guard.ran(text_or_none(part.get("tool")) or "a tool", self._guard.find(call_id))
        told = (state.get("output"), state.get("error"))
        text = next((output_text(value) for value in told if isinstance(value, str)), "")
        files = media_texts(state.get("attachments"))
        output = "\n".join([text, *files] if text else files)
        failed = status == "error" or metadata.get("exit") not in (None, 0)
        failed = failed or part.get("tool") == "invalid"
        result = ToolResult(name=call_id or "unknown", output=output, is_error=failed)
        return [*events, result]


def broken_servers(status: Any) -> list[LlmAgentEvent]:
    """Return one event for each MCP server that failed to start."""
    return [
        McpServerFailed(server=str(name))
        for name, told in dict_or_empty(status).items()
        if dict_or_empty(told).get("status") == "failed"
    ]


MOST_BREAKS = 3
"""Maximum number of consecutive answers that break off; the program would retry indefinitely."""


def _model(info: Json) -> str | None:
    """Return the provider and the model of a message."""
    names = text_or_none(info.get("providerID")), text_or_none(info.get("modelID"))
    return "/".join(name for name in names if name) if names[1] else None


_LINES = frozenset({"text", "reasoning", "tool_use", "step_start", "step_finish"})
_FINISHED = frozenset({"stop", "length", "content-filter"})


class Told(NamedTuple):
    """What the program has reported about its run."""

    has_begun: bool = False
    cut: LlmSessionError | None = None
    """Why the session must end, if the program would go on without an end."""
    reason: str | None = None
    """The finish reason of the last step."""
    breaks: int = 0
    """Answers in a row that broke off."""
    error: Json | None = None
    """The last error, unless the model answered after it."""


def finish(told: Told, part: Json) -> Told:
    """Return what is known after a step of the main session."""
    reason = text_or_none(part.get("reason")) or "unknown"
    broke = reason in ("unknown", "other", "error")
    return told._replace(error=None, reason=reason, breaks=told.breaks + 1 if broke else 0)


class OpenCodeSession(LineReader):
    """The fold over one run of the program; see `LineReader`.

    `servers` are the names of the MCP servers, `resumed` is the id of a resumed session; a new one
    reports its id.
    """

    dialect = DIALECT

    def __init__(
        self,
        *,
        program: str = "opencode",
        servers: Iterable[str] = (),
        resumed: str | None = None,
        **given: Unpack[ReaderOptions],
    ) -> None:
        super().__init__(program=program, resumed=resumed, **given)
        self._told = Told()
        self._parts = Parts(servers=tuple(servers), guard=self._watch)

    @property
    def breach(self) -> LlmSessionError | None:
        """The error for which the session must end immediately, or None."""
        return super().breach or self._told.cut

    def read(self, raw: Json, *, now: float) -> list[LlmAgentEvent] | None:
        kind = text_or_none(raw.get("type"))
        events: list[LlmAgentEvent] = []
        if kind == "cuggino":
            events = self._told_by_plugin(raw, now)
        elif kind in _LINES or kind == "error":
            self._know(text_or_none(raw.get("sessionID")))
            if kind in _LINES and self._watch:
                self._watch.begin()
            if kind == "error":
                events = self._failed(raw.get("error"), self.known.session_id)
            else:
                events = self._part(dict_or_empty(raw.get("part")))
        if kind in _LINES or (kind == "cuggino" and "event" in raw):
            events = [*self._begin(), *events]
        return events or None

    def failure(self, ending: Ending) -> LlmSessionError | None:
        error, reason = self._told.error, self._told.reason
        if error is not None:
            return ending.refused(refusal_of(error, now=ending.now))
        if ending.exit_code == 0 and reason in _FINISHED:
            return ending.answered(self._parts.answer)
        if ending.exit_code == 0 and reason is not None:
            return AgentFailed(f"{ending.program} stopped after a tool call", reason="crash")
        return ending.without_result(answer=self._parts.answer)

    def _begin(self) -> list[LlmAgentEvent]:
        if self._told.has_begun:
            return []
        self._told = self._told._replace(has_begun=True)
        return [SystemMessage(text="Session initialized")]

    def _know(self, session: str | None) -> None:
        if self.known.session_id is None and session is not None:
            self.known = self.known._replace(session_id=session)

    def _cut(self, error: LlmSessionError | None) -> None:
        """End the session with this error, if there is one."""
        self._told = self._told._replace(cut=self._told.cut or error)

    def _told_by_plugin(self, raw: Json, now: float) -> list[LlmAgentEvent]:
        if folder := text_or_none(raw.get("elsewhere")):
            self._cut(elsewhere(folder))
        if isinstance(servers := raw.get("servers"), list):
            self._parts.servers += tuple(name for name in servers if isinstance(name, str))
        if self._watch and "canary" in raw:
            self._watch.hear(raw, call=None)
        if "mcp" in raw:
            return broken_servers(raw["mcp"])
        if "verdict" in raw:
            call = dict_or_empty(raw.get("call"))
            events = self._parts.call(call, self._parent(call))
            if self._watch:
                own = dict_or_empty(raw["verdict"])
                name = text_or_none(own.get("tool_use_id")) or ""
                events += self._watch.hear(own, name, call=name)
            return events
        given = dict_or_empty(raw.get("properties"))
        session = text_or_none(given.get("sessionID"))
        match raw.get("event"):
            case "session.created":
                info = dict_or_empty(given.get("info"))
                self._parts.child(text_or_none(info.get("id")))
            case "message.updated":
                info = dict_or_empty(given.get("info"))
                self._parts.message(info)
                if info.get("role") == "assistant" and not self._parts.is_child(info):
                    self._know(text_or_none(info.get("sessionID")))
                    self.known = self.known._replace(model=_model(info) or self.known.model)
            case "message.part.updated":
                return self._part(dict_or_empty(given.get("part")))
            case "message.part.delta":
                return self._parts.delta(given, self._parent(given))
            case "session.status":
                return self._waits(dict_or_empty(given.get("status")), now)
            case "session.error":
                return self._failed(given.get("error"), session)
            case _:
                pass
        return []

    def _parent(self, part: Json) -> str | None:
        return self._parts.parent(text_or_none(part.get("sessionID")), self.known.session_id)

    def _part(self, part: Json) -> list[LlmAgentEvent]:
        if part.get("type") == "step-finish":
            return self._finished(part)
        return self._parts.read(part, self._parent(part))

    def _finished(self, part: Json) -> list[LlmAgentEvent]:
        name = text_or_none(part.get("id")) or same_text(part)
        if not self._parts.is_new("step", name):
            return []
        known = self.known
        if self._parent(part) is None:
            self._told = finish(self._told, part)
            is_cut = self._told.reason == "length"
            known = known._replace(turns=known.turns + 1, is_truncated=is_cut)
            if self._told.breaks >= MOST_BREAKS:
                self._cut(broken_off(self._told.breaks))
        # A model without known prices is reported to cost nothing.
        cost = part.get("cost")
        paid = (known.cost_usd or 0.0) + (max(0.0, cost) if is_number(cost) else 0.0)
        self.known = known._replace(cost_usd=paid or None)
        tokens = dict_or_empty(part.get("tokens"))
        cache = dict_or_empty(tokens.get("cache"))
        usage = Usage(
            input_tokens=count_or_zero(tokens.get("input")),
            output_tokens=sum(count_or_zero(tokens.get(kind)) for kind in ("output", "reasoning")),
            cache_read_tokens=count_or_zero(cache.get("read")),
            cache_creation_tokens=count_or_zero(cache.get("write")),
        )
        return self.used(added_usage(self.known.usage, usage))

    def _waits(self, status: Json, now: float) -> list[LlmAgentEvent]:
        message = text_or_none(status.get("message")) or "no answer from the API"
        moment, until = datetime.fromtimestamp(now, UTC), _time(status.get("next"))
        attempt = count_or_zero(status.get("attempt"))
        self._cut(
            waits_too_long(message, until or moment, attempt=attempt, now=moment, zone=self._zone())
        )
        seconds = max(1, round((until - moment).total_seconds())) if until else 1
        times = attempt or "?"
        return [SystemMessage(text=f"Retrying (attempt {times}, in {seconds}s): {message}")]

    def _failed(self, error: Any, session: str | None) -> list[LlmAgentEvent]:
        told, before = dict_or_empty(error), self._told.error
        if None in (session, self.known.session_id) or session == self.known.session_id:
            if told == before or (before and says_nothing(told)):
                return []
            self._told = self._told._replace(error=told)
        data = dict_or_empty(told.get("data"))
        text = text_or_none(data.get("message")) or text_or_none(told.get("name"))
        return [SystemMessage(text=text or "Unknown error")]


def _time(milliseconds: Any) -> datetime | None:
    if not is_number(milliseconds):
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
