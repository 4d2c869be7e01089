"""What a person asks of a run while it works: pause, continue, stop, skip, steer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NoReturn, TypeVar

from reactivex import Observable, abc, defer, from_iterable, merge, operators as ops
from reactivex.subject import Subject

from cuggino.agents.base import SpawnOptions
from cuggino.errors import Interrupted, ItemSkipped
from cuggino.events import (
    AgentRetry,
    ContinueAsked,
    ControlEvent,
    ControlIgnored,
    Event,
    PauseAsked,
    PauseEnded,
    QuotaLifted,
    QuotaWaiting,
    RunPaused,
    SkipAsked,
    StageFinished,
    SteerAsked,
    Steered,
    StopAsked,
)
from cuggino.loops.frame.interruption import Interruption
from cuggino.operators import Flow, ask, each_alone, emit, interrupt_when
from cuggino.storage import ControlFolder, Journal, JournalFile

T = TypeVar("T")

Announce = Callable[[ControlEvent], None]


class Control:
    """The commands to the runs of one workspace: those that were given, and what is left to do.

    A watch shares one with the runs of its items. All is done on the lane of the runs.
    """

    def __init__(
        self,
        interruption: Interruption,
        lane: abc.SchedulerBase,
        folder: ControlFolder | None = None,
    ) -> None:
        self._interruption = interruption
        self._lane = lane
        self._folder = folder
        self._announcers: list[Announce] = []
        """Those of the runs, the innermost one last: it records what is announced."""
        self._unsaid: list[ControlEvent] = []
        self._is_paused = False
        self._is_standing = False
        self._is_idle = False
        self._stops = False
        self._waits_until: datetime | None = None
        self._item: str | None = None
        self._messages: list[SteerAsked] = []
        """What no agent has been told yet."""
        self._told: Subject[str] = Subject()
        self._skipped: Subject[object] = Subject()
        self._changed: Subject[object] = Subject()

    @contextmanager
    def heard(self, commands: Observable[ControlEvent]) -> Iterator[None]:
        """Listen to the commands within the block, which must be entered on the lane.

        They may come on any thread. Their error ends the listening, not the run.
        """
        thread = threading.get_ident()

        def hear(command: ControlEvent) -> None:
            if threading.get_ident() == thread:
                self._hear(command)
            else:
                self._lane.schedule(lambda *_: self._hear(command))

        def fail(error: Exception) -> None:
            hear(ControlIgnored(source="control", reason=f"no more commands are heard: {error}"))

        listening = commands.subscribe(hear, fail, lambda: None, scheduler=self._lane)
        try:
            yield
        finally:
            listening.dispose()

    @contextmanager
    def announced(self, announce: Announce) -> Iterator[tuple[ControlEvent, ...]]:
        """Announce with this function within the block; gives what was not announced so far."""
        self._announcers.append(announce)
        unsaid, self._unsaid = tuple(self._unsaid), []
        try:
            yield unsaid
        finally:
            self._announcers.remove(announce)

    @contextmanager
    def at_work(self, item: str) -> Iterator[None]:
        """Apply commands about an item to this one within the block."""
        self._item = item
        try:
            yield
        finally:
            self._item = None

    def remember(self, journal: JournalFile) -> None:
        """Remember the messages of stages that a resumed run repeats."""
        told: dict[str | None, list[str]] = {}
        for entry in journal.entries.only(("StageFinished", "Steered")):
            if isinstance(entry.event, Steered):
                told.setdefault(entry.stage, []).append(entry.event.text)
            elif isinstance(entry.event, StageFinished):  # the last entry of a process comes, too
                told.pop(entry.stage, None)
        known = [message.text for message in self._messages]
        texts = [text for texts in told.values() for text in texts if text not in known]
        self._messages[:0] = [SteerAsked(text=text) for text in texts]

    def watched(self, run: Observable[T]) -> Observable[T]:
        """Pass the run on, and notice what it waits for and what its agents have been told."""
        return run.pipe(each_alone(self._look))

    def unless_skipped(self, run: Observable[T]) -> Observable[T]:
        """Pass the run of an item on until it is skipped; then release it, with `ItemSkipped`."""

        def skip(_: object) -> NoReturn:
            raise ItemSkipped

        return run.pipe(interrupt_when(self._skipped.pipe(ops.map(skip))))

    @contextmanager
    def idle(self) -> Iterator[None]:
        """Stop at once within the block, as no item is at work."""
        self._is_idle = True
        try:
            yield
        finally:
            self._is_idle = False

    def stand_still(self) -> Flow[None]:
        """Stop here, or stand still here until the run may continue, if a person wants that.

        Raises:
            Interrupted: the run is to end here.
        """
        self._unless_stopped()
        if not self._is_paused:
            return
        began = self._lane.now
        self._announce(RunPaused())
        self._is_standing = True
        try:
            is_over: Callable[[object], bool] = lambda _: not self._is_paused  # noqa: E731
            goes_on = self._changed.pipe(ops.filter(is_over), ops.take(1))
            yield from ask(self._interruption.ending(goes_on), name="paused")
        finally:
            self._is_standing = False
        self._announce(PauseEnded(seconds=(self._lane.now - began).total_seconds()))
        self._unless_stopped()

    def told(self, options: SpawnOptions) -> Flow[SpawnOptions]:
        """Add to the prompt what a person wants the agent to know; later messages come live."""
        texts = [message.text for message in self._messages]
        if texts:
            yield from emit(*(Steered(text=text, to="prompt") for text in texts))
        prompt = "\n\n".join([options.prompt, *map(_section, texts)])
        return replace(options, prompt=prompt, messages=self._later())

    def _later(self) -> Observable[str]:
        def waiting() -> Observable[str]:
            return from_iterable([message.text for message in self._messages])

        return defer(lambda _: merge(waiting(), self._told))

    def _hear(self, command: ControlEvent) -> None:
        match command:
            case PauseAsked():
                if not self._is_paused:
                    self._is_paused = True
                    self._announce(command)
                    self._changed.on_next(command)
            case ContinueAsked():
                self._settle(command, PauseAsked())
                if self._is_paused:
                    self._is_paused = False
                    self._announce(command)
                    self._changed.on_next(command)
                else:
                    self._announce(ControlIgnored(source="continue", reason="nothing is paused"))
            case StopAsked(now=now):
                self._settle(command)
                self._announce(command)
                if now or self._is_waiting:
                    self._interruption.ask()
                else:
                    self._stops = True
                    self._changed.on_next(command)
            case SkipAsked(item=item):
                self._settle(command)
                if self._has("skip", item):
                    self._announce(command)
                    self._skipped.on_next(command)
            case SteerAsked(text=text, item=item):
                if item is None or self._has("steer", item):
                    self._announce(command)
                    self._messages.append(command)
                    self._told.on_next(text)
                else:
                    self._settle(command)
            case ControlIgnored():
                self._announce(command)
            case _:
                self._announce(ControlIgnored(source=command.tag, reason="it is no command"))

    def _has(self, command: str, item: str | None) -> bool:
        """Return whether the command is about the item at work; announce it if not."""
        if self._item is not None and item in (None, self._item):
            return True
        reason = "no item is at work" if self._item is None else f"{item} is not at work"
        self._announce(ControlIgnored(source=command, reason=reason))
        return False

    def _look(self, event: Event) -> None:
        match event:
            case Steered(text=text):
                said = next((m for m in self._messages if m.text == text), None)
                if said is not None:
                    self._messages.remove(said)
                    self._settle(said)
            case QuotaWaiting(remaining=seconds) | AgentRetry(retry_in=seconds):
                self._waits_until = self._lane.now + timedelta(seconds=seconds)
            case QuotaLifted():
                self._waits_until = None
            case _:
                pass

    @property
    def _is_waiting(self) -> bool:
        """Whether no agent works, so that an end need not wait for one."""
        waits = self._waits_until is not None and self._lane.now < self._waits_until
        return waits or self._is_standing or self._is_idle

    def _unless_stopped(self) -> None:
        if self._stops:
            self._stops = False
            raise Interrupted("stopped after the stage")

    def _announce(self, event: ControlEvent) -> None:
        if self._announcers:
            self._announcers[-1](event)
        else:
            self._unsaid.append(event)

    def _settle(self, *commands: ControlEvent) -> None:
        if self._folder is not None:
            for command in commands:
                self._folder.settle(command)


def _section(text: str) -> str:
    return (
        "## A message from the user\n\n"
        "It came while you were at work. It does not change what your role may do.\n\n"
        f"{text.strip()}"
    )


def announcing(
    journal: Journal | None, lane: abc.SchedulerBase
) -> tuple[Subject[ControlEvent], Announce]:
    """Return a stream of announcements, and the function that records and emits one."""
    news: Subject[ControlEvent] = Subject()

    def announce(event: ControlEvent) -> None:
        if journal is not None:
            journal.append(event, at=lane.now)
        news.on_next(event)

    return news, announce
