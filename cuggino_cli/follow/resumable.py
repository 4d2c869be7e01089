"""The views of the other loops, whose last line shows how to resume them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, assert_never

from cuggino_cli.follow.follower import Ending, exit_code_of
from cuggino_cli.follow.output import OutputOptions

if TYPE_CHECKING:
    from reactivex import Observable

    from cuggino.errors import CugginoError
    from cuggino.events import DeliverEnded, Event, PlanBuildEnded
    from cuggino_cli.screen.controls import Controls
    from cuggino_cli.screen.deliver_screen import Wording
    from cuggino_cli.screen.plan_build_screen import LoopView
    from cuggino_cli.screen.terminal import Lines

    Operator = Callable[[Observable[Any]], Observable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ResumableView:
    """A loop whose last line shows how to resume it."""

    acknowledgment: ClassVar[str] = ""
    focus: ClassVar[str] = ""

    output: OutputOptions
    compat: bool = False
    """Return the exit codes of the original program."""
    go_on: str = ""
    """Instructions for resuming the run."""

    def add(self, event: Event) -> None:
        """Count nothing: the loop sums up in its result."""

    def conclude(self, lines: Lines, ending: Ending) -> None:
        """Print the hint of a reported error, and how to resume the run."""
        from cuggino.errors import CugginoError
        from cuggino_cli.screen.fragments import Fragment

        result, error = ending.result, ending.error
        if result is None and (error is None or isinstance(error, CugginoError)):
            return
        if not ending.begun or (result is not None and not result.is_resumable):
            return
        if result is not None and isinstance(error, CugginoError) and (hint := self.hint(error)):
            lines.print([Fragment("plain", f"  {hint}")], is_complaint=True)
        if self.go_on:
            lines.print([Fragment("heading", self.go_on)])

    def hint(self, error: CugginoError) -> str | None:
        """Return what a person can do about the error."""
        return error.hint


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverView(_ResumableView):
    """A deliver loop."""

    acknowledgment: ClassVar[str] = "Received SIGINT, stopping..."
    """Autonoe's (AUT-243)."""
    kind: ClassVar[Literal["deliver"]] = "deliver"

    wording: Wording
    debug: bool = False

    @property
    def quietly(self) -> bool:
        return self.output.quiet or self.debug

    def operator(self, controls: Controls, project: Path) -> Operator:
        from cuggino_cli.screen.deliver_screen import with_deliver_output

        return with_deliver_output(
            controls, self.wording, project=str(project), stamps=not self.compat
        )

    def exit_code(self, ending: Ending) -> int:
        """Return the exit code, with `compat` that of Autonoe."""
        from cuggino.events import DeliverEnded

        if self.compat and isinstance(ending.result, DeliverEnded):
            return autonoe_code(ending.result)
        return exit_code_of(ending)


def autonoe_code(end: DeliverEnded) -> int:
    """Return Autonoe's exit code, which is 0 or 1 (AUT-244)."""
    return 0 if end.outcome in ("approved", "interrupted", "max_iterations") else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanBuildView(_ResumableView):
    """A plan/build loop."""

    kind: ClassVar[Literal["loop"]] = "loop"

    view: LoopView

    @property
    def quietly(self) -> bool:
        return self.output.quiet

    def operator(self, controls: Controls, project: Path) -> Operator:
        from cuggino_cli.screen.plan_build_screen import with_loop_output

        return with_loop_output(controls, self.view, project=str(project), stamps=not self.compat)

    def hint(self, error: CugginoError) -> str | None:
        """Return the hint, or where to list models if the agent does not know one (LOP-114)."""
        if error.hint is None and "model" in error.message.lower():
            return "see `cuggino loop configure --model`: names of models differ per agent"
        return error.hint

    def exit_code(self, ending: Ending) -> int:
        """Return the exit code, with `compat` that of Lopen."""
        from cuggino.events import PlanBuildEnded

        if self.compat and isinstance(ending.result, PlanBuildEnded):
            return lopen_code(ending.result, ending.error)
        return exit_code_of(ending)


_AUTHENTICATION, _NETWORK, _AGENT, _CONFIGURATION = 3, 4, 5, 6
"""Lopen's own exit codes, beside 0, 1 for general failures, and 2 for wrong usage (LOP-007)."""


def lopen_code(end: PlanBuildEnded, error: BaseException | None = None) -> int:
    """Return Lopen's exit code for the end of a run."""
    from cuggino.errors import CugginoError

    match end.reason:
        case "complete" | "planned" | "interrupted":
            return 0
        case "quota_exceeded" | "max_retries_exceeded":
            return _AGENT
        case "failed":
            return lopen_error_code(error) if isinstance(error, CugginoError) else 1
        case "max_iterations" | "budget_exceeded" | "stalled" | "blocked":
            return 1
        case _ as never:
            assert_never(never)


def lopen_error_code(error: CugginoError) -> int:
    """Return Lopen's exit code for an error (LOP-006, LOP-007)."""
    from cuggino.errors import (
        AgentFailed,
        ConfigError,
        LlmSessionError,
        LoopError,
        NotLoggedIn,
    )
    from cuggino.git import BranchRefused
    from cuggino.prompts import PromptNotFound

    match error:
        case LoopError(cause=cause) if cause is not None:
            return lopen_error_code(cause)
        case AgentFailed(reason="auth") | NotLoggedIn():
            return _AUTHENTICATION
        case AgentFailed(reason="connection"):
            return _NETWORK
        case LlmSessionError():
            return _AGENT
        case PromptNotFound() | BranchRefused():
            return 1
        case ConfigError():
            return _CONFIGURATION
        case _:
            return 1
