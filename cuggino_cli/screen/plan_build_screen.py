"""Output of the plan/build loop: the agent's words as they arrive, and lines (LOP-081)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from reactivex import Observable, abc

from cuggino.config import LogLevel
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
from cuggino_cli.screen.format import format_event
from cuggino_cli.screen.fragments import Fragment, Verbosity
from cuggino_cli.screen.plan_build_text import Weight, plan_build_lines
from cuggino_cli.screen.render import Partial, Screen, shown_on
from cuggino_cli.screen.spinner import Spinner
from cuggino_cli.screen.terminal import Terminal


class Words:
    """The messages of sessions, written as they arrive (LOP-081).

    No newline is added, and no half line is left. Parts with the same message id are chunks of one
    message; each message begins a line.

    Args:
        stream: write each chunk when it arrives; else all of them at the end of the session.
    """

    def __init__(self, terminal: Terminal, *, stream: bool) -> None:
        self._terminal = terminal
        self._stream = stream
        self._kept: list[AgentMessage] = []
        self._message_id: str | None = None
        self._held = ""
        """A carriage return at the end of a chunk, which may be half of a line ending."""

    def add(self, part: AgentMessage) -> None:
        """Add a message or a chunk of one."""
        if self._stream:
            self._write(part)
        else:
            self._kept.append(part)

    def end(self) -> None:
        """End the session."""
        kept, self._kept = self._kept, []
        for part in kept:
            self._write(part)
        self._end_message()

    def _write(self, part: AgentMessage) -> None:
        if part.message_id is None or part.message_id != self._message_id:
            self._end_message()
        self._message_id = part.message_id
        text = self._held + part.text
        self._held = "\r" if text.endswith("\r") else ""
        self._terminal.append([Fragment("plain", text.removesuffix("\r"))])

    def _end_message(self) -> None:
        held, self._held, self._message_id = self._held, "", None
        self._terminal.append([Fragment("plain", held)])
        self._terminal.end_line()


_SHOWN_BY_THE_LOOP = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit", "Task", "Agent"})
"""Tools whose calls are shown as `[file]` and `[sub-agent]`."""

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
"""Weights of events that are not the loop's own, by label."""


class Piece(NamedTuple):
    """Fragments printed together, and their weight."""

    weight: Weight
    fragments: list[Fragment]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopView:
    """The parts of a run to show."""

    verbosity: Verbosity
    stream: bool = True
    """Show the agent's messages as they arrive; else all of a session at its end."""
    log_level: LogLevel = "all"
    """`info` hides debug lines; `error` also hides other lines except the course (LOP-032)."""

    def shows(self, weight: Weight) -> bool:
        """Return whether to show a line of this weight."""
        return weight not in _HIDDEN[self.verbosity] | _FILTERED[self.log_level]


def with_loop_output(
    terminal: Terminal, view: LoopView
) -> Callable[[Observable[PlanBuildStreamEvent]], Observable[PlanBuildStreamEvent]]:
    """Print each event, then emit it unchanged.

    On an interactive terminal a spinner is drawn below the lines, by the scheduler given at
    `subscribe`, unless a line is unfinished. Before completion, error and disposal the last line
    is ended, and no timer remains. Errors: as `with_cli_output`.
    """

    def screen(
        scheduler: abc.SchedulerBase | None, on_error: Callable[[Exception], None]
    ) -> Screen:
        return _LoopScreen(terminal, view, scheduler, on_error=on_error)

    return shown_on(terminal, screen)


class _LoopScreen:
    """The output of one subscription."""

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
        """End the messages with their session."""
        ends = SessionEnded | PlanBuildPhaseStarted | PlanBuildSessionRetry | PlanBuildEnded
        if isinstance(event, ends):
            self._words.end()

    def _add_words(self, event: AgentMessage | MessageDelta) -> None:
        """Write a message; with `--verbose` line by line while it is streamed."""
        part: Event | None = event
        if self._shows_all and self._view.stream:
            part = self._partial.read(event)
        if isinstance(part, AgentMessage) and self._is_answer(part):
            # A carriage return at the end of the line is not part of the newline.
            newline = "\r\n" if isinstance(event, MessageDelta) else ""
            self._words.add(part.model_copy(update={"text": part.text + newline}))

    def _is_answer(self, event: AgentMessage) -> bool:
        """Return whether it is a message of the main agent to the person (LOP-081)."""
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
                pass  # unchanged; counted after each iteration
            case PlanBuildPhaseStarted(phase="verify") if self._is_verifying:
                pass  # one block, however many agents verify
            case PlanBuildEvent():
                yield from (Piece(line.weight, line.fragments) for line in plan_build_lines(event))
            case QuotaWaiting() if self._waits:
                pass  # printed once; the spinner counts down
            case ToolCall(name=name) if name in _SHOWN_BY_THE_LOOP and not self._shows_all:
                pass
            case SessionEnded(outcome="failed" | "interrupted" | "max_turns" | "budget" | "quota"):
                pass  # the loop reports it, as the next two
            case NoProgress() | RateLimited(status="rejected"):
                pass
            case _:
                yield from self._of_others(event)

    def _of_others(self, event: Event) -> Iterator[Piece]:
        """Yield the piece of an event of the agent or of supervision."""
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
