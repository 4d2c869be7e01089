"""The view of a coding loop and a watch: its lines, its conclusion, and its exit codes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cuggino_cli.follow.follower import Ending, exit_code_of
from cuggino_cli.follow.output import OutputOptions

if TYPE_CHECKING:
    from reactivex import Observable

    from cuggino.events import Event, RunOutcome
    from cuggino.runs import RunState
    from cuggino_cli.screen.controls import Controls
    from cuggino_cli.screen.terminal import Lines

    Operator = Callable[[Observable[Any]], Observable[Any]]


class CodingView:
    """A coding loop or a watch: its lines, then a summary.

    Args:
        output: the output options of the command.
        bell: whether the terminal's bell rings when a person is needed.
        journaled: whether the run has a journal, so that it can be resumed.
        hint: how to resume this run, in place of the general sentence.
        kind: a run or a watch.
        focus: what it works on, if that is known.
    """

    quietly = False
    acknowledgment = ""

    def __init__(
        self,
        output: OutputOptions,
        *,
        bell: bool = True,
        journaled: bool = True,
        hint: str | None = None,
        kind: Literal["run", "watch"] = "run",
        focus: str = "",
    ) -> None:
        self.output = output
        self.kind = kind
        self.focus = focus
        self._bell = bell
        self._journaled = journaled
        self._hint = hint
        self._has_git = True

    @functools.cached_property
    def _run(self) -> RunState:
        from cuggino.runs import RunState

        return RunState(kind="" if self.kind == "run" else self.kind)

    def operator(self, controls: Controls, project: Path) -> Operator:
        from cuggino_cli.screen.render import with_cli_output

        self._has_git = any((place / ".git").exists() for place in (project, *project.parents))
        return with_cli_output(controls, project=str(project), bell=self._bell)

    def add(self, event: Event) -> None:
        self._run = self._run.add(event, at=datetime.now(UTC))

    def conclude(self, lines: Lines, ending: Ending) -> None:
        """Print the summary, if an iteration has begun."""
        from cuggino_cli.screen.summary import summary_fragments

        run, error = self._run, ending.error
        if error is not None:
            run = run.ended(_outcome(error))
        if run.tally.rounds:
            seconds = run.earlier + ending.seconds
            fragments = summary_fragments(
                run,
                duration_s=seconds,
                hint=self._hint,
                journaled=self._journaled,
                has_git=self._has_git,
            )
            lines.print(fragments)

    def exit_code(self, ending: Ending) -> int:
        return exit_code_of(ending)


def _outcome(error: BaseException) -> RunOutcome:
    """Return how a run ended that has no result, by its error."""
    from cuggino.errors import BudgetExceeded, CugginoError, Interrupted, QuotaExceeded

    if not isinstance(error, Exception) or isinstance(error, Interrupted):
        return "interrupted"
    match error.code if isinstance(error, CugginoError) else 1:
        case BudgetExceeded.exit_code:
            return "budget"
        case QuotaExceeded.exit_code:
            return "quota"
        case _:
            return "failed"
