"""What an agent says while it works (CUG-020), without its markers."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from cuggino.events.base import Event

SessionOutcome = Literal["completed", "failed", "interrupted", "max_turns", "budget", "quota"]


class LlmAgentEvent(Event, category=True):
    """Category: said by a running agent."""


class SystemMessage(LlmAgentEvent):
    """The agent program speaks about itself: started, retrying, ..."""

    text: str


class AgentMessage(LlmAgentEvent):
    """Text of the model. Only this text is searched for markers."""

    text: str
    message_id: str | None = None
    """Parts with the same id belong to one message, and are joined before markers are read."""
    parent_tool_use_id: str | None = None
    """Set when a sub-agent said it; a sub-agent's text never holds a marker."""


class MessageDelta(LlmAgentEvent):
    """Text of the model while it is being written, as far as the agent tells it.

    The deltas of a part come before its `AgentMessage` and have its `message_id`; joined they are
    its text. A message whose `AgentMessage` never comes was taken back, and may be written anew
    with another id. They are no record: neither journal nor report keep them.
    """

    text: str
    message_id: str
    parent_tool_use_id: str | None = None
    """Set when a sub-agent writes it."""


class UserMessage(LlmAgentEvent):
    """Text given to the model: a prompt echoed, or a message injected by the agent program."""

    text: str


class Thinking(LlmAgentEvent):
    """Reasoning that the model shows."""

    text: str


class ToolCall(LlmAgentEvent):
    """The model calls a tool."""

    name: str
    input: JsonValue = None
    id: str = ""
    """Pairs the call with its `ToolResult`, whose `name` it is."""


class ToolResult(LlmAgentEvent):
    """What a tool answered."""

    name: str
    """The `id` of the call (CUG-082), or `unknown`."""
    output: str
    is_error: bool = False


class GuardDenied(LlmAgentEvent):
    """The guard kept a tool from running; once for each call. Its `ToolResult` follows."""

    tool: str
    """The tool that was called."""
    tool_use_id: str
    """The `id` of its `ToolCall`."""
    part: str
    """What of it was denied first: a command, a redirection, a file."""
    reason: str
    """Why, in the words that the agent was told."""


class PingEvent(LlmAgentEvent):
    """A sign of life while a message is being written."""

    timestamp: float
    """Seconds since the epoch, by the scheduler's clock."""


class RateLimited(LlmAgentEvent):
    """The agent reports a usage limit: near (`allowed_warning`) or met (`rejected`)."""

    status: str
    resets_at: datetime | None = None
    limit: str | None = None
    """Which limit, in the agent's words, such as `five_hour`."""


class Usage(BaseModel):
    """Tokens of a session, as the provider counts them. A value, not an event."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0


class UsageUpdate(LlmAgentEvent):
    """What the running session has used so far, as far as the agent says while it works."""

    usage: Usage
    cost_usd: float | None = None
    """US dollars so far, None when the agent tells them only at its end."""


class SessionEnded(LlmAgentEvent):
    """The last event of an agent's stream: how the session ended and what it took."""

    outcome: SessionOutcome
    cost_usd: float | None = None
    """US dollars spent by this session alone, None when the agent did not say."""
    usage: Usage | None = None
    duration: float | None = None
    """Seconds from the start of the program to its end."""
    num_turns: int | None = None
    session_id: str | None = None
    """With it the session can be resumed."""
