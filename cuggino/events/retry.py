"""Failures of agents, and usage limits: retries, waits, fallbacks."""

from datetime import datetime

from cuggino.events.supervision import SupervisionEvent


class AgentRetry(SupervisionEvent):
    """An agent failed transiently; it is retried after a pause."""

    reason: str
    """An `AgentFailure`, such as `overloaded`."""
    message: str
    attempt: int
    """The retry that follows, from 1."""
    max_retries: int
    """0 means no limit."""
    retry_in: float
    """Seconds until the retry."""


class QuotaWaiting(SupervisionEvent):
    """A usage limit was reached; the stage resumes in `remaining` seconds.

    Emitted when the wait begins, then every minute.
    """

    remaining: float
    resets_at: datetime | None = None
    """When the limit is lifted, if the agent reported it."""
    message: str = ""
    """The agent's message about the limit."""
    planned: bool = False
    """True if the agent would work, but the configuration does not let it (`quotaReserve`,
    `overage`)."""


class QuotaLifted(SupervisionEvent):
    """The wait for a usage limit is over; the stage resumes."""

    waited: float
    """Seconds."""


class AgentFellBack(SupervisionEvent):
    """An agent failed; its fallback starts the session again with the same prompt.

    Changes that the failed agent made in the project are kept.
    """

    role: str
    """The role of both agents, such as `reviewing`; empty if unknown."""
    from_agent: str
    to_agent: str
    reason: str
    """`quota`, `not_found`, or an `AgentFailure` such as `auth`."""
    message: str
    """The failed agent's error."""
    until: datetime | None = None
    """The end of the failed agent's cooldown."""
