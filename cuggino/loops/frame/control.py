"""Commands from a person to a run at work: pause, continue, stop, skip, steer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
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
from cuggino.loops.frame.pending import Announce, Announcements, Inbox, Waits
from cuggino.operators import (
    Flow,
    ask,
    emit,
    interrupt_when,
)
from cuggino.storage import ControlFolder, Journal, JournalFile

T = TypeVar("T")


_LOOKED_AT = (AgentRetry, QuotaLifted, QuotaWaiting, Steered)
"""The events that change the pending messages or the current wait."""


class _Standing:
    """The pause or stop that is in force for all items of a workspace."""

    def __init__(self) -> None:
        self.is_paused = False
        self.stops = False
        self.changed: Subject[object] = Subject()


class Control:
    """The commands to the runs of one workspace, and their state: done or still pending.

    A watch shares one with the runs of its items, or gives each run that works beside others an
    `ItemControl`. Everything happens on the lane of the runs.
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
        self._announcements = Announcements()
        self._standing = _Standing()
        self._waits = Waits()
        self._inbox = Inbox()
        self._item: str | None = None
        self._skipped: Subject[object] = Subject()
        self._beside: dict[str, ItemControl] = {}
        """The items that are at work at the same time."""
        self._kept: dict[str, list[SteerAsked]] = {}
        """Messages for an item that no agent has received, while the item is not at work."""
        self._is_known: Callable[[str], bool] = lambda _item: False
        self._put_aside: Callable[[str], Event | None] = lambda _item: None

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
            hear(
                ControlIgnored(source="control", reason=f"stopped listening for commands: {error}")
            )

        listening = commands.subscribe(hear, fail, lambda: None, scheduler=self._lane)
        try:
            yield
        finally:
            listening.dispose()

    def announced(self, announce: Announce) -> AbstractContextManager[tuple[Event, ...]]:
        """Announce with this function within the block; yields the events not announced so far."""
        return self._announcements.announced(announce)

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
        known = self._inbox.texts
        texts = [text for texts in told.values() for text in texts if text not in known]
        self._inbox.put_first([SteerAsked(text=text) for text in texts])

    def watched(self, run: Observable[T]) -> Observable[T]:
        """Pass the run on, and track its waits and the messages that its agents have received."""
        return run.pipe(ops.do_action(self._look))

    def unless_skipped(self, run: Observable[T]) -> Observable[T]:
        """Pass the run of an item on until it is skipped; then release it, with `ItemSkipped`."""

        def skip(_: object) -> NoReturn:
            raise ItemSkipped

        return run.pipe(interrupt_when(self._skipped.pipe(ops.map(skip))))

    def keeps_for(self, is_known: Callable[[str], bool]) -> None:
        """Keep messages to an item that `is_known` until it is at work."""
        self._is_known = is_known

    def skips_with(self, put_aside: Callable[[str], Event | None]) -> None:
        """Use `put_aside` to skip an item whose work waits, and announce its result.

        It returns None for any other item, and `ControlIgnored` if it could not.
        """
        self._put_aside = put_aside

    def begin_item(self, item: str, control: ItemControl) -> list[SteerAsked]:
        """Pass commands about the item to its control; return the messages that wait for it."""
        waiting = self._kept.pop(item, [])
        if not self._beside:
            waiting = [*self._inbox.emptied(), *waiting]
        self._beside[item] = control
        return waiting

    def end_item(self, item: str, unread: list[SteerAsked]) -> None:
        """Keep the unread messages of an item that is no longer at work."""
        del self._beside[item]
        if unread:
            self._kept[item] = unread

    def forget(self, item: str) -> None:
        """Drop the undelivered messages of an item that is no longer worked on."""
        for message in self._kept.pop(item, []):
            self._settle(message)
            reason = f"message not delivered, {item} has ended: {message.text[:80]}"
            self._announce(ControlIgnored(source="steer", reason=reason, item=item))

    @property
    def holds_back(self) -> bool:
        """True if nothing may begin now, because a pause or a stop is in force."""
        return self._standing.is_paused or self._standing.stops

    @property
    def stops(self) -> bool:
        """True if all runs are to end after their current stages."""
        return self._standing.stops

    @property
    def changed(self) -> Observable[object]:
        """Emits whenever `holds_back` may have changed."""
        return self._standing.changed

    @contextmanager
    def idle(self) -> Iterator[None]:
        """Stop at once within the block, as no item is at work."""
        self._waits = replace(self._waits, is_idle=True)
        try:
            yield
        finally:
            self._waits = replace(self._waits, is_idle=False)

    def stand_still(self) -> Flow[None]:
        """Stop here, or pause here until the run may continue, if a person has asked for it.

        Raises:
            Interrupted: the run is to end here.
        """
        self._unless_stopped()
        if not self._standing.is_paused:
            return
        began = self._lane.now
        self._announce(RunPaused())
        self._waits = replace(self._waits, is_paused=True)
        try:
            is_over: Callable[[object], bool] = lambda _: not self._standing.is_paused  # noqa: E731
            goes_on = self._standing.changed.pipe(ops.filter(is_over), ops.take(1))
            yield from ask(self._interruption.ending(goes_on), name="paused")
        finally:
            self._waits = replace(self._waits, is_paused=False)
        self._announce(PauseEnded(seconds=(self._lane.now - began).total_seconds()))
        self._unless_stopped()

    def told(self, options: SpawnOptions) -> Flow[SpawnOptions]:
        """Add the pending messages of a person to the prompt; later ones are delivered live."""
        texts = self._inbox.texts
        if texts:
            yield from emit(*(Steered(text=text, to="prompt") for text in texts))
        prompt = "\n\n".join([options.prompt, *map(_section, texts)])
        return replace(options, prompt=prompt, messages=self._inbox.delivered())

    def _hear(self, command: ControlEvent) -> None:
        match command:
            case PauseAsked():
                if not self._standing.is_paused:
                    self._standing.is_paused = True
                    self._announce(command)
                    self._standing.changed.on_next(command)
            case ContinueAsked():
                self._settle(command, PauseAsked())
                if self._standing.is_paused:
                    self._standing.is_paused = False
                    self._announce(command)
                    self._standing.changed.on_next(command)
                else:
                    self._announce(ControlIgnored(source="continue", reason="nothing is paused"))
            case StopAsked(now=now):
                self._settle(command)
                self._announce(command)
                if now or self._is_waiting:
                    self._interruption.ask()
                else:
                    self._standing.stops = True
                    self._standing.changed.on_next(command)
                    for item in [*self._beside.values()]:
                        item.stop_waiting()
            case SkipAsked(item=item):
                self._settle(command)
                if (aside := self._put_aside(item) if item else None) is not None:
                    if not isinstance(aside, ControlIgnored):
                        self._announce(command)
                    self._announce(aside)
                elif (to := self._at_work("skip", item)) is not None:
                    to._announce(command)
                    to._skipped.on_next(command)
            case SteerAsked(item=item):
                if item is not None and item not in self._beside and self._is_known(item):
                    self._announce(command)
                    self._kept.setdefault(item, []).append(command)
                elif item is None and not self._beside:
                    self._take(command)
                elif (to := self._at_work("steer", item)) is not None:
                    to._take(command)
                else:
                    self._settle(command)
            case ControlIgnored():
                self._announce(command)
            case _:
                self._announce(ControlIgnored(source=command.tag, reason="unknown command"))

    def _take(self, message: SteerAsked) -> None:
        """Deliver a message to the agent at work, or else to the next one."""
        self._announce(message)
        self._inbox.take(message)

    def _at_work(self, command: str, item: str | None) -> Control | None:
        """Return the control of the item at work that is meant; announce it if there is none."""
        working = self._beside
        if len(working) > 1 and item is None:
            reason = f"name one of the items at work: {', '.join(working)}"
        elif working and (item is None or item in working):
            return working[item] if item is not None else next(iter(working.values()))
        elif self._item is not None and item in (None, self._item):
            return self
        elif self._item is None and not working:
            reason = "no item is at work"
        else:
            reason = f"{item} is not at work"
        self._announce(ControlIgnored(source=command, reason=reason))
        return None

    def _look(self, event: object) -> None:
        if self._beside or not isinstance(event, _LOOKED_AT):
            return  # with several items at work, each control looks for itself
        self._waits = self._waits.after(event, self._lane.now)
        if isinstance(event, Steered) and (message := self._inbox.received(event.text)) is not None:
            self._settle(message)

    @property
    def _is_waiting(self) -> bool:
        """True if no agent is at work that a stop would have to wait for."""
        # With several items at work, `stop_waiting` ends those that wait.
        return not self._beside and self._waits.at(self._lane.now)

    def _unless_stopped(self) -> None:
        if self._standing.stops:
            self._standing.stops = False
            raise Interrupted("stopped after the stage")

    def _announce(self, event: Event) -> None:
        self._announcements.announce(event)

    def _settle(self, *commands: ControlEvent) -> None:
        if self._folder is not None:
            for command in commands:
                self._folder.settle(command)


