"""What a run of a loop is to do."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from cuggino.stages import LINGER


class LoopRunOptions(BaseModel):
    """What one run of the coding loop is to do (CUG-030)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    focus: str
    """What to work on, as the agents get it."""
    cwd: Path
    specs_path: str = ".specs"
    review: str | None = None
    """A person's review, for the first planning agent (CUG-005)."""
    max_iterations: int = Field(default=10, ge=1)
    max_tasks_per_plan: int = Field(default=50, ge=1)
    setup_command: str | None = None
    check_command: str | None = None
    setup_strict: bool = False
    command_timeout: float | None = Field(default=None, gt=0)
    gate: Literal["context", "block"] = "context"
    commit: bool = False
    slow: bool = False
    """Review after every task, not only when the plan is done."""
    model: str | None = None
    linger: float = Field(default=LINGER, ge=0)
    """Seconds an agent gets after its terminal marker to deliver its result."""

    @model_validator(mode="after")
    def _gate_needs_a_check(self) -> LoopRunOptions:
        if self.gate == "block" and not self.check_command:
            raise ValueError("gate 'block' needs a check_command, else no approval could count")
        return self
