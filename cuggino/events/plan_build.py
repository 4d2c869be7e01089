"""Events of the plan/build loop (requirements LOP-050 to LOP-099)."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from pydantic import Field

from cuggino.events.agent import LlmAgentEvent
from cuggino.events.base import Event, category_guard
from cuggino.events.command import CheckCommandStarted
from cuggino.events.deliver import DeliverOutcome
from cuggino.events.result import RunOutcome, RunResult
from cuggino.events.supervision import SupervisionEvent

PlanBuildPhase = Literal["plan", "build", "verify"]

PlanBuildExit = Literal[
    "complete",
    "planned",
    "blocked",
    "max_iterations",
    "quota_exceeded",
    "budget_exceeded",
    "max_retries_exceeded",
    "stalled",
    "interrupted",
    "failed",
]
"""The reason for the end of the loop. `complete`: the done file exists, and nothing contradicts it
or nothing is verified. `blocked`: every open job is blocked. `failed`: an error that every further
session would have, too.
"""

_OUTCOMES: Mapping[PlanBuildExit, RunOutcome] = {
    "complete": "approved",
    "planned": "planned",
    "blocked": "blocked",
    "max_iterations": "max_iterations",
    "quota_exceeded": "quota",
    "budget_exceeded": "budget",
    "max_retries_exceeded": "stalled",
    "stalled": "stalled",
    "interrupted": "interrupted",
    "failed": "failed",
}


class PlanBuildEvent(Event, category=True):
    """Category: progress of the plan/build loop."""


class PlanBuildPhaseStarted(PlanBuildEvent):
    """A session of this phase is about to start."""

    phase: PlanBuildPhase
    iteration: int
    """Counted from 1 through plan and build (LOP-009)."""


class PlanBuildIterationEnded(PlanBuildEvent):
    """A plan or build session and its verification have ended."""

    iteration: int
    cost_usd: float | None = None
    cost_estimated: bool = False
    """True if a part of the cost is an estimate."""
    duration: float = 0.0
    """Seconds."""


class PlanBuildSessionEnded(PlanBuildEvent):
    """A plan or build session has ended."""

    iteration: int
    phase: PlanBuildPhase
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


class PlanBuildSessionRetry(PlanBuildEvent):
    """A session failed; another one follows."""

    attempt: int
    """Failed sessions in a row."""
    max_retries: int
    message: str


class PlanBuildWarning(PlanBuildEvent):
    """Something is unusable or questionable; the loop continues."""

    message: str


class JobsCounted(PlanBuildEvent):
    """The counts of jobs; emitted at the start and after each iteration."""

    open: int
    """Jobs that are neither done nor blocked."""
    done: int
    blocked: int = 0
    next_job: str | None = None
    """The open job with the highest priority, as `id: description`."""

    @property
    def total(self) -> int:
        return self.open + self.done + self.blocked


class SubAgentStarted(PlanBuildEvent):
    """The agent delegated work to a sub-agent."""

    name: str
    description: str = ""


class SubAgentEnded(PlanBuildEvent):
    """A sub-agent has ended."""

    name: str = ""


class FileTouched(PlanBuildEvent):
    """The agent wrote a file; emitted once per file and iteration."""

    path: str
    """Relative to the project for files in it."""


class CommitSeen(PlanBuildEvent):
    """A new commit was found."""

    commit_hash: str
    """Abbreviated."""
    subject: str


class BuildVerified(PlanBuildEvent):
    """The result of verifying the build after an iteration."""

    passed: bool
    issues: tuple[str, ...] = ()


class JobVerified(PlanBuildEvent):
    """The result of verifying a job that was reported as done."""

    job_id: str
    description: str
    passed: bool
    issues: tuple[str, ...] = ()
    """The reasons why the job is reopened."""


class JobBlocked(PlanBuildEvent):
    """A job failed its verification too often and is left to a person."""

    job_id: str
    description: str
    failures: int


class VerificationEnded(PlanBuildEvent):
    """The result of the verification after an iteration."""

    findings: tuple[str, ...] = ()
    """The findings given to the next session."""
    failures: dict[str, int] = Field(default_factory=dict)
    """Failed verifications in a row, by job id."""


class DoneFileRejected(PlanBuildEvent):
    """The done file existed, but something contradicts it; it was removed."""

    reason: str


class PlanBuildEnded(PlanBuildEvent, RunResult):
    """The last event of a plan/build loop, however it ended."""

    reason: PlanBuildExit
    iterations: int = 0
    open: int = 0
    done: int = 0
    blocked: int = 0
    cost_usd: float = 0.0
    """US dollars of all sessions whose cost is known."""
    cost_estimated: bool = False
    """True if a part of the cost is an estimate."""
    duration: float = 0.0
    """Seconds of the whole run."""
    error: str = ""
    """The error that ended the loop, or the blocked jobs."""

    @property
    def outcome(self) -> RunOutcome:
        return _OUTCOMES[self.reason]

    @property
    def message(self) -> str:
        return self.error

    @property
    def success(self) -> bool:
        """Return whether every job is built and verified, or planned with `plan_only`."""
        return self.outcome in ("approved", "planned")


PlanBuildStreamEvent: TypeAlias = (
    PlanBuildEvent | LlmAgentEvent | SupervisionEvent | CheckCommandStarted
)
"""The events of the plan/build loop."""

is_plan_build_event = category_guard(PlanBuildEvent)
