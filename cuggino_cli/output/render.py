"""The operator that prints a stream as it passes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SingleAssignmentDisposable

from cuggino.events import (
    Event,
    PingEvent,
    QuotaWaiting,
    WatchAuditEnded,
    WatchBacklogWaiting,
    WatchSpecIssueWaiting,
)
from cuggino_cli.output.format import format_event
from cuggino_cli.output.spinner import Spinner
from cuggino_cli.output.terminal import Terminal
from cuggino_cli.output.verbosity import Verbosity

E = TypeVar("E", bound=Event)


def with_cli_output(
    terminal: Terminal, *, verbosity: Verbosity, bell: bool = True
) -> Callable[[Observable[E]], Observable[E]]:
    """Prints each event, then passes it on unchanged; completion and errors pass too (CUG-130).

    On an interactive terminal a spinner is drawn below the lines, by the scheduler given at
    `subscribe`; without one there is no spinner. It shows the time since the last event that is
    not a ping (CUG-134), shown or not, and rests while the watch only waits. It is erased
    before completion, error and disposal go on, and nothing stays scheduled. `bell` says whether
    the terminal's bell rings for what needs a person.

    Errors: what the terminal raises (BrokenPipeError) ends the source and goes to `on_error`.
    """

    def operator(source: Observable[E]) -> Observable[E]:
        def subscribe(
            observer: abc.ObserverBase[E], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            upstream = SingleAssignmentDisposable()

            def fail(error: Exception) -> None:
                screen.close()
                upstream.dispose()
                observer.on_error(error)

            def on_next(event: E) -> None:
                try:
                    screen.show(event)
                except Exception as error:
                    fail(error)
                else:
                    observer.on_next(event)

            def on_completed() -> None:
                try:
                    screen.end()
                except Exception as error:
                    fail(error)
                else:
                    observer.on_completed()

            def dispose() -> None:
                screen.close()
                upstream.dispose()

            screen = _Screen(terminal, verbosity, scheduler, bell=bell, on_error=fail)
            upstream.disposable = source.subscribe(on_next, fail, on_completed, scheduler=scheduler)
            return Disposable(dispose)

        return Observable(subscribe)

    return operator


class _Screen:
    """What one subscription shows: its lines and its spinner."""

    def __init__(
        self,
        terminal: Terminal,
        verbosity: Verbosity,
        scheduler: abc.SchedulerBase | None,
        *,
        bell: bool,
        on_error: Callable[[Exception], None],
    ) -> None:
        self._terminal = terminal
        self._verbosity = verbosity
        self._bell = bell
        self._waits = False
        self._spinner: Spinner | None = None
        if terminal.interactive and scheduler is not None:
            self._spinner = Spinner(terminal, scheduler, on_error=on_error)
            self._spinner.start()

    def show(self, event: Event) -> None:
        """Prints the event, if it shows anything, and sets the spinner to it."""
        fragments = format_event(event, verbosity=self._verbosity)
        # A wait is told once; how it goes on is the spinner's.
        told = self._waits and isinstance(event, QuotaWaiting)
        self._waits = isinstance(event, QuotaWaiting)
        if fragments is not None and not told:
            silenced = [f for f in fragments if self._bell or f.label != "bell"]
            self._terminal.print(silenced)
        if self._spinner is not None and not isinstance(event, PingEvent):
            self._follow(event, self._spinner)

    def _follow(self, event: Event, spinner: Spinner) -> None:
        spinner.restart_time()
        match event:
            case WatchBacklogWaiting() | WatchSpecIssueWaiting() | WatchAuditEnded():
                spinner.stop()  # nobody works until a file comes or goes
                self._terminal.clear()
            case QuotaWaiting(remaining=remaining):
                spinner.count_down(remaining)
                spinner.start()
            case _:
                spinner.start()

    def end(self) -> None:
        """Stops and erases the spinner."""
        if self._spinner is not None:
            self._spinner.stop()
        self._terminal.clear()

    def close(self) -> None:
        """The same on a way out that has its own reason: a terminal that is gone is no second."""
        with contextlib.suppress(OSError):
            self.end()
