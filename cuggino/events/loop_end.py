"""The ends of the coding loop."""

from typing import Literal

from typing_extensions import TypeIs

from cuggino.events.loop import LoopPhaseEvent
from cuggino.events.result import RunOutcome, RunResult


class LoopTerminalEvent(LoopPhaseEvent, RunResult, category=True):
    """Category: the last event of a coding loop that ended without an error."""


class LoopApproved(LoopTerminalEvent):
    """The reviewer approved: the work matches the specification."""

    checked: bool | None = None
    """Whether the check command decided, too: False with `gate: context` or without a check. None
    in journals of older versions, and in a slot, where the landing checks the work."""

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
        most = self.max_iterations
        return f"not approved within {most} iteration{'s' * (most != 1)}"


class LoopStalled(LoopTerminalEvent):
    """The loop makes no progress and stops to save money."""

    reason: Literal["no_progress", "same_findings", "check", "approval"]
    message: str
    filenames: tuple[str, ...] = ()
    """Names of the files in `.cuggino/tbd/` with the findings that no agent resolved."""
    findings: tuple[str, ...] = ()
    """The findings that no agent resolved."""

    @property
    def outcome(self) -> RunOutcome:
        return "stalled"


def checked_of(event: object) -> bool | None:
    """Return whether the check command decided on an approval; None for other events."""
    return event.checked if isinstance(event, LoopApproved) else None


def is_loop_terminal_event(event: object) -> TypeIs[LoopTerminalEvent]:
    """Return whether it is the last event of a coding loop that ended without an error."""
    return isinstance(event, LoopTerminalEvent)
