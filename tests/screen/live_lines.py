"""Test doubles of the output: a screen with a status area, without a thread, and its bench."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TextIO

from reactivex import Subject
from reactivex.testing import TestScheduler

from cuggino import events as ev
from cuggino_cli.screen.controls import Controls
from cuggino_cli.screen.fragments import Fragment, Verbosity, paint
from cuggino_cli.screen.printers import RunPrinter
from cuggino_cli.screen.render import Printer, with_printer
from cuggino_cli.screen.status import RunStatus
from cuggino_cli.screen.terminal import Lines, Status

from .screen import Screen


class StatusLines(Lines):
    """Lines that keep the status that they are to show."""

    is_live = True

    def __init__(self, screen: Screen, **options: Any) -> None:
        super().__init__(screen, is_terminal=True, **{"color": False, **options})
        self.screen = screen
        self.status: Status | None = None

    def columns(self) -> int:
        return self.screen.columns

    def show(self, status: Status | None) -> None:
        self.status = status

    def rows(self, now: datetime) -> list[str]:
        """Return the rows of the status as texts."""
        if self.status is None:
            return []
        rows = self.status.rows(now, columns=self.columns(), height=self.height())
        return [paint(row, color=False) for row in rows]


class Bench:
    """One subscription on a screen, in virtual seconds.

    Args:
        printer: makes the printer.
        live: on a terminal with a status area; else on a pipe.
        controls: further arguments of `Controls`.
    """

    def __init__(
        self,
        printer: Callable[[], Printer] = RunPrinter,
        *,
        live: bool = False,
        verbosity: Verbosity = Verbosity.NORMAL,
        screen: Screen | None = None,
        errors: TextIO | None = None,
        color: bool = False,
        status: RunStatus | None = None,
        stamps: bool = False,
        **controls: Any,
    ) -> None:
        self.clock = TestScheduler()
        self.screen = Screen(60) if screen is None else screen
        self.source: Subject[Any] = Subject()
        self.heard: list[ev.Event] = []
        self.ends: list[Exception | None] = []
        self.lines = (StatusLines if live else plain_on)(
            self.screen, errors=self.screen if errors is None else errors, color=color
        )
        self.controls = Controls(self.lines, verbosity=verbosity, **controls)
        self.subscription = self.source.pipe(
            with_printer(self.controls, printer, status=status, stamps=stamps)
        ).subscribe(
            self.heard.append,
            self.ends.append,
            lambda: self.ends.append(None),
            scheduler=self.clock,
        )

    def say(self, *events: ev.Event) -> str:
        """Emit the events and return everything written so far."""
        for event in events:
            self.source.on_next(event)
        return self.screen.getvalue()

    def at(self, second: float, *events: ev.Event) -> None:
        """Emit the events at that time."""
        self.clock.advance_to(second)
        self.say(*events)

    def show(self, *events: ev.Event) -> list[str]:
        """Emit the events and return the visible lines that are not empty."""
        self.say(*events)
        return [*filter(None, self.screen.visible())]

    def rows_at(self, second: float) -> list[str]:
        """Return the rows of the status at that time."""
        self.clock.advance_to(second)
        return self.lines.rows(self.now) if isinstance(self.lines, StatusLines) else []

    def seen_at(self, second: float) -> list[str]:
        """Return the visible lines and the rows of the status at that time."""
        return [*self.show(), *self.rows_at(second)]

    def end(self, how: str, error: Exception) -> None:
        """End the stream: it completes, fails with the error, or is disposed."""
        match how:
            case "complete":
                self.source.on_completed()
            case "error":
                self.source.on_error(error)
            case _:
                self.subscription.dispose()

    @property
    def now(self) -> datetime:
        """Return the virtual time."""
        return self.clock.now.replace(tzinfo=UTC)

    def scheduled(self) -> int:
        """Return the number of pending actions."""
        return sum(not item.is_cancelled() for item, _ in self.clock._queue.items)


def plain_on(stream: TextIO, **options: Any) -> Lines:
    """Return lines without color on a stream."""
    return Lines(stream, **{"color": False, **options})


def line(text: str) -> list[Fragment]:
    return [Fragment("plain", text)]
