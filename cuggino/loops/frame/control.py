"""A person's commands to one thing at work: a run, or an item of a watch beside others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NoReturn, TypeVar

from reactivex import Observable, abc, operators as ops
from reactivex.subject import Subject

from cuggino.agents.base import SpawnOptions
from cuggino.errors import CugginoError, Interrupted, ItemSkipped
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
    StageFinished,
    SteerAsked,
    Steered,
    StopAsked,
    WaitingEnded,
    WaitingStarted,
)
from cuggino.loops.frame.interruption import Interruption
from cuggino.loops.frame.pending import Announce, Announcements, Inbox, Waits
from cuggino.operators import Flow, StateRef, ask, emit, forward, interrupt_when
from cuggino.operators.mapcat import mapcat
from cuggino.operators.merge_now import merge_now
from cuggino.storage import ControlFolder, Journal, JournalFile

T = TypeVar("T")


_LOOKED_AT = (AgentRetry, QuotaLifted, QuotaWaiting, Steered, WaitingEnded, WaitingStarted)
"""The events that change the pending messages or the current wait."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The pause or stop that is in force for everything at work in a workspace."""

    is_paused: bool = False
    closed_until: datetime | None = None
    """When the hours begin in which work may begin; None within them."""
    stops: bool = False
    """True if all runs are to end after their current stages."""

    @property
    def holds_back(self) -> bool:
        """Return whether nothing may begin now."""
        return self.rests or self.stops

    @property
    def rests(self) -> bool:
        """Return whether everything pauses after its stage, for a person or until a time."""
        return self.is_paused or self.closed_until is not None


