"""The views of followed runs: what each loop prints, its conclusion, and its exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias, assert_never

from cuggino import events as ev
from cuggino.config import LogLevel
from cuggino.errors import (
    AgentFailed,
    BudgetExceeded,
    ConfigError,
    CugginoError,
    Interrupted,
    LlmSessionError,
    LoopError,
    NotLoggedIn,
    QuotaExceeded,
)
from cuggino.git import BranchRefused
from cuggino.prompts import PromptNotFound
from cuggino.runs import DIGESTED, RunState
from cuggino_cli.follow.output import OutputOptions
from cuggino_cli.screen.fragments import Fragment
from cuggino_cli.screen.panel import DeliverStatus
from cuggino_cli.screen.printers import DeliverPrinter, LoopPrinter, RunPrinter
from cuggino_cli.screen.render import Printer
from cuggino_cli.screen.status import RunStatus
from cuggino_cli.screen.summary import summary_fragments
from cuggino_cli.screen.terminal import Lines

Kind: TypeAlias = Literal["run", "watch", "deliver", "loop"]
"""The kind of a run, as journals name it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The end of a followed run."""

    begun: bool
    """True if the run has emitted anything."""
    result: ev.RunResult | None
    """The last event, when it is a result."""
    error: BaseException | None
    """The error of the run, or the exception raised by a signal."""
    seconds: float
    """Seconds since its first event."""

    @property
    def is_reported(self) -> bool:
        """Return whether the result reports the error too, so that it need not be printed again."""
        return self.result is not None and self.result.is_resumable

    @property
    def exit_code(self) -> int:
        """Return the exit code of the result or, if the run failed, that of its error."""
        result, error = self.result, self.error
        failed = result is None or result.outcome == "failed" or isinstance(error, Interrupted)
        if failed and isinstance(error, CugginoError):
            return error.code
        return result.exit_code if result is not None else 1


@dataclass(kw_only=True)
class View:
    """A coding loop or a watch: its lines, then a summary. Those of other loops derive from it."""

    output: OutputOptions
    kind: Kind = "run"
    focus: str = ""
    """What the run works on, if that is known before it starts."""
    bell: bool = True
    """Ring the terminal's bell when a person is needed."""
    stamps: bool = True
    """Begin each line with its time."""
    journaled: bool = True
    """The run has a journal, so that it can be resumed."""
    hint: str | None = None
    """How to resume this run, in place of the general sentence."""
    quietly: bool = False
    """Draw nothing below the lines."""
    acknowledgment: ClassVar[str] = ""
    """The line of this loop for a first Ctrl-C, on standard output; empty for none."""

    _run: RunState = field(default_factory=RunState, init=False)
    _has_git: bool = field(default=True, init=False)

    def printer(self, project: Path) -> Printer:
        """Return what prints the events."""
        return RunPrinter(project=str(project))

    def status(self, project: Path) -> RunStatus:
        """Return what is shown below the lines."""
        self._has_git = any((place / ".git").exists() for place in (project, *project.parents))
        return RunStatus(project=str(project))

    def add(self, event: ev.Event) -> None:
        """Count the event for the summary."""
        if event.tag not in DIGESTED:
            return
        known = self._run if self._run.kind else replace(self._run, kind=self.kind)
        self._run = known.add(event, at=datetime.now(UTC))

    def conclude(self, lines: Lines, ending: Ending) -> None:
        """Print the summary, if an iteration has begun, or something has landed."""
        run, error = self._run, ending.error
        if error is not None:
            run = run.ended(_outcome(error))
        if run.tally.rounds or run.landings:
            fragments = summary_fragments(
                run,
                duration_s=run.earlier + ending.seconds,
                hint=self.hint,
                journaled=self.journaled,
                has_git=self._has_git,
            )
            lines.print(fragments)

    def exit_code(self, ending: Ending) -> int:
        """Return the exit code of a run whose error, if any, need not be raised."""
        return ending.exit_code


