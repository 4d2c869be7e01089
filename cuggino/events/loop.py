"""What the coding loop says about its own course (CUG-021)."""

from __future__ import annotations

from typing import Literal

from cuggino.events.base import Event


class LoopPhaseEvent(Event, category=True):
    """Category: the coding loop moved. `iteration` counts plan-to-review rounds from 1."""

    iteration: int


class LoopTerminalEvent(LoopPhaseEvent, category=True):
    """Category: the last event of a coding loop that ended without an error."""


class IterationStart(LoopPhaseEvent):
    """A new round begins."""

    max_iterations: int


class PlanningStart(LoopPhaseEvent):
    """The planning agent is about to start."""


class ImplementingStart(LoopPhaseEvent):
    """An implementing agent is about to start, after its check command."""


class ReviewingStart(LoopPhaseEvent):
    """The reviewing agent is about to start, after its check command."""


class CommandOutputEvent(LoopPhaseEvent, category=True):
    """Category: a setup or check command has ended."""

    output: str = ""
    """Standard output and error together; only the end of a long output."""
    exit_code: int | None = None
    """127 when the command could not be started, 124 when its time ran out."""
    file_path: str | None = None
    """The file with the whole output; it is removed with the session."""
    truncated: bool = False
    """True when `output` is not the whole output."""


class SetupCommandOutput(CommandOutputEvent):
    """The setup command has ended; its failure does not stop the loop (CUG-041)."""


class CheckCommandOutput(CommandOutputEvent):
    """The check command has ended; its output is given to the next agent (CUG-042)."""


class CommitPerformed(LoopPhaseEvent):
    """The work of one task was committed."""

    commit_hash: str
    """Abbreviated, as `git rev-parse --short` gives it."""
    message: str


class CommitFailed(LoopPhaseEvent):
    """A commit failed; the loop goes on."""

    message: str


class PushPerformed(LoopPhaseEvent):
    """A commit was pushed."""

    commit_hash: str
    remote: str
    """Where to, as `remote/branch`."""


class PushFailed(LoopPhaseEvent):
    """A push failed; the loop goes on, and the next push brings the commit along."""

    message: str


class TaskLimitReached(LoopPhaseEvent):
    """`maxTasksPerPlan` agents worked on one plan without declaring it done: review comes now."""

    max_tasks: int


class ApprovalBlocked(LoopPhaseEvent):
    """With `gate: block`, an approval did not count since the check before it had failed."""

    exit_code: int | None


class LoopApproved(LoopTerminalEvent):
    """The reviewer approved: the work matches the specification."""


class LoopSpecIssue(LoopTerminalEvent):
    """An agent found a problem in the specification; it is stored for a person."""

    content: str
    filename: str
    """Name of the file in `.cuggino/spec-issues/`."""


class LoopMaxIterations(LoopTerminalEvent):
    """The rounds are used up without an approval."""

    max_iterations: int


class LoopStalled(LoopTerminalEvent):
    """The loop goes round without getting anywhere, and stops rather than burning on."""

    reason: Literal["no_progress", "same_findings"]
    message: str
    filenames: tuple[str, ...] = ()
    """Names of the files in `.cuggino/tbd/` with the findings that nobody could settle."""
