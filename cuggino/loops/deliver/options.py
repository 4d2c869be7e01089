"""The options of a run of the deliver loop."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cuggino.agents.base import Role
from cuggino.config import ReviewSettings
from cuggino.loops.frame.options import RunOptions


class DeliverRunOptions(RunOptions, ReviewSettings):
    """The options of a run of the deliver loop. Its guard is `full` unless it is off."""

    kind = "deliver"
    name = "the deliver loop"
    kept = (
        "specs_path",
        "workflow",
        "max_sessions",
        "approve",
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
    specification, then verify each."""
    max_sessions: int | None = Field(default=None, ge=1)
    """The highest number of sessions (`--max-iterations`); absent means no limit."""
    session_pause: float = Field(default=3.0, ge=0)
    """Seconds between two sessions."""
    max_retries: int = Field(default=3, ge=0)
    """Consecutive failed sessions that are retried before the run ends; also consecutive retries of
    an agent within its session after a transient failure."""
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
