"""The operator that prints a stream as it passes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Protocol, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SingleAssignmentDisposable

from cuggino.events import (
    Event,
    MessageDelta,
    PingEvent,
    QuotaWaiting,
    WatchAuditEnded,
    WatchBacklogWaiting,
    WatchSpecIssueWaiting,
)
from cuggino_cli.output.format import format_event
from cuggino_cli.output.partial import Partial
from cuggino_cli.output.spinner import Spinner
from cuggino_cli.output.terminal import Terminal
from cuggino_cli.output.theme import Fragment
from cuggino_cli.output.verbosity import Verbosity

E = TypeVar("E", bound=Event)


def with_cli_output(
    terminal: Terminal, *, verbosity: Verbosity, bell: bool = True
) -> Callable[[Observable[E]], Observable[E]]:
    """Prints each event, then passes it on unchanged; completion and errors pass too (CUG-130).

    Where the agent's messages are shown (`VERBOSE`), they are shown line by line while they are
    being written, as far as the agent tells them so.

    On an interactive terminal a spinner is drawn below the lines, by the scheduler given at
    `subscribe`; without one there is no spinner. It shows the time since the last event that is
    not a ping (CUG-134), shown or not, and rests while the watch only waits. It is erased
    before completion, error and disposal go on, and nothing stays scheduled. `bell` says whether
    the terminal's bell rings for what needs a person.

    Errors: what the terminal raises (BrokenPipeError) ends the source and goes to `on_error`.
    """

    def screen(
        scheduler: abc.SchedulerBase | None, on_error: Callable[[Exception], None]
    ) -> Screen:
        return _LoopScreen(terminal, verbosity, scheduler, bell=bell, on_error=on_error)

    return shown_on(screen)


class Screen(Protocol):
    """What one subscription shows."""

    def show(self, event: Event) -> None:
        """Shows the event, if there is anything to show."""

    def end(self) -> None:
        """Erases what does not stay, and lets go of its timers."""

    def close(self) -> None:
        """The same on a way out that has its own reason: a terminal that is gone is no second."""


MakeScreen = Callable[[abc.SchedulerBase | None, Callable[[Exception], None]], Screen]
"""Makes the screen of a subscription from its scheduler, and whom to tell of a broken terminal."""


def shown_on(make_screen: MakeScreen) -> Callable[[Observable[E]], Observable[E]]:
    """Shows each event on a screen of the subscription's own, then passes it on unchanged.

    The screen is ended before completion, error and disposal go on. Errors that it raises end the
    source and go to `on_error`.
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

            screen = make_screen(scheduler, fail)
            upstream.disposable = source.subscribe(on_next, fail, on_completed, scheduler=scheduler)
            return Disposable(dispose)

        return Observable(subscribe)

    return operator


class _LoopScreen:
    """The lines of one subscription, and its spinner, which is set to the last event."""

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
        self._partial = Partial()
        self._spinner: Spinner | None = None
        if terminal.interactive and scheduler is not None:
            self._spinner = Spinner(terminal, scheduler, on_error=on_error)
            self._spinner.start()

    def show(self, event: Event) -> None:
        fragments = self._fragments(event)
        # A wait is told once; how it goes on is the spinner's.
        told = self._waits and isinstance(event, QuotaWaiting)
        self._waits = isinstance(event, QuotaWaiting)
        if fragments is not None and not told:
            silenced = [f for f in fragments if self._bell or f.label != "bell"]
            self._terminal.print(silenced)
        if self._spinner is not None and not isinstance(event, PingEvent | MessageDelta):
            self._follow(event, self._spinner)

    def _fragments(self, event: Event) -> list[Fragment] | None:
        shown = self._partial.read(event) if self._verbosity >= Verbosity.VERBOSE else event
        return None if shown is None else format_event(shown, verbosity=self._verbosity)

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
        if self._spinner is not None:
            self._spinner.stop()
        self._terminal.clear()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.end()
