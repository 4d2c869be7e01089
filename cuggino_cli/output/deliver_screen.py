"""What a run of the deliverables loop shows: its lines, and a live list below them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from reactivex import Observable, abc

from cuggino.events import (
    DeliverablesListed,
    DeliverEvent,
    DeliverInstruction,
    DeliverSessionStarted,
    DeliverStreamEvent,
    Event,
    MessageDelta,
    NoProgress,
    PingEvent,
    QuotaWaiting,
    RateLimited,
    SessionEnded,
)
from cuggino_cli.output.deliver import Line, deliver_lines, waiting_lines
from cuggino_cli.output.deliver_debug import debug_line, sent_line
from cuggino_cli.output.deliver_panel import Panel
from cuggino_cli.output.format import format_event
from cuggino_cli.output.partial import Partial
from cuggino_cli.output.render import Screen, shown_on
from cuggino_cli.output.spinner import Ticker
from cuggino_cli.output.terminal import Terminal
from cuggino_cli.output.theme import Fragment
from cuggino_cli.output.verbosity import Verbosity

_COMPLAINTS = frozenset({"warning", "failure", "problem"})
"""Labels of lines that go to standard error (AUT-251)."""


class Piece(NamedTuple):
    """Fragments that are printed as one, and where they go."""

    fragments: list[Fragment]
    is_complaint: bool = False


class Wording:
    """The lines of one run's events, in the order of the events.

    Args:
        opening: lines that stand before all others; shown when there is a first event, so that a
            run that cannot begin does not look like one.
        instruction: with it, all that is sent and received is shown, for debugging: gives what a
            session is told.
    """

    def __init__(
        self,
        verbosity: Verbosity,
        *,
        opening: Iterable[Line] = (),
        instruction: Callable[[DeliverInstruction], str] | None = None,
    ) -> None:
        self._verbosity = verbosity
        self._opening = tuple(opening)
        self._instruction = instruction
        self._waits = False
        self._partial = Partial()
        self._listed: DeliverablesListed | None = None

    def pieces(self, event: Event) -> Iterator[Piece]:
        """What is to be printed for the event."""
        opening, self._opening = self._opening, ()
        lines = [*opening, *self._received(event)]
        told = self._waits
        self._waits = isinstance(event, QuotaWaiting)
        match event:
            case QuotaWaiting():
                # Told once; how it goes on is shown below the lines.
                lines += [] if told else waiting_lines(event)
            case DeliverablesListed() if event == self._listed:
                pass  # listed anew after each session
            case DeliverEvent():
                lines += deliver_lines(event, self._verbosity)
            case _:
                pass
        lines += self._sent(event)
        self._listed = event if isinstance(event, DeliverablesListed) else self._listed
        for line in lines:
            yield Piece(line.fragments, line.is_complaint)
        if not isinstance(event, QuotaWaiting | DeliverEvent) and not _is_told_later(event):
            fragments = self._fragments(event)
            if fragments is not None:
                yield Piece(fragments, any(f.label in _COMPLAINTS for f in fragments))

    def _fragments(self, event: Event) -> list[Fragment] | None:
        """The event as everywhere; messages line by line while they are being written."""
        shown = self._partial.read(event) if self._verbosity >= Verbosity.VERBOSE else event
        return None if shown is None else format_event(shown, verbosity=self._verbosity)

    def _received(self, event: Event) -> list[Line]:
        line = debug_line(event) if self._instruction is not None else None
        return [line] if line is not None else []

    def _sent(self, event: Event) -> list[Line]:
        if self._instruction is None or not isinstance(event, DeliverSessionStarted):
            return []
        return [sent_line(self._instruction(event.instruction))]


def _is_told_later(event: Event) -> bool:
    """Whether the loop tells it, with the end of the session or of the run."""
    match event:
        case SessionEnded() | NoProgress() | RateLimited(status="rejected"):
            return True
        case _:
            return False


def with_deliver_output(
    terminal: Terminal, wording: Wording
) -> Callable[[Observable[DeliverStreamEvent]], Observable[DeliverStreamEvent]]:
    """Prints each event, then passes it on unchanged; completion and errors pass too.

    On an interactive terminal the list of deliverables and the agent's activity are kept below
    the lines, by the scheduler given at `subscribe`. They are erased before completion, error
    and disposal go on, and nothing stays scheduled. Errors: as of `with_cli_output`.
    """

    def screen(
        scheduler: abc.SchedulerBase | None, on_error: Callable[[Exception], None]
    ) -> Screen:
        return _DeliverScreen(terminal, wording, scheduler, on_error=on_error)

    return shown_on(screen)


class _DeliverScreen:
    """What one subscription shows."""

    def __init__(
        self,
        terminal: Terminal,
        wording: Wording,
        scheduler: abc.SchedulerBase | None,
        *,
        on_error: Callable[[Exception], None],
    ) -> None:
        self._terminal = terminal
        self._wording = wording
        self._scheduler = scheduler
        self._ticker: Ticker | None = None
        if terminal.interactive and scheduler is not None:
            self._panel = Panel(since=scheduler.now)
            self._ticker = Ticker(self._draw, scheduler, on_error=on_error)
            self._ticker.start()

    def show(self, event: Event) -> None:
        printed = False
        for piece in self._wording.pieces(event):
            self._terminal.print(piece.fragments, is_complaint=piece.is_complaint)
            printed = True
        if self._ticker is not None and self._scheduler is not None:
            if not isinstance(event, PingEvent | MessageDelta):
                self._panel = self._panel.add(event, self._scheduler.now)
            if printed:
                self._draw()  # at once, so that the list does not blink

    def _draw(self) -> None:
        assert self._scheduler is not None
        now, height = self._scheduler.now, self._terminal.height()
        self._terminal.draw(self._panel.lines(now, height=height))

    def end(self) -> None:
        if self._ticker is not None:
            self._ticker.stop()
        self._terminal.clear()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.end()
