"""The operator that prints a stream as it passes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal, Protocol, TypeVar, cast

from reactivex import Observable, abc, defer
from reactivex.disposable import Disposable, SingleAssignmentDisposable

from cuggino.events import Event, StageCost, WatchLanding, WatchProcessingItem, WatchSlotPrepared
from cuggino_cli.screen.columns import cut
from cuggino_cli.screen.controls import Controls
from cuggino_cli.screen.event_lines import EventLines
from cuggino_cli.screen.fragments import Fragment, Verbosity
from cuggino_cli.screen.stamps import Stamps
from cuggino_cli.screen.status import RunStatus
from cuggino_cli.screen.terminal import ColorMode, Lines, standard_lines
from cuggino_cli.screen.text import flat

_NAME = 20
"""Columns of an item's name before its lines."""

_COMMANDS = frozenset(
    {"SetupCommandStarted", "SetupCommandOutput", "CheckCommandStarted", "CheckCommandOutput"}
)

E = TypeVar("E", bound=Event)


def with_cli_output(
    controls: Controls | None = None,
    *,
    verbosity: Literal["quiet", "normal", "verbose"] = "normal",
    color: ColorMode = "auto",
    project: str | None = None,
    bell: bool = True,
    stamps: bool = True,
    clock: Callable[[], datetime] | None = None,
) -> Callable[[Observable[E]], Observable[E]]:
    """Print each event as the command line does, then emit it unchanged (CUG-130).

    ::

        from cuggino_cli import with_cli_output

        cuggino.run(runtime.run(focus="the login page").pipe(with_cli_output()))

    Any stream of events can be printed, also that of a single agent. `verbosity` and `color` are
    those of the command line's options: `verbose` prints messages line by line while they are
    streamed. With `stamps` each line begins with its time. `bell` lets the terminal's bell ring
    when a person is needed. Paths in `project` are printed relative to it. `clock` gives the times;
    default: the scheduler given at `subscribe`.

    The lines go to standard output. A command passes `controls` instead of `verbosity` and `color`:
    then a status area may be shown below the lines on a terminal. It is erased before completion,
    error and disposal.

    Errors: an error of the output (BrokenPipeError) disposes the source and goes to `on_error`.
    """

    def printed_on(chosen: Controls) -> Callable[[Observable[E]], Observable[E]]:
        def screen(now: Callable[[], datetime]) -> Screen:
            return RunScreen(chosen, clock or now, project=project, bell=bell, stamps=stamps)

        return shown_on(chosen.lines, screen)

    def operator(source: Observable[E]) -> Observable[E]:
        def begin(_scheduler: object) -> Observable[E]:
            lines = standard_lines(color)  # standard output may be another one by now
            return source.pipe(printed_on(Controls(lines, verbosity=Verbosity[verbosity.upper()])))

        return defer(begin)

    return operator if controls is None else printed_on(controls)


class Screen(Protocol):
    """The output of one subscription."""

    def show(self, event: Event) -> None:
        """Print the event if it shows anything."""

    def end(self) -> None:
        """Erase the status."""


MakeScreen = Callable[[Callable[[], datetime]], Screen]
"""Make the screen of a subscription from its clock."""


def clock_of(scheduler: abc.SchedulerBase | None) -> Callable[[], datetime]:
    """Return the clock of the scheduler, in UTC."""
    if scheduler is None:
        return lambda: datetime.now(UTC)

    def now() -> datetime:
        at = scheduler.now
        return at if at.tzinfo is not None else at.replace(tzinfo=UTC)

    return now


