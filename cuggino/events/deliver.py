"""What the deliverables loop says about its own course (requirements AUT-030 to AUT-039)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from cuggino.events.base import Event

DeliverInstruction = Literal["initializer", "coding", "sync", "verify"]
"""What a session of the loop is told: plan deliverables, work, compare with the spec, verify."""

DeliverStatus = Literal["pending", "passed", "blocked"]

DeliverOutcome = Literal[
    "completed", "execution_error", "max_turns", "interrupted", "budget", "quota", "error"
]
"""How a session ended. `error` is one that ended without a result of its agent (AUT-011)."""

DeliverExit = Literal[
    "all_passed",
    "all_verified",
    "all_blocked",
    "max_iterations",
    "quota_exceeded",
    "budget_exceeded",
    "max_retries_exceeded",
    "stalled",
    "interrupted",
    "failed",
]
"""Why the loop ended (AUT-036). `failed`: what every further session would meet too."""


class DeliverEvent(Event, category=True):
    """Category: the deliverables loop moved."""


class DeliverWarning(DeliverEvent):
    """Something of the project cannot be used as it is; the loop goes on without it."""

    message: str


class DeliverSessionStarted(DeliverEvent):
    """A session is about to start."""

    session: int
    """From 1."""
    instruction: DeliverInstruction
    model: str | None = None


class DeliverSessionEnded(DeliverEvent):
    """A session has ended, well or not; an outcome of `error` or `execution_error` is a failure."""

    session: int
    outcome: DeliverOutcome
    message: str = ""
    """What the agent said last, or what went wrong."""
    cost_usd: float | None = None
    duration: float = 0.0
    """Seconds."""


class DeliverSessionRetry(DeliverEvent):
    """The session failed, and another one follows."""

    attempt: int
    """How many have failed in a row."""
    max_retries: int
    message: str


class DeliverableStatusChanged(DeliverEvent):
    """The status of a deliverable was set; also to what it was, when its tool tells."""

    deliverable_id: str
    description: str
    previous: DeliverStatus
    status: DeliverStatus


class DeliverableState(BaseModel):
    """One deliverable of a list. A value, not an event."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    description: str
    status: DeliverStatus
    verified: bool = False


class DeliverablesListed(DeliverEvent):
    """All deliverables that are wanted, in their order: as they stand, and when they change."""

    deliverables: tuple[DeliverableState, ...] = ()

    @property
    def passed(self) -> int:
        """How many are passed."""
        return sum(item.status == "passed" for item in self.deliverables)

    @property
    def blocked(self) -> int:
        """How many are blocked."""
        return sum(item.status == "blocked" for item in self.deliverables)

    @property
    def verified(self) -> int:
        """How many were verified."""
        return sum(item.verified for item in self.deliverables)


class DeliverEnded(DeliverEvent):
    """The last event of a deliverables loop, whatever ended it (AUT-035, AUT-036)."""

    reason: DeliverExit
    sessions: int = 0
    passed: int = 0
    total: int = 0
    blocked: int = 0
    verified: int | None = None
    """How many were verified, None when the loop verifies none."""
    to_verify: int = 0
    """How many were to be verified."""
    cost_usd: float = 0.0
    """US dollars of all sessions that told what they cost."""
    duration: float = 0.0
    """Seconds of the whole run."""
    max_iterations: int | None = None
    max_retries: int = 0
    sync: bool = False
    """Whether deliverables were compared with the specification and verified, not made."""
    error: str = ""
    """What ended it, when an error did."""

    @property
    def success(self) -> bool:
        """Whether the loop has reached what it is for."""
        return self.reason in ("all_passed", "all_verified")