def _outcome(error: BaseException) -> ev.RunOutcome:
    """Return how a run ended that has no result, by its error."""
    if not isinstance(error, Exception) or isinstance(error, Interrupted):
        return "interrupted"
    match error.code if isinstance(error, CugginoError) else 1:
        case BudgetExceeded.exit_code:
            return "budget"
        case QuotaExceeded.exit_code:
            return "quota"
        case _:
            return "failed"


@dataclass(kw_only=True)
class _ResumableView(View):
    """A loop that sums up in its result; the last line shows how to resume it."""

    compat: bool = False
    """Print no time stamps, and return the exit codes of the original program."""
    go_on: str = ""
    """Instructions for resuming the run."""

    def __post_init__(self) -> None:
        self.stamps = not self.compat
        self.quietly = self.quietly or self.output.quiet

    def add(self, event: ev.Event) -> None:
        """Count nothing."""

    def conclude(self, lines: Lines, ending: Ending) -> None:
        """Print the hint of a reported error, and how to resume the run."""
        result, error = ending.result, ending.error
        if result is None and (error is None or isinstance(error, CugginoError)):
            return
        if not ending.begun or (result is not None and not result.is_resumable):
            return
        if result is not None and isinstance(error, CugginoError) and (hint := self._advice(error)):
            lines.print([Fragment("plain", f"  {hint}")], is_complaint=True)
        if self.go_on:
            lines.print([Fragment("heading", self.go_on)])

    def _advice(self, error: CugginoError) -> str | None:
        return error.hint


@dataclass(kw_only=True)
class DeliverView(_ResumableView):
    """A deliver loop."""

    acknowledgment: ClassVar[str] = "Received SIGINT, stopping..."
    """Autonoe's (AUT-243)."""
    kind: Kind = "deliver"
    opening: Iterable[str] = ()
    instruction: Callable[[ev.DeliverInstruction], str] | None = None
    """Return the instruction of a session; if given, everything sent and received is printed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.quietly = self.quietly or self.instruction is not None

    def printer(self, project: Path) -> Printer:
        return DeliverPrinter(
            project=str(project),
            opening=self.opening,
            instruction=self.instruction,
            words=not self.compat,
        )

    def status(self, project: Path) -> RunStatus:
        return DeliverStatus(project=str(project))

    def exit_code(self, ending: Ending) -> int:
        """Return the exit code, with `compat` that of Autonoe."""
        if self.compat and isinstance(ending.result, ev.DeliverEnded):
            return autonoe_code(ending.result)
        return ending.exit_code


def autonoe_code(end: ev.DeliverEnded) -> int:
    """Return Autonoe's exit code, which is 0 or 1 (AUT-244)."""
    return 0 if end.outcome in ("approved", "interrupted", "max_iterations") else 1


@dataclass(kw_only=True)
class PlanBuildView(_ResumableView):
    """A plan/build loop."""

    kind: Kind = "loop"
    stream: bool = True
    log_level: LogLevel = "all"

    def printer(self, project: Path) -> Printer:
        return LoopPrinter(project=str(project), stream=self.stream, log_level=self.log_level)

    def exit_code(self, ending: Ending) -> int:
        """Return the exit code, with `compat` that of Lopen."""
        if self.compat and isinstance(ending.result, ev.PlanBuildEnded):
            return lopen_code(ending.result, ending.error)
        return ending.exit_code

    def _advice(self, error: CugginoError) -> str | None:
        """Return the hint, or where to list models if the agent does not know one (LOP-114)."""
        if error.hint is None and "model" in error.message.lower():
            return "see `cuggino loop configure --model`: names of models differ per agent"
        return error.hint


_AUTHENTICATION, _NETWORK, _AGENT, _CONFIGURATION = 3, 4, 5, 6
"""Lopen's own exit codes, beside 0, 1 for general failures, and 2 for wrong usage (LOP-007)."""


def lopen_code(end: ev.PlanBuildEnded, error: BaseException | None = None) -> int:
    """Return Lopen's exit code for the end of a run."""
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
