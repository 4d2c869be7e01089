"""What a run of the plan/build loop shows: the agent's words as they come, and lines (LOP-081)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from reactivex import Observable, abc

from cuggino.config.loop_config import LogLevel
from cuggino.events import (
    AgentMessage,
    Event,
    JobsCounted,
    MessageDelta,
    NoProgress,
    PingEvent,
    PlanBuildEnded,
    PlanBuildEvent,
    PlanBuildPhaseStarted,
    PlanBuildSessionRetry,
    PlanBuildStreamEvent,
    QuotaWaiting,
    RateLimited,
    SessionEnded,
    ToolCall,
)
from cuggino_cli.output.format import format_event
from cuggino_cli.output.partial import Partial
from cuggino_cli.output.plan_build import Weight, plan_build_lines
from cuggino_cli.output.plan_build_words import Words
from cuggino_cli.output.render import Screen, shown_on
from cuggino_cli.output.spinner import Spinner
from cuggino_cli.output.terminal import Terminal
from cuggino_cli.output.theme import Fragment
from cuggino_cli.output.verbosity import Verbosity

_TOLD_BY_THE_LOOP = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit", "Task", "Agent"})
"""Tools whose calls show as `[file]` and `[sub-agent]`."""

_HIDDEN: dict[Verbosity, frozenset[Weight]] = {
    Verbosity.QUIET: frozenset({"info", "debug"}),
    Verbosity.NORMAL: frozenset({"debug"}),
    Verbosity.VERBOSE: frozenset(),
}
_FILTERED: dict[LogLevel, frozenset[Weight]] = {
    "all": frozenset(),
    "info": frozenset({"debug"}),
    "error": frozenset({"info", "debug", "warning"}),
}
_WEIGHTS: dict[str, Weight] = {
    "failure": "error",
    "problem": "error",
    "error": "error",
    "warning": "warning",
    "caution": "warning",
}
"""By the label of what is no event of the loop itself."""


class Piece(NamedTuple):
    """Fragments that are printed as one, and how much they weigh."""

    weight: Weight
    fragments: list[Fragment]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopView:
    """What is shown of a run."""

    verbosity: Verbosity
    stream: bool = True
    """Show the agent's words as they come; else all of a session at its end."""
    log_level: LogLevel = "all"
    """`info`: nothing for debugging; `error`: of our own lines errors alone, beside the course
    (LOP-032)."""

    def shows(self, weight: Weight) -> bool:
        """Whether a line of this weight is shown."""
        return weight not in _HIDDEN[self.verbosity] | _FILTERED[self.log_level]


def with_loop_output(
    terminal: Terminal, view: LoopView
) -> Callable[[Observable[PlanBuildStreamEvent]], Observable[PlanBuildStreamEvent]]:
    """Shows each event, then passes it on unchanged; completion and errors pass too.

    On an interactive terminal a spinner turns below the lines, by the scheduler given at
    `subscribe`, unless a line is unfinished. When completion, error or disposal go on, the last
    line is finished and nothing stays scheduled. Errors: as of `with_cli_output`.
    """

    def screen(
        scheduler: abc.SchedulerBase | None, on_error: Callable[[Exception], None]
    ) -> Screen:
        return _LoopScreen(terminal, view, scheduler, on_error=on_error)

    return shown_on(screen)


class _LoopScreen:
    """What one subscription shows."""

    def __init__(
        self,
        terminal: Terminal,
        view: LoopView,
        scheduler: abc.SchedulerBase | None,
        *,
        on_error: Callable[[Exception], None],
    ) -> None:
        self._terminal = terminal
        self._view = view
        self._words = Words(terminal, stream=view.stream)
        self._partial = Partial()
        self._is_verifying = False
        self._waits = False
        self._counted: JobsCounted | None = None
        self._spinner: Spinner | None = None
        if terminal.interactive and scheduler is not None:
            self._spinner = Spinner(terminal, scheduler, on_error=on_error)
            self._spinner.start()

    def show(self, event: Event) -> None:
        if isinstance(event, SessionEnded | PlanBuildEvent):
            self._end_words(event)
        if isinstance(event, AgentMessage | MessageDelta):
            self._add_words(event)
        for piece in self._pieces(event):
            if self._view.shows(piece.weight):
                is_complaint = piece.weight in ("warning", "error")
                self._terminal.print(piece.fragments, is_complaint=is_complaint)
        self._waits = isinstance(event, QuotaWaiting)
        if isinstance(event, PlanBuildPhaseStarted):
            self._is_verifying = event.phase == "verify"
        if isinstance(event, JobsCounted):
            self._counted = event
        if self._spinner is not None and not isinstance(event, PingEvent | MessageDelta):
            self._spinner.restart_time()
            if isinstance(event, QuotaWaiting):
                self._spinner.count_down(event.remaining)

    def _end_words(self, event: Event) -> None:
        """With the session all of its words are out."""
        ends = SessionEnded | PlanBuildPhaseStarted | PlanBuildSessionRetry | PlanBuildEnded
        if isinstance(event, ends):
            self._words.end()

    def _add_words(self, event: AgentMessage | MessageDelta) -> None:
        """With `--verbose` a message is written line by line while it is being written."""
        part: Event | None = event
        if self._shows_all and self._view.stream:
            part = self._partial.read(event)
        if isinstance(part, AgentMessage) and self._is_answer(part):
            # A carriage return at the end of the line is none of the newline's.
            newline = "\r\n" if isinstance(event, MessageDelta) else ""
            self._words.add(part.model_copy(update={"text": part.text + newline}))

    def _is_answer(self, event: AgentMessage) -> bool:
        """Whether it is what the loop's own agent says to the person (LOP-081)."""
        if self._view.verbosity == Verbosity.QUIET:
            return False
        is_aside = self._is_verifying or event.parent_tool_use_id is not None
        return not is_aside or self._shows_all

    @property
    def _shows_all(self) -> bool:
        return self._view.verbosity == Verbosity.VERBOSE

    def _pieces(self, event: Event) -> Iterator[Piece]:
        match event:
            case AgentMessage():
                pass
            case JobsCounted() if event == self._counted:
                pass  # counted anew after each iteration
            case PlanBuildPhaseStarted(phase="verify") if self._is_verifying:
                pass  # one block, however many agents verify
            case PlanBuildEvent():
                yield from (Piece(line.weight, line.fragments) for line in plan_build_lines(event))
            case QuotaWaiting() if self._waits:
                pass  # told once; how it goes on is the spinner's
            case ToolCall(name=name) if name in _TOLD_BY_THE_LOOP and not self._shows_all:
                pass
            case SessionEnded(outcome="failed" | "interrupted" | "max_turns" | "budget" | "quota"):
                pass  # the loop tells it, as the next two
            case NoProgress() | RateLimited(status="rejected"):
                pass
            case _:
                yield from self._of_others(event)

    def _of_others(self, event: Event) -> Iterator[Piece]:
        """What an event of the agent or of a policy shows, as everywhere."""
        fragments = format_event(event, verbosity=self._view.verbosity)
        if fragments is None:
            return
        weights = {_WEIGHTS[f.label] for f in fragments if f.label in _WEIGHTS}
        if weights:
            yield Piece("error" if "error" in weights else "warning", fragments)
        else:
            is_debug = format_event(event, verbosity=Verbosity.NORMAL) is None
            yield Piece("debug" if is_debug else "info", fragments)

    def end(self) -> None:
        if self._spinner is not None:
            self._spinner.stop()
        self._words.end()
        self._terminal.clear()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.end()
