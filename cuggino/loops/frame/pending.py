"""What a control keeps: messages that no agent has received, events not reported, waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reactivex import Observable, abc
from reactivex.subject import Subject

from cuggino.events import (
    AgentRetry,
    Event,
    QuotaLifted,
    QuotaWaiting,
    SteerAsked,
    WaitingEnded,
    WaitingStarted,
)
from cuggino.operators import managed
from cuggino.operators.managed import Subscription

Announce = Callable[[Event], None]


class Announcements:
    """The events that a control reports, through the run at work."""

    def __init__(self, otherwise: Announce | None = None) -> None:
        self._announcers: list[Announce] = []
        """The announcers of the runs, innermost last: that one records announcements."""
        self._unsaid: list[Event] = []
        self._otherwise: Announce = otherwise or self._unsaid.append

    def announce(self, event: Event) -> None:
        """Report the event; without a run it is reported otherwise, or kept for the next one."""
        if self._announcers:
            self._announcers[-1](event)
        else:
            self._otherwise(event)

    @contextmanager
    def announced(self, announce: Announce) -> Iterator[tuple[Event, ...]]:
        """Announce with this function within the block; yields the events not announced so far."""
        self._announcers.append(announce)
        unsaid = tuple(self._unsaid)
        self._unsaid.clear()
        try:
            yield unsaid
        finally:
            self._announcers.remove(announce)


class Inbox:
    """The messages from a person that no agent has received yet, the oldest first."""

    def __init__(self) -> None:
        self._messages: list[SteerAsked] = []
        self._arrived: Subject[str] = Subject()

    @property
    def texts(self) -> list[str]:
        """The texts of the messages."""
        return [message.text for message in self._messages]

    def take(self, message: SteerAsked) -> None:
        """Add a message, and pass it to the agent at work."""
        self._messages.append(message)
        self._arrived.on_next(message.text)

    def put_first(self, messages: Sequence[SteerAsked]) -> None:
        """Put messages before the others; they are for the next agent."""
        self._messages[:0] = messages

    def received(self, text: str) -> SteerAsked | None:
        """Remove the message with this text, which an agent has received; None without one."""
        found = next((message for message in self._messages if message.text == text), None)
        if found is not None:
            self._messages.remove(found)
        return found

    def emptied(self) -> list[SteerAsked]:
        """Remove and return all messages."""
        messages, self._messages = self._messages, []
        return messages

    def delivered(self) -> Observable[str]:
        """Emit the texts of all messages, and then of each new one."""

        def subscribe(
            observer: Subscription[str], scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            for text in self.texts:
                observer.on_next(text)
            return self._arrived.subscribe(observer, scheduler=scheduler)

        return managed(subscribe)


@dataclass(frozen=True, slots=True)
class Waits:
    """Why no agent is at work that a stop would have to wait for."""

    until: datetime | None = None
    """The end of the wait for a usage limit or a retry."""
    is_paused: bool = False
    """True while a run stands still between two stages."""
    is_idle: bool = False
    """True while a watch has no item at work."""
    awaits: bool = False
    """True while a run waits for something outside."""

    def after(self, event: Event, now: datetime) -> Waits:
        """Return the waits after an event of a run."""
        match event:
            case QuotaWaiting(remaining=seconds) | AgentRetry(retry_in=seconds):
                return replace(self, until=now + timedelta(seconds=seconds))
            case QuotaLifted():
                return replace(self, until=None)
            case WaitingStarted():
                return replace(self, awaits=True)
            case WaitingEnded():
                return replace(self, awaits=False)
            case _:
                return self

    def at(self, now: datetime) -> bool:
        """Return whether no agent works at this time."""
        stands_still = self.is_paused or self.is_idle or self.awaits
        return stands_still or (self.until is not None and now < self.until)