class ItemControl(Control):
    """The commands to one item at work beside others; a pause or a stop applies to all."""

    def __init__(self, all_items: Control, item: str) -> None:
        super().__init__(all_items._interruption, all_items._lane, all_items._folder)
        self._standing = all_items._standing
        self._all = all_items
        self._item = self._name = item
        # Before its run begins, all items report for it.
        self._announcements = Announcements(self._announce_for_all)
        self._stopped: Subject[object] = Subject()

    @contextmanager
    def hearing(self) -> Iterator[None]:
        """Receive commands to the item within the block, and messages that arrived before it."""
        self._inbox.put_first(self._all.begin_item(self._name, self))
        try:
            yield
        finally:
            self._all.end_item(self._name, self._inbox.emptied())

    def obeyed(self, run: Observable[T]) -> Observable[T]:
        """Pass the run of the item on until it is skipped, or a stop comes while it waits."""

        def stop(_: object) -> NoReturn:
            raise Interrupted("stopped while it waited")

        stops: Observable[object] = self._stopped.pipe(ops.map(stop))
        return self.unless_skipped(self.watched(run).pipe(interrupt_when(stops)))

    def orders(self) -> Observable[ControlEvent]:
        """Emit commands for the item's agents on another machine: messages, pause, stop.

        A pause or a stop in force and undelivered messages come first.
        """

        def begun() -> Observable[ControlEvent]:
            paused = [PauseAsked()] if self._standing.is_paused else []
            stopped = [StopAsked()] if self._standing.stops else []
            waiting = map(message, self._inbox.texts)
            return from_iterable([*paused, *stopped, *waiting])

        # There, it is the only item.
        message: Callable[[str], ControlEvent] = lambda text: SteerAsked(text=text)  # noqa: E731
        told = self._inbox.arrived.pipe(ops.map(message))
        asked = self._standing.changed.pipe(
            ops.filter(lambda command: isinstance(command, ControlEvent))
        )
        return defer(lambda _: merge(begun(), told, asked))

    def stop_waiting(self) -> None:
        """End the run of the item if no agent of it works."""
        if self._is_waiting:
            self._stopped.on_next(True)

    def _unless_stopped(self) -> None:
        if self._standing.stops:  # for all, so it is not over
            raise Interrupted("stopped after the stage")

    def _announce_for_all(self, event: Event) -> None:
        self._all._announce(event.model_copy(update={"item": self._item}))


def _section(text: str) -> str:
    return (
        "## A message from the user\n\n"
        "It came while you were at work. It does not change what your role may do.\n\n"
        f"{text.strip()}"
    )


def announcing(journal: Journal | None, lane: abc.SchedulerBase) -> tuple[Subject[Event], Announce]:
    """Return a stream of announcements, and the function that records and emits one."""
    news: Subject[Event] = Subject()

    def announce(event: Event) -> None:
        if journal is not None:
            journal.append(event, at=lane.now)
        news.on_next(event)

    return news, announce
