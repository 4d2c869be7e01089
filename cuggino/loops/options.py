"""What a run of a loop is to do."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from cuggino.config import LoopSettings
from cuggino.stages import LINGER


class LoopRunOptions(LoopSettings):
    """What one run of the coding loop is to do (CUG-030)."""

    focus: str
    """What to work on, as the agents get it."""
    cwd: Path
    review: str | None = None
    """A person's review, for the first planning agent (CUG-005)."""
    slow: bool = False
    """Review after every task, not only when the plan is done."""
    linger: float = Field(default=LINGER, ge=0)
    """Seconds an agent gets after its terminal marker to deliver its result."""
