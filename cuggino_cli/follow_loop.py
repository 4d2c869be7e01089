"""Following a run of the plan/build loop to its end: its lines, and the exit code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from cuggino_cli.follow import INTERRUPTED, OutputOptions

if TYPE_CHECKING:
    from reactivex import Observable

    from cuggino.errors import CugginoError
    from cuggino.events import PlanBuildEnded, PlanBuildExit, PlanBuildStreamEvent
    from cuggino_cli.output.plan_build_screen import LoopView

EXIT_CODES: Mapping[PlanBuildExit, int] = {
    "complete": 0,
    "planned": 0,
    "max_iterations": 11,
    "quota_exceeded": 12,
    "budget_exceeded": 13,
    "stalled": 14,
    "max_retries_exceeded": 14,
    "blocked": 15,
    "interrupted": INTERRUPTED,
    "failed": 1,
}
"""Exit codes by why the loop ended; that of `failed` is the error's, where there is one."""

_AUTHENTICATION, _NETWORK, _AGENT, _CONFIGURATION = 3, 4, 5, 6
"""Lopen's own exit codes, beside 0, 1 for what is general, and 2 for wrong usage (LOP-007)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopWays:
    """How a run is followed."""

    output: OutputOptions
    view: LoopView
    """What is shown of it."""
    compat: bool = False
    """End with Lopen's exit codes."""
    go_on: str = ""
    """What goes on with the run when it was cut off; empty when nothing does."""


def follow_loop(
    start: Callable[[Observable[object]], Observable[PlanBuildStreamEvent]], ways: LoopWays
) -> int:
    """Follow the run, as `follow_run` does; gives the exit code."""
    from cuggino.events import PlanBuildEnded
    from cuggino_cli import following
    from cuggino_cli.output.plan_build_screen import with_loop_output

    def code(end: PlanBuildEnded, error: CugginoError | None) -> int:
        return exit_code(end.reason, error, compat=ways.compat)

    return following.follow_run(
        start,
        following.Ways(
            output=ways.output,
            quietly=ways.output.quiet,
            shown=lambda terminal: with_loop_output(terminal, ways.view),
            last=PlanBuildEnded,
            exit_code=code,
            hint=_hint,
            go_on=ways.go_on,
        ),
    )


def _hint(error: CugginoError) -> str | None:
    """An agent that does not know the model says so in its own words (LOP-114)."""
    if error.hint is None and "model" in error.message.lower():
        return "see `cuggino loop configure --model`: names of models differ per agent"
    return error.hint


def exit_code(
    reason: PlanBuildExit, error: CugginoError | None = None, *, compat: bool = False
) -> int:
    """What a command ends with whose loop ended so."""
    if compat:
        return _compatible(reason, error)
    if reason == "failed" and error is not None:
        return error.code
    return EXIT_CODES[reason]


def _compatible(reason: PlanBuildExit, error: CugginoError | None) -> int:
    match reason:
        case "complete" | "planned" | "interrupted":
            return 0
        case "quota_exceeded" | "max_retries_exceeded":
            return _AGENT
        case "failed":
            return error_code(error) if error is not None else 1
        case "max_iterations" | "budget_exceeded" | "stalled" | "blocked":
            return 1
        case _ as never:
            assert_never(never)


def error_code(error: CugginoError) -> int:
    """What Lopen ends with for such an error (LOP-006, LOP-007)."""
    from cuggino.errors import AgentFailed, ConfigError, LlmSessionError, LoopError
    from cuggino.prompts.loop_prompts import PromptNotFound
    from cuggino.storage.branch import BranchRefused

    match error:
        case LoopError(cause=cause) if cause is not None:
            return error_code(cause)
        case AgentFailed(reason="auth"):
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
