"""The options of a run of each loop, composed from the groups of settings that it uses."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from pydantic import Field, model_validator

from cuggino.agents.base import Role
from cuggino.config import (
    CommandSettings,
    LoopSettings,
    PlanBuildSettings,
    ReviewSettings,
    RunSettings,
    WatchSettings,
)
from cuggino.errors import ConfigError
from cuggino.stages import LINGER

RunKind: TypeAlias = Literal["run", "watch", "deliver", "loop"]
"""The loop of a run, as its journal names it; `loop` is the plan/build loop."""


class RunOptions(RunSettings):
    """The options that all loops share.

    An option that a loop does not use is an error. The keys of `.cuggino.json` are shared by all
    loops: `Runtime` picks those that a loop uses.
    """

    kind: ClassVar[RunKind]
    name: ClassVar[str]
    """The name of the loop in messages."""
    kept: ClassVar[tuple[str, ...]] = ()
    """The options that decide which stage follows which: a resumed run keeps them. All others, such
    as limits and the model, are those of the process that resumes it."""
    kept_apart: ClassVar[tuple[str, ...]] = ()
    """The same, for options that the journal keeps in fields of `RunStarted`."""

    cwd: Path
    """The project."""
    command: str = "cuggino"
    """The command, for the journal and for others who want the workspace."""
    agent: str = ""
    """The agent's name for the journal, as it can be given to `--agent`."""
    retry_pause: float = Field(default=5.0, ge=0)
    """Seconds before the first retry after a transient failure; each further pause doubles."""
    quota_margin: float = Field(default=60.0, ge=0)
    """Seconds to wait beyond the time a usage limit is lifted, as clocks differ."""

    @model_validator(mode="before")
    @classmethod
    def _only_its_own(cls, given: Any) -> Any:
        unused = [str(key) for key in given if key not in cls.model_fields]
        if unused:
            it = "it" if len(unused) == 1 else "them"
            raise ConfigError(
                f"{cls.name} has no option {', '.join(unused)}: remove {it} from {cls.__name__}"
            )
        return given


class CodingOptions(RunOptions, LoopSettings):
    """The options of a coding loop that a watch passes on to the run of each item."""

    linger: float = Field(default=LINGER, ge=0)
    """Seconds an agent gets after its terminal marker to deliver its result."""
    slow: bool = False
    """Review after every task, not only when the plan is done."""


class LoopRunOptions(CodingOptions):
    """The options of one run of the coding loop (CUG-030)."""

    kind = "run"
    name = "the coding loop"
    kept = (
        "specs_path",
        "max_iterations",
        "max_tasks_per_plan",
        "setup_command",
        "check_command",
        "setup_strict",
        "gate",
        "commit",
        "push",
        "progress_patience",
        "review_patience",
        "slow",
        "review",
        "journal",
    )
    kept_apart = ("focus", "item")

    focus: str
    """The task, as the agents get it."""
    review: str | None = None
    """A person's review, for the first planning agent (CUG-005)."""
    command: str = "cuggino run"
    item: str | None = None
    """The backlog item of the run, with the digest of its content."""


class WatchRunOptions(CodingOptions, WatchSettings):
    """The options of a watch; those of the coding loop apply to every item."""

    kind = "watch"
    name = "the watch"

    command: str = "cuggino watch"


class DeliverRunOptions(RunOptions, ReviewSettings):
    """The options of a run of the deliver loop (AUT-030). Its guard is `full` unless it is off."""

    kind = "deliver"
    name = "the deliver loop"
    kept = (
        "specs_path",
        "workflow",
        "max_sessions",
        "verify",
        "recheck",
        "session_pause",
        "max_retries",
        "progress_patience",
        "review_patience",
        "journal",
    )
    kept_apart = ("command",)

    command: str = "cuggino deliver"
    workflow: Literal["run", "sync"] = "run"
    """`run`: plan deliverables and work on them. `sync`: compare the existing ones with the changed
    specification, then verify each (AUT-270)."""
    max_sessions: int | None = Field(default=None, ge=1)
    """The highest number of sessions (`--max-iterations`); absent means no limit."""
    session_pause: float = Field(default=3.0, ge=0)
    """Seconds between two sessions."""
    max_retries: int = Field(default=3, ge=0)
    """How many sessions in a row may fail before the run ends; also how often in a row an agent is
    retried within its session after a transient failure."""
    plan_model: str | None = None
    """The model of sessions that plan; absent means `model`."""
    thinking: int | None = Field(default=None, ge=1024)
    """The thinking budget of the model in tokens; absent leaves it to the agent."""
    verify: bool = False
    """When all has passed, also at the start, verify each deliverable in sessions that may not
    write source."""
    recheck: bool = False
    """Start a session even when all has passed or is blocked at the start."""
    strict_transitions: bool = False
    """Refuse to block a deliverable that has passed."""

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles of the agents that the loop runs."""
        if self.workflow == "sync":
            return ("sync", "verify")
        return ("initializer", "coding", "verify") if self.verify else ("initializer", "coding")

    @property
    def has_budget(self) -> bool:
        """True if a budget of any kind is set."""
        return any(x is not None for x in (self.budget, self.max_tokens, self.max_duration))


class PlanBuildOptions(RunOptions, CommandSettings, PlanBuildSettings):
    """The options of a run of the plan/build loop (LOP-001, LOP-020)."""

    kind = "loop"
    name = "the plan/build loop"
    kept = (
        "start",
        "plan_only",
        "plan_prompt",
        "build_prompt",
        "auto_commit",
        "verify_after_iteration",
        "verify_build",
        "verify_test",
        "max_sessions",
        "iteration_pause",
        "max_retries",
        "progress_patience",
        "fresh",
        "journal",
    )

    command: str = "cuggino loop"
    start: Literal["plan", "build"] = "plan"
    """The phase to begin with."""
    plan_only: bool = False
    """End after planning."""
    allow_main: bool = False
    """Run on a protected branch too."""
    fresh: bool = False
    """Remove a done file at the start (LOP-062)."""
    max_sessions: int | None = Field(default=None, ge=1)
    """The highest number of iterations, planning included; absent means no limit."""
    iteration_pause: float = Field(default=0.1, ge=0)
    """Seconds between two iterations."""
    max_retries: int = Field(default=3, ge=0)
    """How many sessions in a row may fail before the run ends."""

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles of the agents that the loop runs."""
        if self.plan_only:
            return ("plan",)
        return ("plan", "build", "judge") if self.verify_after_iteration else ("plan", "build")

    @property
    def is_guarded(self) -> bool:
        """True if the guard is on, as far as agents support it."""
        return self.guard != "off" or not self.allow_all
