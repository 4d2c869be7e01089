"""Output of the plan/build loop: the agent's words as they arrive, and lines (LOP-081)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from reactivex import Observable

from cuggino.config import LogLevel
from cuggino.events import (
    AgentMessage,
    Event,
    JobsCounted,
    MessageDelta,
    NoProgress,
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
from cuggino.runs.words import Words, words
from cuggino_cli.screen.controls import Controls
from cuggino_cli.screen.format import format_event, fragments_of, lines_of
from cuggino_cli.screen.fragments import Fragment, Verbosity
from cuggino_cli.screen.partial import Partial
from cuggino_cli.screen.render import Screen, shown_on
from cuggino_cli.screen.stamps import Stamps
from cuggino_cli.screen.status import RunStatus
from cuggino_cli.screen.terminal import Lines
from cuggino_cli.screen.text import inert


class Messages:
    """The messages of sessions, written as they arrive (LOP-081).

    No newline is added, and no half line is left. Parts with the same message id are chunks of one
    message; each message begins a line.

    Args:
        stream: write each chunk when it arrives; else all of them at the end of the session.
        mark: returns what precedes a line, the first one of a message or another one.
    """

    def __init__(
        self,
        lines: Lines,
        *,
        stream: bool,
        mark: Callable[[bool], Fragment] | None = None,
    ) -> None:
        self._lines = lines
        self._mark = mark
        self._begins = True
        self._is_first = True
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
        self._append(text.removesuffix("\r"))

    def _append(self, text: str) -> None:
        if self._mark is None:
            self._lines.append([Fragment("plain", text)])
            return
        for line in inert(text).splitlines(keepends=True):
            if self._begins:
                self._lines.append([self._mark(self._is_first)])
                self._is_first = False
            self._lines.append([Fragment("plain", line)])
            self._begins = line.endswith("\n")

    def _end_message(self) -> None:
        held, self._held, self._message_id = self._held, "", None
        self._append(held)
        self._begins = self._is_first = True
        self._lines.end_line()


Weight: TypeAlias = Literal["course", "info", "debug", "warning", "error"]
"""`course`: phases, iterations and the outcome, always shown. Warnings and errors go to standard
error."""

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
_COMPLAINTS: dict[str, Weight] = {
    "failure": "error",
    "problem": "error",
    "error": "error",
    "warning": "warning",
}
_BY_VERBOSITY: dict[str, Weight] = {"quiet": "course", "normal": "info", "verbose": "debug"}


def _weight(line: Words) -> Weight:
    return _COMPLAINTS.get(line.tone) or _BY_VERBOSITY[line.verbosity]


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
    controls: Controls, view: LoopView, *, project: str | None = None, stamps: bool = True
) -> Callable[[Observable[PlanBuildStreamEvent]], Observable[PlanBuildStreamEvent]]:
    """Print each event, behind a time stamp with `stamps`, then emit it unchanged.

    Elsewhere than on a terminal, the lines of the loop and the agent's messages are Lopen's,
    without a stamp. On a terminal a status area is shown below the lines; the line that the agent
    is writing is its first row. Before completion, error and disposal the last line is ended and
    the status erased. Errors: as `with_cli_output`.
    """

    def screen(clock: Callable[[], datetime]) -> Screen:
        return PlanBuildScreen(controls, view, clock, project=project, stamps=stamps)

    return shown_on(controls.lines, screen)


class PlanBuildScreen:
    """The output of one subscription to a plan/build loop."""

    def __init__(
        self,
        controls: Controls,
        view: LoopView,
        clock: Callable[[], datetime],
        *,
        project: str | None,
        stamps: bool,
    ) -> None:
        self._controls = controls
        self._lines = controls.lines
        self._view = view
        self._clock = clock
        self._at = clock()
        self._partial = Partial()
        self._is_verifying = False
        self._waits = False
        self._counted: JobsCounted | None = None
        self._columns: int | None = None
        self._stamps = Stamps(on_terminal=self._lines.is_terminal) if stamps else None
        mark = self._mark if stamps and self._lines.is_terminal else None
        self._messages = Messages(self._lines, stream=view.stream, mark=mark)
        if self._lines.is_live:
            controls.begin(RunStatus(project=project or ""), clock())

    def show(self, event: Event) -> None:
        at, controls = self._clock(), self._controls
        self._at = at
        self._columns = self._lines.columns() if self._lines.is_terminal else None
        if controls.verbosity != self._view.verbosity:
            self._view = replace(self._view, verbosity=controls.verbosity)
        self._print(event, at)
        controls.add(event, at)
        controls.show()

    def _mark(self, is_first: bool) -> Fragment:
        assert self._stamps is not None
        return self._stamps.mark(self._at, is_first=is_first)

    def _print(self, event: Event, at: datetime) -> None:
        if isinstance(event, SessionEnded | PlanBuildEvent):
            self._end_messages(event)
        if isinstance(event, AgentMessage | MessageDelta):
            self._add_message(event)
        for piece in self._pieces(event):
            if self._view.shows(piece.weight):
                fragments = piece.fragments
                if self._stamps is not None and (
                    self._lines.is_terminal or not isinstance(event, PlanBuildEvent)
                ):
                    fragments = self._stamps.stamped(fragments, at, columns=self._columns)
                self._lines.print(fragments, is_complaint=piece.weight in ("warning", "error"))
        self._waits = isinstance(event, QuotaWaiting)
        if isinstance(event, PlanBuildPhaseStarted):
            self._is_verifying = event.phase == "verify"
        if isinstance(event, JobsCounted):
            self._counted = event

    def _end_messages(self, event: Event) -> None:
        """End the messages with their session."""
        ends = SessionEnded | PlanBuildPhaseStarted | PlanBuildSessionRetry | PlanBuildEnded
        if isinstance(event, ends):
            self._messages.end()

    def _add_message(self, event: AgentMessage | MessageDelta) -> None:
        """Write a message, with `stream` while the agent writes it; with `--verbose` by lines."""
        part: Event | None = event
        by_line = self._shows_all
        if self._view.stream:
            part = self._partial.read(event, by_line=by_line)
        if isinstance(part, AgentMessage) and self._is_answer(part):
            # A carriage return at the end of the line is not part of the newline.
            newline = "\r\n" if by_line and isinstance(event, MessageDelta) else ""
            self._messages.add(part.model_copy(update={"text": part.text + newline}))

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
                lines = lines_of(event, Verbosity.VERBOSE)
                yield from (Piece(_weight(line), fragments_of(line)) for line in lines)
            case QuotaWaiting() if self._waits:
                pass  # printed once; the spinner counts down
            case ToolCall(name=name) if name in _SHOWN_BY_THE_LOOP and not self._shows_all:
                pass
            case SessionEnded(outcome="failed" | "interrupted" | "max_turns" | "budget" | "quota"):
                pass  # the loop reports it, as the next two
            case NoProgress() | RateLimited(status="rejected", overage=False):
                pass
            case _:
                yield from self._of_others(event)

    def _of_others(self, event: Event) -> Iterator[Piece]:
        """Yield the piece of an event of the agent or of supervision."""
        fragments, spoken = format_event(event, verbosity=self._view.verbosity), words(event)
        if fragments is not None and spoken is not None:
            yield Piece(_weight(spoken), fragments)

    def end(self) -> None:
        self._messages.end()
        self._lines.show(None)
