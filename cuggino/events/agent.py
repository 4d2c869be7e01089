"""Events of a running agent (CUG-020), without its markers."""

from datetime import datetime
from typing import Literal

from pydantic import JsonValue

from cuggino.events.base import Event, category_guard
from cuggino.events.usage import Usage

SessionOutcome = Literal["completed", "failed", "interrupted", "max_turns", "budget", "quota"]


class LlmAgentEvent(Event, category=True):
    """Category: events of a running agent."""


class SystemMessage(LlmAgentEvent):
    """The agent program reports on itself: started, retrying, ..."""

    text: str


class AgentMessage(LlmAgentEvent):
    """Text of the model. Markers are parsed only in this text."""

    text: str
    message_id: str | None = None
    """Parts with the same id belong to one message and are joined before markers are parsed."""
    parent_tool_use_id: str | None = None
    """Set for the text of a sub-agent, in which markers are ignored."""


class MessageDelta(LlmAgentEvent):
    """Text of the model while it is being written, if the agent streams it.

    The deltas of a part precede its `AgentMessage` and have its `message_id`; joined, they are its
    text. A message without an `AgentMessage` was retracted and may be written again with another
    id. Neither journal nor report records deltas.
    """

    text: str
    message_id: str
    parent_tool_use_id: str | None = None
    """Set for the text of a sub-agent."""


class UserMessage(LlmAgentEvent):
    """Text given to the model: an echoed prompt, or a message injected by the agent program."""

    text: str


class Steered(LlmAgentEvent):
    """The agent has received a message of a person (`SteerAsked`)."""

    text: str
    to: Literal["session", "prompt"]
    """`session`: the running session received it; `prompt`: the prompt of a new one contains it."""


class Thinking(LlmAgentEvent):
    """Reasoning of the model, if shown."""

    text: str


class ToolCall(LlmAgentEvent):
    """The model calls a tool."""

    name: str
    input: JsonValue = None
    id: str = ""
    """Matches the `name` of its `ToolResult`."""


class ToolResult(LlmAgentEvent):
    """The result of a tool call."""

    name: str
    """The `id` of the call (CUG-082), or `unknown`."""
    output: str
    is_error: bool = False


class GuardDenied(LlmAgentEvent):
    """The guard denied a tool call; emitted once per call, before its `ToolResult`."""

    tool: str
    """The tool that was called."""
    tool_use_id: str
    """The `id` of its `ToolCall`."""
    part: str
    """The first part denied: a command, a redirection, a file."""
    reason: str
    """The reason, as given to the agent."""


class McpServerFailed(LlmAgentEvent):
    """An MCP server of the session did not start, so its tools are missing."""

    server: str
    """Its name in the settings."""


class PingEvent(LlmAgentEvent):
    """A sign of life while a message is being written."""

    timestamp: float
    """Seconds since the epoch, by the scheduler's clock."""


class RateLimited(LlmAgentEvent):
    """The agent reports a usage limit: near (`allowed_warning`) or reached (`rejected`)."""

    status: str
    resets_at: datetime | None = None
    limit: str | None = None
    """The agent's name of the limit, such as `five_hour`."""


class UsageUpdate(LlmAgentEvent):
    """The usage of the running session so far, if the agent reports it while it works."""

    usage: Usage
    cost_usd: float | None = None
    """US dollars so far; None if the agent reports cost only at the end."""


class SessionEnded(LlmAgentEvent):
    """The last event of an agent's stream: the outcome, cost and duration of the session."""

    outcome: SessionOutcome
    cost_usd: float | None = None
    """US dollars spent by this session alone; None if the agent does not report it."""
    usage: Usage | None = None
    duration: float | None = None
    """Seconds from the start of the program to its end."""
    num_turns: int | None = None
    session_id: str | None = None
    """The id with which the session can be resumed."""


is_llm_agent_event = category_guard(LlmAgentEvent)
