"""What an agent emits all the time: texts, usage, signs of life."""

from cuggino.events.agent import LlmAgentEvent
from cuggino.events.usage import Usage


class SystemMessage(LlmAgentEvent):
    """The agent program reports on itself: started, retrying, ..."""

    text: str


class AgentMessage(LlmAgentEvent):
    """Text of the model. Markers are parsed only in this text."""

    text: str
    message_id: str | None = None
    """Parts with the same id belong to one message and are joined before markers are parsed. In a
    stage, so are messages without an id that hold the lines of one marker."""
    parent_tool_use_id: str | None = None
    """Set for the text of a sub-agent, in which markers are ignored."""


class MessageDelta(LlmAgentEvent):
    """Text of the model while it is being written, if the agent streams it.

    The deltas of a part precede its `AgentMessage` and have its `message_id`; joined, they are its
    text. A message without an `AgentMessage` was retracted and may be written again with another
    id. Neither journal nor report records deltas. Where nobody reads messages before they are
    complete, as without `--verbose` or the loop's `stream`, most deltas are left out.
    """

    text: str
    message_id: str
    parent_tool_use_id: str | None = None
    """Set for the text of a sub-agent."""


class UserMessage(LlmAgentEvent):
    """Text given to the model: an echoed prompt, or a message injected by the agent program."""

    text: str


class Thinking(LlmAgentEvent):
    """Reasoning of the model, if shown."""

    text: str


class PingEvent(LlmAgentEvent):
    """A sign of life while a message is being written, at most every 0.2 seconds."""

    timestamp: float
    """Seconds since the epoch, by the scheduler's clock."""


class UsageUpdate(LlmAgentEvent):
    """The usage of the running session so far, if the agent reports it while it works."""

    usage: Usage
    cost_usd: float | None = None
    """US dollars so far; None if the agent reports cost only at the end."""
    cost_estimated: bool = False
    """True if the cost was computed from the tokens and the price of the model."""
    model: str | None = None
    """The model, if known."""
