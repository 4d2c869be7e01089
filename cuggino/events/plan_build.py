"""What the plan/build loop says about its own course (requirements LOP-050 to LOP-099)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cuggino.events.base import Event
from cuggino.events.deliver import DeliverOutcome

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
"""Why the loop ended. `complete`: the done file is there, and nothing contradicts it. `blocked`:
every open job is blocked. `failed`: what every further session would meet too."""


class PlanBuildEvent(Event, category=True):
    """Category: the plan/build loop moved."""


class PlanBuildPhaseStarted(PlanBuildEvent):
    """A session of this phase is about to start."""

    phase: PlanBuildPhase
    iteration: int
    """One counter runs through plan and build, from 1 (LOP-009)."""


class PlanBuildIterationEnded(PlanBuildEvent):
    """A session of plan or build has ended, with all that belongs to it."""

    iteration: int
    cost_usd: float | None = None
    duration: float = 0.0
    """Seconds."""


class PlanBuildSessionEnded(PlanBuildEvent):
    """A session of plan or build has ended, well or not."""

    iteration: int
    phase: PlanBuildPhase
    outcome: DeliverOutcome
    message: str = ""
    """What the agent said last, or what went wrong."""
    cost_usd: float | None = None
    duration: float = 0.0
    """Seconds."""


class PlanBuildSessionRetry(PlanBuildEvent):
    """The session failed, and another one follows."""

    attempt: int
    """How many have failed in a row."""
    max_retries: int
    message: str


class PlanBuildWarning(PlanBuildEvent):
    """Something cannot be used as it is, or should be otherwise; the loop goes on."""

    message: str


class JobsCounted(PlanBuildEvent):
    """How far the jobs are: at the start, and after each iteration."""

    open: int
    """Those which are neither done nor blocked."""
    done: int
    blocked: int = 0
    next_job: str | None = None
    """The open one of the highest priority, as `id: description`."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.open + self.done + self.blocked


class SubAgentStarted(PlanBuildEvent):
    """The agent has given a part of its work to another one (LOP-082)."""

    name: str
    description: str = ""


class SubAgentEnded(PlanBuildEvent):
    """That one has ended."""

    name: str = ""


class FileTouched(PlanBuildEvent):
    """The agent has written a file; once for each in an iteration (LOP-083)."""

    path: str
    """Relative to the project, where it is in it."""


class CommitSeen(PlanBuildEvent):
    """There is a commit that was not there before (LOP-083)."""

    commit_hash: str
    """Abbreviated."""
    subject: str


class BuildVerified(PlanBuildEvent):
    """What was found when the build was verified after an iteration (LOP-095)."""

    passed: bool
    issues: tuple[str, ...] = ()


class JobVerified(PlanBuildEvent):
    """Whether a job that was said to be done is done (LOP-096)."""

    job_id: str
    description: str
    passed: bool
    issues: tuple[str, ...] = ()
    """Why it goes back."""


class JobBlocked(PlanBuildEvent):
    """A job has failed its verification too often: the loop leaves it to a person (LOP-097)."""

    job_id: str
    description: str
    failures: int


class VerificationEnded(PlanBuildEvent):
    """What the verification after an iteration came to."""

    findings: tuple[str, ...] = ()
    """What the next session is told."""
    failures: dict[str, int] = Field(default_factory=dict)
    """How often in a row each job has failed its verification, by its id."""


class DoneFileRejected(PlanBuildEvent):
    """The done file was there though something contradicts it; it was removed."""

    reason: str


class PlanBuildEnded(PlanBuildEvent):
    """The last event of a plan/build loop, whatever ended it."""

    reason: PlanBuildExit
    iterations: int = 0
    open: int = 0
    done: int = 0
    blocked: int = 0
    cost_usd: float = 0.0
    """US dollars of all sessions that told what they cost."""
    duration: float = 0.0
    """Seconds of the whole run."""
    error: str = ""
    """What ended it, when an error did; the blocked jobs when these did."""

    @property
    def success(self) -> bool:
        """Whether the loop has reached what it is for."""
        return self.reason in ("complete", "planned")
