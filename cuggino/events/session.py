"""The state of an agent's session: messages of a person, limits, its end."""

from datetime import datetime
from typing import Literal

from cuggino.events.agent import LlmAgentEvent
from cuggino.events.usage import Usage

SessionOutcome = Literal["completed", "failed", "interrupted", "max_turns", "budget", "quota"]


class Steered(LlmAgentEvent):
    """The agent has received a message of a person (`SteerAsked`)."""

    text: str
    to: Literal["session", "prompt"]
    """`session`: the running session received it; `prompt`: the prompt of a new one contains it."""


class McpServerFailed(LlmAgentEvent):
    """An MCP server of the session did not start, so its tools are missing."""

    server: str
    """Its name in the settings."""


class RateLimited(LlmAgentEvent):
    """The agent reports a usage limit: near (`allowed_warning`) or reached (`rejected`)."""

    status: str
    resets_at: datetime | None = None
    limit: str | None = None
    """The agent's name of the limit, such as `five_hour`."""
    overage: bool = False
    """True if the work continues beyond the limit, as usage that is paid for. Then the account
    still works, although the status is `rejected`."""


class QuotaUsed(LlmAgentEvent):
    """The used share of a usage window of the agent's account, as reported by the agent.

    Within a run it is emitted only when the window has changed.
    """

    window: str
    """The agent's name of the window, such as `five_hour`."""
    used: float
    """From 0 (unused) to 1 (used up)."""
    resets_at: datetime | None = None
    """When the window is empty again, if the agent reported it."""
    agent: str = ""
    """The agent whose account it is, as named in the configuration; filled in by a run."""
    nearly: bool = False
    """True for the first report of four fifths or more since the last reset; filled in by a run."""


class SessionEnded(LlmAgentEvent):
    """The last event of an agent's stream: the outcome, cost and duration of the session."""

    outcome: SessionOutcome
    cost_usd: float | None = None
    """US dollars spent by this session alone; None if they are unknown."""
    cost_estimated: bool = False
    """True if the cost was computed from the tokens and the price of the model."""
    model: str | None = None
    """The model, if known."""
    usage: Usage | None = None
    duration: float | None = None
    """Seconds from the start of the program to its end."""
    num_turns: int | None = None
    session_id: str | None = None
    """The id with which the session can be resumed."""
    exit_code: int | None = None
    """The exit code of a program that failed after a good result; None otherwise."""
    truncated: bool = False
    """True if the last message was cut at the token limit."""
