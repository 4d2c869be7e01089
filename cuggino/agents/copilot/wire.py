"""The wire format of GitHub Copilot's SDK: the fold over the events of one session.

An event is a JSON object with `type`, `data` and, for a sub-agent, `agentId`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Unpack

from cuggino.agents.base.calls import Call
from cuggino.agents.base.failure import interrupted
from cuggino.agents.base.program import encodable
from cuggino.agents.base.quota import quota_used, time_or_none
from cuggino.agents.base.reader import Ending, ReaderOptions, Session
from cuggino.agents.base.wire import (
    Json,
    Pieces,
    count_or_zero,
    deltas,
    dict_or_empty,
    failed_servers,
    is_number,
    media_texts,
    output_text,
    shown,
    text_or_none,
    tokens_of,
)
from cuggino.agents.copilot.failure import DIALECT, refusal_of
from cuggino.agents.copilot.tools import TOOLS
from cuggino.domain import added_usage
from cuggino.errors import LlmSessionError
from cuggino.events import (
    AgentMessage,
    LlmAgentEvent,
    PingEvent,
    RateLimited,
    Steered,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
)

PROGRAM = "copilot"


class Told(NamedTuple):
    """What the program has reported about its session."""

    has_begun: bool = False
    """True once it has repeated its prompt."""
    is_over: bool = False
    is_interrupted: bool = False
    error: Json | None = None
    """The last error, unless the model answered after it."""
    is_misread: bool = False
    """True if an event could not be read."""
    paid: frozenset[str] = frozenset()
    """The quotas that are used up while work continues, paid for."""


class CopilotSession(Session):
    """The fold over the events of one session.

    `servers` are the names of the MCP servers, `resumed` is the id of a resumed session; a new one
    reports its id. US dollars are not reported.
    """

    dialect = DIALECT

    def __init__(
        self,
        *,
        program: str = PROGRAM,
        servers: Iterable[str] = (),
        resumed: str | None = None,
        **given: Unpack[ReaderOptions],
    ) -> None:
        super().__init__(program=program, **given)
        self._told = Told()
        self._servers = tuple(servers)
        self._resumed = resumed
        self._seen: set[str] = set()
        """Ids of the events so far: one may be sent twice."""
        self._calls: dict[str, str] = {}
        """The call that started each sub-agent."""
        self._pieces = Pieces()
        self._said: list[str] = []
        """A person's messages that the model has not received yet."""

    @property
    def is_over(self) -> bool:
        """True when the program is idle: no sub-agent and no shell is running any more."""
        return self._told.is_over

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

    def failure(self, ending: Ending) -> LlmSessionError | None:
        if self._told.is_interrupted:
            return interrupted(ending.program)
        if self._told.error is not None:
            return ending.refused(refusal_of(self._told.error))
        return ending.answered(self.known.answer)

    def _read(self, kind: str, data: Json, agent: str | None) -> list[LlmAgentEvent] | None:
        """Return the events, or None for a mere sign of life."""
        match kind:
            case "session.start" | "session.resume" if agent is None:
                session_id = text_or_none(data.get("sessionId")) or self._resumed
                self.known = self.known._replace(session_id=session_id)
                return [SystemMessage(text="Session initialized")]
            case "session.mcp_servers_loaded":
                return [*failed_servers(data.get("servers"))] or None
            case "user.message" if agent is None:
                echoed = not self._told.has_begun
                self._told = self._told._replace(has_begun=True)
                text = text_or_none(data.get("content"))
                if not echoed and (said := self._heard(text)) is not None:
                    return [Steered(text=said, to="session")]
                return [] if echoed or not text else [UserMessage(text=text)]
            case "assistant.turn_start" if agent is None:
                self.known = self.known._replace(turns=self.known.turns + 1)
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
            case "sdk.unreadable" if not self._told.is_misread:
                self._told = self._told._replace(is_misread=True)
                return [SystemMessage(text=f"An event could not be read: {data.get('error')}")]
            case "abort" if agent is None:
                self._told = self._told._replace(is_interrupted=True)
            case "session.idle" if agent is None and (self._told.has_begun or self._told.error):
                is_interrupted = self._told.is_interrupted or data.get("aborted") is True
                self._told = self._told._replace(is_over=True, is_interrupted=is_interrupted)
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
        text = text_or_none(data.get("content"))
        if parent is None:
            self.known = self.known._replace(answer=text or self.known.answer)
            self._told = self._told._replace(error=None)
        if not text:
            return None
        message_id = text_or_none(data.get("messageId"))
        left = deltas(self._pieces.end(message_id), message_id, parent)
        return [*left, AgentMessage(text=text, message_id=message_id, parent_tool_use_id=parent)]

    def _delta(self, data: Json, agent: str | None) -> list[LlmAgentEvent]:
        message_id, piece = text_or_none(data.get("messageId")), data.get("deltaContent")
        text = self._pieces.add(message_id, piece) if isinstance(piece, str) else ""
        return [*deltas(text, message_id, self._parent(data, agent))]

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
            self._told = self._told._replace(error=data)
        return [SystemMessage(text=text_or_none(data.get("message")) or "Unknown error")]

    def _count(self, data: Json) -> list[LlmAgentEvent]:
        """Count the tokens of one request."""
        tokens = tokens_of(
            data,
            sent="inputTokens",
            written="outputTokens",
            read="cacheReadTokens",
            created="cacheWriteTokens",
        )
        model = text_or_none(data.get("model")) or self.known.model
        self.known = self.known._replace(model=model)
        return [*self.used(added_usage(self.known.usage, tokens)), *self._quota(data)]

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
            if left <= 0 and count_or_zero(quota.get("overage")) and name not in self._told.paid:
                self._told = self._told._replace(paid=self._told.paid | {name})
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
