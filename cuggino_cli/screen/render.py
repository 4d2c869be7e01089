"""The screen of a run: prints a stream as it passes, above a status area."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from reactivex import Observable, abc, defer, operators as ops

from cuggino.events import Event
from cuggino_cli.screen.controls import Controls
from cuggino_cli.screen.fragments import Fragment, Verbosity
from cuggino_cli.screen.messages import Messages
from cuggino_cli.screen.stamps import Stamps
from cuggino_cli.screen.status import RunStatus

E = TypeVar("E", bound=Event)


class Printer(Protocol):
    """What a loop prints of its events."""

    def show(self, event: Event, screen: Screen) -> None:
        """Print the event on the screen, if it shows anything."""


class Screen:
    """The output of one subscription: lines, and on a terminal a status below them.

    Args:
        controls: the lines, and what keys change.
        make_printer: makes the printer; called at the first event.
        clock: the current time.
        status: what is shown below the lines.
        stamps: begin each line with its time. Elsewhere than on a terminal, literal lines have
            none.
        bell: ring the terminal's bell when a person is needed.
    """

    def __init__(
        self,
        controls: Controls,
        make_printer: Callable[[], Printer],
        clock: Callable[[], datetime],
        *,
        status: RunStatus,
        stamps: bool,
        bell: bool,
    ) -> None:
        self._controls = controls
        self._lines = controls.lines
        self._make_printer = make_printer
        self._printer: Printer | None = None
        self._clock = clock
        self._bell = bell
        self._stamps = Stamps(self._lines) if stamps else None
        self.at = clock()
        """The time of the current event."""
        is_marked = stamps and self._lines.is_terminal
        self.messages = Messages(self._lines, self._mark if is_marked else None)
        if self._lines.is_live:
            controls.begin(status, self.at)

    @property
    def verbosity(self) -> Verbosity:
        """Return how much is shown now."""
        return self._controls.verbosity

    def show(self, event: Event) -> None:
        """Print the event, and follow it below the lines."""
        if self._printer is None:
            self._printer = self._make_printer()
        self.at = self._clock()
        self._printer.show(event, self)
        self._controls.add(event, self.at)
        self._controls.show()

    def print(
        self,
        fragments: list[Fragment],
        *,
        is_complaint: bool = False,
        is_literal: bool = False,
        slot: str = "",
    ) -> None:
        """Print the fragments on a line of their own, behind the time and `slot`."""
        if not self._bell:
            fragments = [one for one in fragments if one.label != "bell"]
        if self._stamps is not None and (self._lines.is_terminal or not is_literal):
            fragments = self._stamps.stamped(fragments, self.at, slot)
        elif slot:
            fragments = [Fragment("prose", slot), *fragments]
        self._lines.print(fragments, is_complaint=is_complaint)

    def _mark(self, is_first: bool) -> Fragment:
        assert self._stamps is not None
        return self._stamps.mark(self.at, is_first=is_first)

    def end(self) -> None:
        """End the last line, and erase the status."""
        self.messages.end()
        self._lines.show(None)


def with_printer(
    controls: Controls,
    make_printer: Callable[[], Printer],
    *,
    status: RunStatus | None = None,
    stamps: bool = True,
    bell: bool = True,
    clock: Callable[[], datetime] | None = None,
) -> Callable[[Observable[E]], Observable[E]]:
    """Print each event on a screen of its own per subscription, then emit it unchanged.

    The arguments are those of `Screen`; the default clock is the scheduler given at `subscribe`.
    The screen ends before completion, error and disposal. Its errors dispose the source and go to
    `on_error`.
    """

    def operator(source: Observable[E]) -> Observable[E]:
        def begin(scheduler: abc.SchedulerBase) -> Observable[E]:
            screen = Screen(
                controls,
                make_printer,
                clock or (lambda: _in_utc(scheduler.now)),
                status=status or RunStatus(),
                stamps=stamps,
                bell=bell,
            )

            def show(event: E) -> E:
                with controls.lines.at_once():
                    screen.show(event)
                return event

            def end(_: object = None) -> None:
                with contextlib.suppress(OSError):
                    screen.end()

            shown: Observable[E] = source.pipe(ops.map(show))
            return shown.pipe(
                ops.do_action(on_error=end, on_completed=screen.end), ops.finally_action(end)
            )

        return defer(begin)

    return operator


def _in_utc(at: datetime) -> datetime:
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
