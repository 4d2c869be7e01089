"""Spans of one agent session and its tool calls."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from pydantic import JsonValue

from cuggino import events as ev
from cuggino.telemetry.kit import Attributes, Kit
from cuggino.telemetry.metrics import all_input
from cuggino.telemetry.settings import AgentIdentity
from cuggino.telemetry.texts import as_json, plain

if TYPE_CHECKING:
    from opentelemetry.trace import Span

MOST_OPEN_TOOLS = 1000
"""Tool calls of one session that may wait for their results; of more, the oldest is ended."""

_PROVIDERS: Mapping[str, str] = MappingProxyType(
    {
        "claude": "anthropic",
        "codex": "openai",
        "gemini": "gcp.gemini",
        "copilot": "github.copilot",
    }
)


class SessionSpan:
    """The span of an agent session, from its first event to its end."""

    def __init__(self, kit: Kit, agent: AgentIdentity, role: str, parent: Span, *, at: int) -> None:
        self._kit = kit
        self._at = at
        self._attributes = identity(agent)
        self._span = kit.start(
            f"invoke_agent {self._attributes['gen_ai.agent.name']}",
            parent,
            at,
            {**self._attributes, "cuggino.role": role},
        )
        self._tools: dict[str, Span] = {}
        self.cost_usd: float | None = None
        """US dollars so far, if they are known."""
        self.cost_estimated = False
        self._usage: ev.Usage | None = None
        self._message = ""

    def add(self, event: ev.LlmAgentEvent, at: int) -> None:
        """Add an event of the session that is not its end."""
        match event:
            case ev.ToolCall():
                self._begin_tool(event, at)
            case ev.ToolResult(name=call, output=output, is_error=is_error):
                if (tool := self._tools.pop(call, None)) is not None:
                    if self._kit.content is not None:
                        tool.set_attribute("gen_ai.tool.call.result", self._kit.content(output))
                    self._kit.end(tool, at, "tool_error" if is_error else "")
            case ev.GuardDenied(tool_use_id=call):
                if (tool := self._tools.get(call)) is not None:
                    tool.set_attribute("cuggino.guard.denied", True)
            case ev.UsageUpdate(usage=usage):
                self._usage = usage
                self._pay(event)
            case ev.AgentMessage(text=text, parent_tool_use_id=None):
                self._message = text
            case _:
                pass

    def end(self, at: int, ended: ev.SessionEnded | None, error: str = "") -> None:
        """End the session; without `SessionEnded` it was cut off, for the reason `error`."""
        for tool in self._tools.values():
            self._kit.end(tool, at, "unanswered")
        self._tools.clear()
        if ended is not None:
            error = "" if ended.outcome == "completed" else ended.outcome
            self._pay(ended)
            self._usage = ended.usage or self._usage
            self._note("gen_ai.conversation.id", ended.session_id)
            self._note("cuggino.session.turns", ended.num_turns)
        self._note("cuggino.cost_usd", self.cost_usd)
        self._note("cuggino.cost_estimated", self.cost_estimated or None)
        if self._usage is not None:
            self._span.set_attributes(tokens(self._usage))
        if self._kit.content is not None and self._message:
            part: JsonValue = {"type": "text", "content": self._kit.content(self._message)}
            said: JsonValue = [{"role": "assistant", "parts": [part], "finish_reason": "stop"}]
            self._span.set_attribute("gen_ai.output.messages", as_json(said))
        self._kit.end(self._span, at, error)
        self._kit.metrics.add(
            self._attributes,
            seconds=(at - self._at) / 1e9,
            error=error,
            cost_usd=self.cost_usd,
            cost_estimated=self.cost_estimated,
            usage=self._usage,
        )

    def _pay(self, event: ev.UsageUpdate | ev.SessionEnded) -> None:
        if event.cost_usd is not None:
            self.cost_usd, self.cost_estimated = event.cost_usd, event.cost_estimated
        if event.model is not None:
            self._note("gen_ai.response.model", event.model)

    def _begin_tool(self, call: ev.ToolCall, at: int) -> None:
        name = plain(call.name)
        attributes: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
        }
        if call.id:
            attributes["gen_ai.tool.call.id"] = plain(call.id)
        if self._kit.content is not None:
            given = self._kit.content(as_json(call.input))
            attributes["gen_ai.tool.call.arguments"] = given
        if (before := self._tools.pop(call.id, None)) is not None:
            self._kit.end(before, at, "unanswered")
        elif len(self._tools) >= MOST_OPEN_TOOLS:
            self._kit.end(self._tools.pop(next(iter(self._tools))), at, "unanswered")
        self._tools[call.id] = self._kit.start(f"execute_tool {name}", self._span, at, attributes)

    def _note(self, name: str, value: str | float | None) -> None:
        if value is not None:
            self._span.set_attribute(name, plain(value) if isinstance(value, str) else value)


def identity(agent: AgentIdentity) -> Attributes:
    """Return the attributes that spans and metrics of an agent share."""
    name = plain(agent.name.partition(":")[0]) or "unknown"
    attributes: Attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": _PROVIDERS.get(name, name),
        "gen_ai.agent.name": name,
    }
    if agent.model:
        attributes["gen_ai.request.model"] = plain(agent.model)
    return attributes


def tokens(usage: ev.Usage) -> Attributes:
    """Return the tokens of a session as attributes."""
    return {
        "gen_ai.usage.input_tokens": all_input(usage),
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_creation_tokens,
    }
