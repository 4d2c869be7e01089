"""The options of a run of the plan/build loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from cuggino.agents.base import Role
from cuggino.config import CommandSettings, CommitSettings, PlanBuildSettings
from cuggino.events import Event
from cuggino.loops.frame.options import RunOptions, checks_that_cannot_fail


class PlanBuildOptions(RunOptions, CommandSettings, CommitSettings, PlanBuildSettings):
    """The options of a run of the plan/build loop."""

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
        "approve",
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
    """Remove a done file at the start."""
    max_sessions: int | None = Field(default=None, ge=1)
    """The highest number of iterations, planning included; absent means no limit."""
    iteration_pause: float = Field(default=0.1, ge=0)
    """Seconds between two iterations."""
    max_retries: int = Field(default=3, ge=0)
    """Consecutive failed sessions that are retried before the run ends."""

    @property
    def prompt_files(self) -> Mapping[str, str]:
        """The names of the files with the prompts of both phases."""
        return {"plan_prompt": self.plan_prompt, "build_prompt": self.build_prompt}

    def notices(self) -> tuple[Event, ...]:
        """Return what each process of a run reports about the verification commands."""
        return checks_that_cannot_fail(self.verify_build, self.verify_test)

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
