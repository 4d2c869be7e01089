"""Events of the deliver loop (requirements AUT-030 to AUT-039)."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from cuggino.events.agent import LlmAgentEvent
from cuggino.events.base import Event, category_guard
from cuggino.events.result import RunOutcome, RunResult
from cuggino.events.supervision import SupervisionEvent

DeliverInstruction = Literal["initializer", "coding", "sync", "verify"]
"""The instruction of a session: plan deliverables, implement, compare with the specification,
verify."""

DeliverStatus = Literal["pending", "passed", "blocked"]

DeliverOutcome = Literal[
    "completed", "execution_error", "max_turns", "interrupted", "budget", "quota", "error"
]
"""The outcome of a session. `error`: the agent ended without a result (AUT-011)."""

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
"""The reason for the end of the loop (AUT-036). `failed`: an error that every further session would
have, too."""

_OUTCOMES: Mapping[DeliverExit, RunOutcome] = {
    "all_passed": "approved",
    "all_verified": "approved",
    "all_blocked": "blocked",
    "max_iterations": "max_iterations",
    "quota_exceeded": "quota",
    "budget_exceeded": "budget",
    "max_retries_exceeded": "stalled",
    "stalled": "stalled",
    "interrupted": "interrupted",
    "failed": "failed",
}


class DeliverEvent(Event, category=True):
    """Category: progress of the deliver loop."""


class DeliverWarning(DeliverEvent):
    """Something in the project is unusable and is ignored."""

    message: str


class DeliverSessionStarted(DeliverEvent):
    """A session is about to start."""

    session: int
    """Counted from 1."""
    instruction: DeliverInstruction
    model: str | None = None


class DeliverSessionEnded(DeliverEvent):
    """A session has ended; the outcomes `error` and `execution_error` are failures."""

    session: int
    outcome: DeliverOutcome
    message: str = ""
    """The agent's last message, or the error."""
    cost_usd: float | None = None
    cost_estimated: bool = False
    """True if a part of the cost is an estimate."""
    duration: float = 0.0
    """Seconds."""
    session_id: str | None = None
    """The session, which can be resumed after a wait."""


class DeliverSessionRetry(DeliverEvent):
    """A session failed; another one follows."""

    attempt: int
    """Failed sessions in a row."""
    max_retries: int
    message: str


class DeliverableStatusChanged(DeliverEvent):
    """The status of a deliverable was set, possibly to the same value."""

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
    """All active deliverables in order; emitted at the start and after each change."""

    deliverables: tuple[DeliverableState, ...] = ()

    @property
    def passed(self) -> int:
        return sum(item.status == "passed" for item in self.deliverables)

    @property
    def blocked(self) -> int:
        return sum(item.status == "blocked" for item in self.deliverables)

    @property
    def verified(self) -> int:
        return sum(item.verified for item in self.deliverables)


class DeliverEnded(DeliverEvent, RunResult):
    """The last event of a deliver loop, however it ended."""

    reason: DeliverExit
    sessions: int = 0
    passed: int = 0
    total: int = 0
    blocked: int = 0
    verified: int | None = None
    """The number of verified deliverables; None if the loop verifies none."""
    to_verify: int = 0
    """The number of deliverables to verify."""
    cost_usd: float = 0.0
    """US dollars of all sessions whose cost is known."""
    cost_estimated: bool = False
    """True if a part of the cost is an estimate."""
    duration: float = 0.0
    """Seconds of the whole run."""
    max_iterations: int | None = None
    max_retries: int = 0
    sync: bool = False
    """True if deliverables were compared with the specification and verified, not implemented."""
    error: str = ""
    """The error that ended the loop, if any."""

    @property
    def outcome(self) -> RunOutcome:
        return _OUTCOMES[self.reason]

    @property
    def message(self) -> str:
        return self.error

    @property
    def success(self) -> bool:
        """Return whether every deliverable has passed or was verified."""
        return self.outcome == "approved"


DeliverStreamEvent: TypeAlias = DeliverEvent | LlmAgentEvent | SupervisionEvent
"""The events of the deliver loop."""

is_deliver_event = category_guard(DeliverEvent)