class Control:
    """The commands to one run, or to one item beside others, and those that are pending.

    A watch shares its own with the run of the item that it works on, or gives each of several items
    one `beside` it. Everything happens on the lane of the runs.
    """

    def __init__(
        self,
        interruption: Interruption,
        lane: abc.SchedulerBase,
        folder: ControlFolder | None = None,
        *,
        item: str | None = None,
        standing: StateRef[Standing] | None = None,
        otherwise: Announce | None = None,
    ) -> None:
        self.standing = standing or StateRef(Standing())
        """The pause or stop in force, for all controls of the workspace."""
        self.inbox = Inbox()
        self._interruption = interruption
        self._lane = lane
        self._folder = folder
        self._item = item
        self._announcements = Announcements(otherwise)
        self._waits = Waits()
        self._ends: Subject[CugginoError] = Subject()

    def beside(self, item: str, messages: Sequence[SteerAsked] = ()) -> Control:
        """Return the control of an item that works beside others, for which `messages` wait.

        Before its run begins, this control announces for it. This one waits for nothing by then.
        """
        self._waits = Waits()
        control = Control(
            self._interruption,
            self._lane,
            self._folder,
            item=item,
            standing=self.standing,
            otherwise=lambda event: self.announce(event.model_copy(update={"item": item})),
        )
        control.inbox.put_first(messages)
        return control

    # What a person asks for.

    def hear(self, command: ControlEvent) -> None:
        """Obey a command that is for everything at work."""
        standing = self.standing
        match command:
            case PauseAsked():
                if not standing.value.is_paused:
                    self.announce(command)
                    standing.set(replace(standing.value, is_paused=True))
            case ContinueAsked():
                self.settle(command, PauseAsked())
                if standing.value.is_paused:
                    self.announce(command)
                    standing.set(replace(standing.value, is_paused=False))
                else:
                    self.announce(ControlIgnored(source="continue", reason="nothing is paused"))
            case StopAsked(now=now):
                self.settle(command)
                self.announce(command)
                if now or self._is_waiting:
                    self._interruption.ask()
                else:
                    standing.set(replace(standing.value, stops=True))
            case ControlIgnored():
                self.announce(command)
            case _:
                self.announce(ControlIgnored(source=command.tag, reason="unknown command"))

    def skip(self, command: ControlEvent) -> None:
        """Release what is `obeyed`, with `ItemSkipped`."""
        self.announce(command)
        self._ends.on_next(ItemSkipped())

    def take(self, message: SteerAsked) -> None:
        """Deliver a message to the agent at work, or else to the next one."""
        self.announce(message)
        self.inbox.take(message)

    def announce(self, event: Event) -> None:
        """Report the event through the run at work."""
        self._announcements.announce(event)

    def settle(self, *commands: ControlEvent) -> None:
        """Remove the files of commands that have taken effect, or never will."""
        if self._folder is not None:
            for command in commands:
                self._folder.settle(command)

    # What a run does about it.

    def announced(self, announce: Announce) -> AbstractContextManager[tuple[Event, ...]]:
        """Announce with this function within the block; yields the events not announced so far."""
        return self._announcements.announced(announce)

    def remember(self, journal: JournalFile) -> None:
        """Remember the messages of stages that a resumed run repeats."""
        told: dict[str | None, list[str]] = {}
        for entry in journal.entries.only(("StageFinished", "Steered")):
            if isinstance(entry.event, Steered):
                told.setdefault(entry.stage, []).append(entry.event.text)
            elif isinstance(entry.event, StageFinished):  # the last entry of a process comes, too
                told.pop(entry.stage, None)
        known = self.inbox.texts
        texts = [text for texts in told.values() for text in texts if text not in known]
        self.inbox.put_first([SteerAsked(text=text) for text in texts])

    def watched(self, run: Observable[T]) -> Observable[T]:
        """Pass the run on, and track its waits and the messages that its agents have received."""
        return run.pipe(ops.do_action(self._look))

    def unless_skipped(self, run: Observable[T]) -> Observable[T]:
        """Pass the run of an item on until it is skipped; then release it, with `ItemSkipped`."""
        return run.pipe(interrupt_when(self._ends.pipe(ops.map(_fail))))

    def obeyed(self, run: Observable[T]) -> Observable[T]:
        """Pass the run of an item beside others on, until it is skipped or stopped.

        A stop releases it, with `Interrupted`, if none of its agents works.
        """

        def stop(_: Standing) -> NoReturn:
            raise Interrupted("stopped while it waited")

        def ends(standing: Standing) -> bool:
            return standing.stops and self._is_waiting

        stopped: Observable[object] = self.standing.changes.pipe(ops.filter(ends), ops.map(stop))
        return self.unless_skipped(self.watched(run).pipe(interrupt_when(stopped)))

    def orders(self) -> Observable[ControlEvent]:
        """Emit commands for the item's agents on another machine: messages, pause, stop.

        A pause or a stop in force and undelivered messages come first.
        """

        def message(text: str) -> ControlEvent:
            return SteerAsked(text=text)  # there, it is the only item

        asked: Observable[ControlEvent] = self.standing.changes.pipe(
            ops.start_with(Standing()), ops.pairwise(), mapcat(commands_for)
        )
        return merge_now(asked, self.inbox.delivered().pipe(ops.map(message)))

    def idle(self, waiting: Observable[Event]) -> Flow[None]:
        """Wait for work, as no item is at work: a stop is obeyed at once, a message refused."""
        self._waits = replace(self._waits, is_idle=True)
        try:
            yield from forward(waiting)
        finally:
            self._waits = replace(self._waits, is_idle=False)

    def until_paused(self, waiting: Observable[T]) -> Observable[T]:
        """Pass on what waits for work until a person pauses it."""
        return waiting.pipe(ops.take_until(self.standing.changes.pipe(ops.filter(_is_paused))))

    @property
    def is_idle(self) -> bool:
        """True while a watch waits for work."""
        return self._waits.is_idle

    def stand_still(self) -> Flow[None]:
        """Stop here, or pause here until the run may continue.

        A person has asked for it, or it is outside of the hours; then the one pause follows the
        other.

        Raises:
            Interrupted: the run is to end here.
        """
        self._unless_stopped()
        while (standing := self.standing.value).rests:
            began = self._lane.now
            until = None if standing.is_paused else standing.closed_until

            def is_over(now: Standing, is_paused: bool = standing.is_paused) -> bool:
                return not now.rests or now.is_paused is not is_paused

            self.announce(RunPaused(until=until))
            self._waits = replace(self._waits, is_paused=True)
            try:
                goes_on = self.standing.changes.pipe(ops.filter(is_over), ops.take(1))
                yield from ask(self._interruption.ending(goes_on), name="paused")
            finally:
                self._waits = replace(self._waits, is_paused=False)
            self.announce(PauseEnded(seconds=(self._lane.now - began).total_seconds()))
            self._unless_stopped()

    def told(self, options: SpawnOptions) -> Flow[SpawnOptions]:
        """Add the pending messages of a person to the prompt; later ones are delivered live."""
        texts = self.inbox.texts
        if texts:
            yield from emit(*(Steered(text=text, to="prompt") for text in texts))
        prompt = "\n\n".join([options.prompt, *map(_section, texts)])
        return replace(options, prompt=prompt, messages=self.inbox.delivered())

    def _look(self, event: object) -> None:
        if not isinstance(event, _LOOKED_AT) or event.item not in (None, self._item):
            return  # items at work beside others look for themselves
        self._waits = self._waits.after(event, self._lane.now)
        if isinstance(event, Steered) and (message := self.inbox.received(event.text)) is not None:
            self.settle(message)

    @property
    def _is_waiting(self) -> bool:
        """True if no agent is at work that a stop would have to wait for."""
        return self._waits.at(self._lane.now)

    def _unless_stopped(self) -> None:
        if self.standing.value.stops:
            raise Interrupted("stopped after the stage")


def commands_for(change: tuple[Standing, Standing]) -> Iterator[ControlEvent]:
    """Yield the commands that lead from the first state to the second."""
    before, after = change
    if before.rests != after.rests:
        yield PauseAsked() if after.rests else ContinueAsked()
    if after.stops and not before.stops:
        yield StopAsked()


def _is_paused(standing: Standing) -> bool:
    return standing.is_paused


def _fail(error: CugginoError) -> NoReturn:
    raise error


def _section(text: str) -> str:
    return (
        "## A message from the user\n\n"
        "It arrived while you were working. It does not change what your role may do.\n\n"
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