def shown_on(lines: Lines, make_screen: MakeScreen) -> Callable[[Observable[E]], Observable[E]]:
    """Show each event on a screen of its own per subscription, then emit it unchanged.

    The screen ends before completion, error and disposal. Its errors dispose the source and go to
    `on_error`.
    """

    def operator(source: Observable[E]) -> Observable[E]:
        def subscribe(
            observer: abc.ObserverBase[E], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            upstream = SingleAssignmentDisposable()

            def fail(error: Exception) -> None:
                with contextlib.suppress(OSError):
                    screen.end()
                upstream.dispose()
                observer.on_error(error)

            def on_next(event: E) -> None:
                try:
                    with lines.at_once():
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
                with contextlib.suppress(OSError):
                    screen.end()
                upstream.dispose()

            screen = make_screen(clock_of(scheduler))
            upstream.disposable = source.subscribe(on_next, fail, on_completed, scheduler=scheduler)
            return Disposable(dispose)

        return Observable(subscribe)

    return operator


class RunScreen:
    """The output of one subscription to a run or a watch."""

    def __init__(
        self,
        controls: Controls,
        clock: Callable[[], datetime],
        *,
        project: str | None,
        bell: bool,
        stamps: bool,
    ) -> None:
        self._controls = controls
        self._lines = controls.lines
        self._clock = clock
        self._bell = bell
        self._project = project
        self._events: dict[str | None, EventLines] = {None: EventLines(project=project)}
        """The lines of each item, and those of no item."""
        self._slots: dict[str, str] = {}
        """The prefix of each item's lines: its slot and its name."""
        self._item = ""
        """The item that a watch began last."""
        self._lands: str | None = None
        """The item that is being landed."""
        self._waits = False
        """All slots wait for a usage limit."""
        self._stamps = Stamps(on_terminal=self._lines.is_terminal) if stamps else None
        if self._lines.is_live:
            controls.begin(RunStatus(project=project or ""), clock())

    def show(self, event: Event) -> None:
        at, lines, controls = self._clock(), self._lines, self._controls
        columns = lines.columns() if lines.is_terminal else None
        is_live, own = lines.is_live, self._events[None]
        stamps, stamp = self._stamps, self._stamps.text(at) if self._stamps is not None else ""
        if self._item and isinstance(event, StageCost):
            event = event.of_item(self._item)  # its total is that of the watch
        if self._slots or isinstance(event, WatchProcessingItem):
            fragments, slot = self._shown(event, at)
        else:
            fragments, slot = own.fragments(event, controls.verbosity, at=at), ""
        if fragments is not None:
            if not self._bell:
                fragments = [f for f in fragments if f.label != "bell"]
            if stamps is not None:
                fragments = stamps.behind(stamp + slot, fragments, columns=columns)
            elif slot:
                fragments = [Fragment("prose", slot), *fragments]
            lines.print(fragments)
        if is_live:
            controls.add(event, at)
            controls.show()

    def end(self) -> None:
        self._lines.show(None)

    def _shown(self, event: Event, at: datetime) -> tuple[list[Fragment] | None, str]:
        """Return the event as fragments, and what is printed before them."""
        place = self._place(event)
        if place is None:
            return None, ""
        lines, slot = place
        return lines.fragments(event, self._controls.verbosity, at=at), slot

    def _place(self, event: Event) -> tuple[EventLines, str] | None:
        """Return the lines that an event belongs to, and what is printed before it.

        None for a usage limit that another slot has reported, as all slots wait for it.
        """
        tag = type(event).__name__
        if tag == "WatchProcessingItem":
            begun = cast("WatchProcessingItem", event)
            self._item = begun.filename
            if begun.slot:
                self._slots[begun.filename] = f"[{begun.slot} {_short(begun.filename)}] "
                self._events[begun.filename] = EventLines(project=self._project)
        own = self._events[None]
        if tag.startswith("Watch"):  # which names its item itself
            if tag == "WatchSlotPrepared":
                prepared = cast("WatchSlotPrepared", event)
                self._events[prepared.filename] = EventLines(project=prepared.folder)
            elif tag == "WatchLanding":
                self._lands = cast("WatchLanding", event).filename
            elif tag in _LANDED and getattr(event, "filename", "") == self._lands:
                self._lands = None
            return own, ""
        if tag in ("QuotaWaiting", "QuotaLifted"):
            waited, self._waits = self._waits, tag == "QuotaWaiting"
            return (own, "") if waited != self._waits else None
        if self._lands and tag in _COMMANDS and event.item in (None, self._lands):
            return own, f"[→ {_short(self._lands)}] "
        if event.item in self._slots:
            return self._events[event.item], self._slots[event.item]
        return own, ""


_LANDED = ("WatchLanded", "WatchProposed", "WatchSentBack")


def _short(filename: str) -> str:
    return cut(flat(filename.removesuffix(".md")), _NAME)
