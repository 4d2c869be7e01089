"""The options of a run of the coding loop."""

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from cuggino.agents.base import Role
from cuggino.config import (
    CommandSettings,
    CommitSettings,
    HandsSettings,
    LoopSettings,
    ReviewSettings,
)
from cuggino.events import CheckDoesNotDecide, Event
from cuggino.loops.frame.options import RunOptions, checks_that_cannot_fail
from cuggino.stages import LINGER


class CodingOptions(LoopSettings, ReviewSettings, CommandSettings, CommitSettings):
    """The options of the coding loop that a watch passes on to the run of each item."""

    linger: float = Field(default=LINGER, ge=0)
    """Seconds an agent gets after its terminal marker to deliver its result."""
    slow: bool = False
    """Review after every task, not only when the plan is done."""

    @property
    def approval_is_checked(self) -> bool:
        """Whether an approval counts only if the check command passes."""
        decides = self.gate != "context" or len(self.choices) > 1
        return self.check_command is not None and decides

    @property
    def is_checked_later(self) -> bool:
        """Whether the check decides when the work lands, as in a slot."""
        return False

    def notices(self) -> tuple[Event, ...]:
        """Return what each process of a run reports about the check command."""
        found: tuple[Event, ...] = checks_that_cannot_fail(self.check_command)
        if self.check_command and not (self.approval_is_checked or self.is_checked_later):
            found = (*found, CheckDoesNotDecide(command=self.check_command))
        return found

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles of the agents that the loop runs."""
        return ("planning", "implementing", "reviewing")


class LoopRunOptions(CodingOptions, HandsSettings, RunOptions):
    """The options of one run of the coding loop."""

    kind = "run"
    name = "the coding loop"
    kept = (
        "specs_path",
        "max_iterations",
        "max_tasks_per_plan",
        "approve",
        "setup_command",
        "check_command",
        "setup_strict",
        "gate",
        "gate_paths",
        "baseline",
        "commit",
        "push",
        "progress_patience",
        "review_patience",
        "slow",
        "review",
        "store_findings",
        "journal",
        "merge",
        "hands",
        "task",
        "attempts",
        "choose",
        "attempt_of",
    )
    kept_apart = ("focus", "item")

    @model_validator(mode="after")
    def _needs_one_hand(self) -> Self:
        if self.slow and self.hands > 1:
            raise ValueError("a review after every task requires a single hand")
        return self

    focus: str
    """The task, as the agents get it."""
    review: str | None = None
    """A person's review, for the first planning agent."""
    store_findings: bool = True
    """Store findings that no agent resolved in `.cuggino/tbd/`, for a person."""
    command: str = "cuggino run"
    item: str | None = None
    """The backlog item of the run, with the digest of its content."""
    task: str | None = None
    """The plan of a run that does a task of another run's plan: no agent plans or reviews it."""
    slot: int | None = None
    """The slot whose folder is `cwd`; None in the project itself."""
    apart: tuple[Path, ...] = ()
    """Folders of others, if `cwd` is a slot: the folder of all slots, and the user's repository."""

    @property
    def is_checked_later(self) -> bool:
        return self.slot is not None or self.hands > 1

    attempt_of: str | None = None
    """The id of the run of which this is one of several attempts."""
    merge: str | None = None
    """A commit to merge into the work first. An agent resolves conflicts; without a `review`, the
    reviewer is the next one."""
