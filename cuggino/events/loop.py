"""Events of the coding loop (CUG-021)."""

from typing import Literal, TypeAlias

from typing_extensions import TypeIs

from cuggino.events.agent import LlmAgentEvent
from cuggino.events.base import Event, category_guard
from cuggino.events.marker import LlmMarkerEvent
from cuggino.events.result import RunOutcome, RunResult
from cuggino.events.resumed import SupervisionEvent


class LoopPhaseEvent(Event, category=True):
    """Category: progress of the coding loop. `iteration` counts from planning to review, from 1."""

    iteration: int


class LoopTerminalEvent(LoopPhaseEvent, RunResult, category=True):
    """Category: the last event of a coding loop that ended without an error."""


class IterationStart(LoopPhaseEvent):
    """An iteration begins."""

    max_iterations: int


class PlanningStart(LoopPhaseEvent):
    """The planning agent is about to start."""


class PlanWritten(LoopPhaseEvent):
    """The planning agent has written a plan."""

    text: str
    """The plan as Markdown, cut if it is very long."""


class ImplementingStart(LoopPhaseEvent):
    """An implementing agent is about to start, after its check command."""


class ReviewingStart(LoopPhaseEvent):
    """The reviewing agent is about to start, after its check command."""


class CommandStartedEvent(LoopPhaseEvent, category=True):
    """Category: a setup or check command is about to run."""

    command: str


class SetupCommandStarted(CommandStartedEvent):
    """The setup command is about to run."""


class CheckCommandStarted(CommandStartedEvent):
    """The check command is about to run."""


class CommandOutputEvent(LoopPhaseEvent, category=True):
    """Category: a setup or check command has ended."""

    output: str = ""
    """Standard output and error together; only the end of a long output."""
    exit_code: int | None = None
    """127 if the command could not be started, 124 if it timed out."""
    file_path: str | None = None
    """The file with the whole output; it is removed with the session."""
    truncated: bool = False
    """True if `output` is not the whole output."""


class SetupCommandOutput(CommandOutputEvent):
    """The setup command has ended; its failure ends the run only with `setupStrict` (CUG-041)."""


class CheckCommandOutput(CommandOutputEvent):
    """The check command has ended; its output is given to the next agent (CUG-042)."""


class CommitPerformed(LoopPhaseEvent):
    """The work of one task was committed."""

    commit_hash: str
    """Abbreviated, as by `git rev-parse --short`."""
    message: str
    left: tuple[str, ...] = ()
    """Submodules with uncommitted changes, which have to be committed inside them."""


class CommitFailed(LoopPhaseEvent):
    """A commit failed; the loop continues."""

    message: str


class PushPerformed(LoopPhaseEvent):
    """A commit was pushed."""

    commit_hash: str
    remote: str
    """The destination, as `remote/branch`."""


class PushFailed(LoopPhaseEvent):
    """A push failed; the loop continues, and the next push includes the commit."""

    message: str


class TaskLimitReached(LoopPhaseEvent):
    """`maxTasksPerPlan` agents worked on one plan without completing it; the review follows."""

    max_tasks: int


class GateChanged(LoopPhaseEvent):
    """Files that an approval depends on have changed since the start; the reviewer is informed."""

    paths: tuple[str, ...]
    """Files that the check command names or `gatePaths` lists, specifications, and tests that are
    removed or newly skipped."""
    check: tuple[str, ...] = ()
    """Files of the check that neither the focus nor a specification asks to change."""
    weakened: tuple[str, ...] = ()
    """Test files with fewer tests, or more skip markers, than at the start."""


class SpecsChanged(LoopPhaseEvent):
    """Specifications changed after the latest plan was made; another plan follows."""

    paths: tuple[str, ...]


class ApprovalBlocked(LoopPhaseEvent):
    """With `gate: block`, an approval was rejected.

    The check before it had failed, or files of the check itself were changed although neither the
    focus nor a specification asks for that.
    """

    exit_code: int | None
    changed: tuple[str, ...] = ()
    """Those files."""


class LoopApproved(LoopTerminalEvent):
    """The reviewer approved: the work matches the specification."""

    @property
    def outcome(self) -> RunOutcome:
        return "approved"

    @property
    def message(self) -> str:
        return ""


class LoopSpecIssue(LoopTerminalEvent):
    """An agent found a problem in the specification; it is stored for a person to resolve."""

    content: str
    filename: str
    """Name of the file in `.cuggino/spec-issues/`."""

    @property
    def outcome(self) -> RunOutcome:
        return "spec_issue"

    @property
    def message(self) -> str:
        return f"spec issue {self.filename}"


class LoopMaxIterations(LoopTerminalEvent):
    """The iterations are used up without an approval."""

    max_iterations: int

    @property
    def outcome(self) -> RunOutcome:
        return "max_iterations"

    @property
    def message(self) -> str:
        return f"not approved within {self.max_iterations} iterations"


class LoopStalled(LoopTerminalEvent):
    """The loop makes no progress and stops to save money."""

    reason: Literal["no_progress", "same_findings"]
    message: str
    filenames: tuple[str, ...] = ()
    """Names of the files in `.cuggino/tbd/` with the findings that no agent resolved."""
    findings: tuple[str, ...] = ()
    """The findings that no agent resolved."""

    @property
    def outcome(self) -> RunOutcome:
        return "stalled"


LoopEvent: TypeAlias = LlmAgentEvent | LlmMarkerEvent | LoopPhaseEvent | SupervisionEvent
"""The events of the coding loop (CUG-024)."""

is_loop_phase_event = category_guard(LoopPhaseEvent)
is_command_output_event = category_guard(CommandOutputEvent)


def is_loop_terminal_event(event: object) -> TypeIs[LoopTerminalEvent]:
    """Return whether it is the last event of a coding loop that ended without an error."""
    return isinstance(event, LoopTerminalEvent)
