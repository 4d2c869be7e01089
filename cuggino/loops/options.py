"""What a run of a loop is to do."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from cuggino.agents.protocol import Role
from cuggino.config import LoopSettings
from cuggino.stages import LINGER


class PacedSettings(LoopSettings):
    """The settings, with the pauses that no configuration changes."""

    linger: float = Field(default=LINGER, ge=0)
    """Seconds an agent gets after its terminal marker to deliver its result."""
    retry_pause: float = Field(default=5.0, ge=0)
    """Seconds before the first retry of an agent that failed in passing; each further one twice."""
    quota_margin: float = Field(default=60.0, ge=0)
    """Seconds that are waited for after a usage limit should be lifted, as clocks differ."""


class LoopRunOptions(PacedSettings):
    """What one run of the coding loop is to do (CUG-030)."""

    focus: str
    """What to work on, as the agents get it."""
    cwd: Path
    review: str | None = None
    """A person's review, for the first planning agent (CUG-005)."""
    slow: bool = False
    """Review after every task, not only when the plan is done."""
    command: str = "cuggino run"
    """What others are told who want the workspace too, and what the journal calls the run."""
    agent: str = ""
    """The agent's name for the journal, as it can be given to `--agent`."""
    item: str | None = None
    """The backlog item that the run is for, with the digest of its content."""


class WatchRunOptions(PacedSettings):
    """What a watch is to do; the settings of the coding loop are those of every item."""

    cwd: Path
    audit: bool = False
    """Run the audit agent in idle time."""
    settle_seconds: float = Field(default=30.0, gt=0)
    """Seconds without a change after which a folder is counted again."""
    max_attempts: int = Field(default=3, ge=1)
    """How often an item that fails is tried, before it is parked."""
    retry_seconds: float = Field(default=60.0, gt=0)
    """Seconds before the second attempt; each further pause is twice as long."""
    on_max_iterations: Literal["complete", "park"] = "complete"
    """What becomes of an item whose rounds are used up without an approval."""
    slow: bool = False
    agent: str = ""
    """The agent's name for the journal, as it can be given to `--agent`."""


class DeliverRunOptions(PacedSettings):
    """What a run of the deliverables loop is to do (AUT-030).

    Of the settings of the coding loop those count here that bound agents: limits, policies and the
    guard, which is `full` unless it is off.
    """

    cwd: Path
    workflow: Literal["run", "sync"] = "run"
    """`run`: plan deliverables and work on them. `sync`: compare those that are there with the
    changed specification, then verify each (AUT-270)."""
    max_sessions: int | None = Field(default=None, ge=1)
    """How many sessions there may be (`--max-iterations`); absent means no limit."""
    session_pause: float = Field(default=3.0, ge=0)
    """Seconds between two sessions."""
    max_retries: int = Field(default=3, ge=0)
    """How many sessions in a row may fail and be followed by another; also how often in a row an
    agent that failed in passing is retried within its session."""
    plan_model: str | None = None
    """The model for sessions that plan; absent means `model`."""
    thinking: int | None = Field(default=None, ge=1024)
    """Tokens that the model may think for; absent leaves it to the agent."""
    verify: bool = False
    """When all is passed, also at the start, verify each deliverable in sessions that may not write
    source."""
    recheck: bool = False
    """Start a session even when all is passed or blocked at the start."""
    strict_transitions: bool = False
    """Refuse to block what is passed."""
    command: str = "cuggino deliver"
    """What others are told who want the workspace too, and what the journal calls the run."""
    agent: str = ""
    """The agent's name for the journal, as it can be given to `--agent`."""

    @property
    def roles(self) -> tuple[Role, ...]:
        """What agents are spawned for."""
        if self.workflow == "sync":
            return ("sync", "verify")
        return ("initializer", "coding", "verify") if self.verify else ("initializer", "coding")

    @property
    def has_budget(self) -> bool:
        """Whether what agents may spend is limited."""
        return any(x is not None for x in (self.budget, self.max_tokens, self.max_duration))


class PlanBuildOptions(PacedSettings):
    """What a run of the plan/build loop is to do (LOP-001, LOP-020).

    Of the settings of the coding loop those count here that bound agents.
    """

    cwd: Path
    start: Literal["plan", "build"] = "plan"
    """With which phase to begin."""
    plan_only: bool = False
    """End when it is planned."""
    plan_prompt: str = "PLAN.PROMPT.md"
    """The file with what the planning agent is told, relative to the project or absolute."""
    build_prompt: str = "BUILD.PROMPT.md"
    allow_all: bool = True
    """Let agents use any program; else only listed ones (LOP-112)."""
    auto_commit: bool = False
    """Commit what an iteration leaves uncommitted (LOP-031)."""
    verify_after_iteration: bool = True
    """Have agents verify the build after each iteration (LOP-095), and each job that is said to be
    done; else the loop's own facts decide: exit codes, requirement codes."""
    verify_model: str | None = None
    """The model of the verifying agent; absent means `model`."""
    verify_build: str | None = None
    """The command that builds the project; its exit code is proof (LOP-099)."""
    verify_test: str | None = None
    """The command that runs its tests."""
    protected_branches: tuple[str, ...] = ("main", "master")
    """Branches on which the loop does not run (LOP-041)."""
    allow_main: bool = False
    """Run on a protected branch all the same."""
    fresh: bool = False
    """Remove a done file that is there at the start (LOP-062)."""
    max_sessions: int | None = Field(default=None, ge=1)
    """How many iterations there may be, planning included; absent means no limit."""
    iteration_pause: float = Field(default=0.1, ge=0)
    """Seconds between two iterations."""
    max_retries: int = Field(default=3, ge=0)
    """How many sessions in a row may fail and be followed by another."""
    command: str = "cuggino loop"
    """What others are told who want the workspace too, and what the journal calls the run."""
    agent: str = ""
    """The agent's name for the journal, as it can be given to `--agent`."""

    @property
    def roles(self) -> tuple[Role, ...]:
        """What agents are spawned for."""
        if self.plan_only:
            return ("plan",)
        return ("plan", "build", "judge") if self.verify_after_iteration else ("plan", "build")

    @property
    def is_guarded(self) -> bool:
        """Whether agents are held to a policy, as far as they can be."""
        return self.guard != "off" or not self.allow_all
