"""The wire format of GitHub Copilot's SDK: the fold over the events of one session.

An event is a JSON object with `type`, `data` and, for a sub-agent, `agentId`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, tzinfo

from cuggino.agents.base.calls import Call
from cuggino.agents.base.failure import interrupted
from cuggino.agents.base.program import encodable
from cuggino.agents.base.quota import quota_used, time_or_none
from cuggino.agents.base.reader import Session
from cuggino.agents.base.refusals import judge, judge_answer
from cuggino.agents.base.wire import (
    Json,
    Pieces,
    count_or_zero,
    dict_or_empty,
    failed_servers,
    is_number,
    media_texts,
    output_text,
    shown,
    text_or_none,
)
from cuggino.agents.copilot.failure import DIALECT, refusal_of
from cuggino.agents.copilot.tools import TOOLS
from cuggino.errors import LlmSessionError
from cuggino.events import (
    AgentMessage,
    LlmAgentEvent,
    MessageDelta,
    PingEvent,
    RateLimited,
    SessionEnded,
    Steered,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)

PROGRAM = "copilot"


class CopilotSession(Session):
    """The fold over one session: feed it every event, then end it once.

    `servers` are the names of the MCP servers, `resumed` is the id of a resumed session; a new one
    reports its id.

    The session is over (`is_over`) when the program has become idle: no sub-agent and no shell is
    running any more.
    """

    def __init__(
        self, *, servers: Iterable[str] = (), resumed: str | None = None, zone: tzinfo = UTC
    ) -> None:
        super().__init__()
        self.is_over = False
        self._servers = tuple(servers)
        self._resumed = resumed
        self._zone = zone
        self._begun = False
        self._seen: set[str] = set()
        """Ids of the events so far: one may be sent twice."""
        self._error: Json | None = None
        """The last error, unless the model answered after it."""
        self._interrupted = False
        self._paid: set[str] = set()
        """The quotas that are used up while work continues, paid for."""
        self._misread = False
        self._calls: dict[str, str] = {}
        """The call that started each sub-agent."""
        self._pieces = Pieces()
        self._said: list[str] = []
        """A person's messages that the model has not received yet."""

    def say(self, text: str) -> None:
        """Expect this message of a person among the events."""
        self._said.append(text)

    def feed(self, raw: Json, *, now: float) -> list[LlmAgentEvent]:
        """Return the events of this one; `now` is in seconds since the epoch.

        Text is streamed as `MessageDelta`s, which are signs of life as well; reasoning is not.
        Never raises.
        """
        data = dict_or_empty(raw.get("data"))
        agent = text_or_none(raw.get("agentId"))
        if raw.get("type") == "assistant.message_delta":
            return [*self._delta(data, agent), PingEvent(timestamp=now)]
        name = text_or_none(raw.get("id"))
        if name is not None:
            if name in self._seen:
                return [PingEvent(timestamp=now)]
            self._seen.add(name)
        events = self._read(str(raw.get("type")), data, agent)
        return events if events is not None else [PingEvent(timestamp=now)]

    def end(
        self, failure: LlmSessionError | None, *, duration: float, now: float
    ) -> tuple[SessionEnded, LlmSessionError | None]:
        """Return how it ended; `failure` is an external cause and takes precedence.

        The program does not report US dollars.
        """
        error = failure
        if error is None and self._interrupted:
            error = interrupted(PROGRAM)
        if error is None:
            moment = datetime.fromtimestamp(now, UTC)
            if self._error is not None:
                error = judge(refusal_of(self._error), DIALECT, now=moment, zone=self._zone)
            else:
                error = judge_answer(self.answer, DIALECT, now=moment, zone=self._zone)
        return self.ended(error, duration=duration), error

    def _read(self, kind: str, data: Json, agent: str | None) -> list[LlmAgentEvent] | None:
        """Return the events, or None for a mere sign of life."""
        match kind:
            case "session.start" | "session.resume" if agent is None:
                self.session_id = text_or_none(data.get("sessionId")) or self._resumed
                return [SystemMessage(text="Session initialized")]
            case "session.mcp_servers_loaded":
                return [*failed_servers(data.get("servers"))] or None
            case "user.message" if agent is None:
                echoed, self._begun = not self._begun, True
                text = text_or_none(data.get("content"))
                if not echoed and (said := self._heard(text)) is not None:
                    return [Steered(text=said, to="session")]
                return [] if echoed or not text else [UserMessage(text=text)]
            case "assistant.turn_start" if agent is None:
                self.turns += 1
            case "assistant.message":
                return self._message(data, agent)
            case "assistant.reasoning":
                text = text_or_none(data.get("content"))
                return [Thinking(text=text)] if text else None
            case "assistant.usage":
                return self._count(data)
            case "assistant.turn_retry":
                reason = text_or_none(data.get("reason")) or "unknown"
                return [SystemMessage(text=f"Retrying: {reason.replace('_', ' ')}")]
            case "tool.execution_start":
                return self._tool_call(data)
            case "tool.execution_complete":
                return [_tool_result(data)]
            case "session.warning":
                text = text_or_none(data.get("message"))
                return [SystemMessage(text=text)] if text else None
            case "session.error":
                return self._failed(data, agent)
            case "sdk.unreadable" if not self._misread:
                self._misread = True
                return [SystemMessage(text=f"An event could not be read: {data.get('error')}")]
            case "abort" if agent is None:
                self._interrupted = True
            case "session.idle" if agent is None and (self._begun or self._error):
                self.is_over = True
                self._interrupted = self._interrupted or data.get("aborted") is True
            case "subagent.started" | "subagent.completed" | "subagent.failed":
                return self._sub_agent(kind, data, agent)
            case _:
                pass
        return None

    def _heard(self, text: str | None) -> str | None:
        """Return the person's message that this text is, if it is one."""
        for said in self._said:
            if encodable(said) == text:
                self._said.remove(said)
                return said
        return None

    def _message(self, data: Json, agent: str | None) -> list[LlmAgentEvent] | None:
        parent = self._parent(data, agent)
        if parent is None:
            self._error = None
        text = text_or_none(data.get("content"))
        if not text:
            return None
        if parent is None:
            self.answer = text
        message_id = text_or_none(data.get("messageId"))
        told: list[LlmAgentEvent] = []
        if message_id and (left := self._pieces.end(message_id)):
            told.append(MessageDelta(text=left, message_id=message_id, parent_tool_use_id=parent))
        return [*told, AgentMessage(text=text, message_id=message_id, parent_tool_use_id=parent)]

    def _delta(self, data: Json, agent: str | None) -> list[LlmAgentEvent]:
        message_id, piece = text_or_none(data.get("messageId")), data.get("deltaContent")
        text = self._pieces.add(message_id, piece) if isinstance(piece, str) else ""
        if not text or not message_id:
            return []
        parent = self._parent(data, agent)
        return [MessageDelta(text=text, message_id=message_id, parent_tool_use_id=parent)]

    def _parent(self, data: Json, agent: str | None) -> str | None:
        told = text_or_none(data.get("parentToolCallId"))
        return told or (self._calls.get(agent, agent) if agent is not None else None)

    def _tool_call(self, data: Json) -> list[LlmAgentEvent]:
        call = call_of(data, self._servers)
        call_id = text_or_none(data.get("toolCallId")) or ""
        return [ToolCall(name=call.tool, input=shown(call.input), id=call_id)]

    def _sub_agent(self, kind: str, data: Json, agent: str | None) -> list[LlmAgentEvent]:
        """Report a sub-agent as a message: in the background it ends long after its call."""
        call = text_or_none(data.get("toolCallId"))
        name = text_or_none(data.get("agentDisplayName")) or text_or_none(data.get("agentName"))
        told = f"Sub-agent {name or 'unknown'}"
        if kind == "subagent.started":
            if agent is not None and call is not None:
                self._calls[agent] = call
            what = text_or_none(data.get("agentDescription"))
            return [SystemMessage(text=f"{told} started" + (f": {what}" if what else ""))]
        if kind == "subagent.completed":
            return [SystemMessage(text=f"{told} completed")]
        why = text_or_none(data.get("error"))
        return [SystemMessage(text=f"{told} failed" + (f": {why}" if why else ""))]

    def _failed(self, data: Json, agent: str | None) -> list[LlmAgentEvent]:
        if agent is None:
            self._error = data
        return [SystemMessage(text=text_or_none(data.get("message")) or "Unknown error")]

    def _count(self, data: Json) -> list[LlmAgentEvent]:
        """Count the tokens of one request; those of the cache are part of the input."""
        read = count_or_zero(data.get("cacheReadTokens"))
        written = count_or_zero(data.get("cacheWriteTokens"))
        given = count_or_zero(data.get("inputTokens"))
        self.model = text_or_none(data.get("model")) or self.model
        used = self.usage or Usage()
        usage = Usage(
            input_tokens=used.input_tokens + max(0, given - read - written),
            output_tokens=used.output_tokens + count_or_zero(data.get("outputTokens")),
            cache_read_tokens=used.cache_read_tokens + read,
            cache_creation_tokens=used.cache_creation_tokens + written,
        )
        return [*self.used(usage), *self._quota(data)]

    def _quota(self, data: Json) -> Iterator[LlmAgentEvent]:
        """Yield the used share of each quota, and once that work beyond one is paid for."""
        for name, value in dict_or_empty(data.get("quotaSnapshots")).items():
            quota = dict_or_empty(value)
            left = quota.get("remainingPercentage")
            if not is_number(left) or quota.get("isUnlimitedEntitlement") is True:
                continue
            resets_at = time_or_none(quota.get("resetDate"))
            if (window := quota_used(name, 1 - left / 100, resets_at)) is not None:
                yield window
            if left <= 0 and count_or_zero(quota.get("overage")) and name not in self._paid:
                self._paid.add(name)
                yield RateLimited(status="rejected", limit=name, resets_at=resets_at, overage=True)


def call_of(data: Json, servers: Iterable[str] = ()) -> Call:
    """Return the call of a `tool.execution_start`."""
    server, tool = text_or_none(data.get("mcpServerName")), text_or_none(data.get("mcpToolName"))
    return TOOLS.call(
        text_or_none(data.get("toolName")) or "unknown",
        data.get("arguments"),
        server=(server, tool) if server and tool else None,
        servers=servers,
    )


def _tool_result(data: Json) -> ToolResult:
    result, error = dict_or_empty(data.get("result")), dict_or_empty(data.get("error"))
    exit_code = dict_or_empty(data.get("shellExecution")).get("exitCode")
    is_error = data.get("success") is not True or (isinstance(exit_code, int) and exit_code != 0)
    text = text_or_none(result.get("content")) or text_or_none(error.get("message"))
    files = media_texts(result.get("contents")) or media_texts(result.get("binaryResultsForLlm"))
    output = "\n".join([output_text(text), *files] if text else files)
    name = text_or_none(data.get("toolCallId")) or "unknown"
    return ToolResult(name=name, output=output, is_error=is_error)
