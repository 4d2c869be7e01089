"""The operator that notifies a person about a run or a watch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from reactivex import Observable, abc, never, operators as ops, timer
from reactivex.disposable import CompositeDisposable, Disposable, SerialDisposable

from cuggino import events as ev
from cuggino.config import USUAL, Occasion
from cuggino.errors import CugginoError, Interrupted
from cuggino.notify.messages import (
    Message,
    error_message,
    limit_of,
    message_for,
    night_message,
    one_line,
    plain,
    result_message,
)
from cuggino.notify.night import Night
from cuggino.notify.notifier import Notifier
from cuggino.operators.scheduler import serial

E = TypeVar("E")

WAITING_LIMIT = 20
"""Messages kept while one is being sent; of more, only the number is reported."""

LAST_SECONDS = 10.0
"""Seconds that the end of a stream waits for its notification."""


def with_notifications(
    notifier: Notifier,
    *,
    project: str = "",
    subject: str = "",
    on: Collection[Occasion] = USUAL,
    at: str | None = None,
    page: Callable[[], str | None] = lambda: None,
    mask: Callable[[str], str] = lambda text: text,
    interrupt: Observable[object] | None = None,
) -> Callable[[Observable[E]], Observable[E]]:
    """Notify a person about a run of any loop: when it ends, and when it needs them.

    ::

        source:                 a--W----R|         W: an occasion, R: the result
        first call:                ---|
        second call:                    -#
        with_notifications:     a--W-----(XR|)     X: NotificationFailed

    A run is summarized when it ends, a watch whenever its backlog is worked through, and at the
    local time `at` (`07:00`) if it has made progress by then and still works. `on` names the
    occasions. `project` and `subject`, such as the focus of a run, are part of the titles; `page`
    returns the address of a live page, and `mask` hides secrets in agents' texts.

    Events are passed on unchanged and at once. The result of a run, and an error, wait for their
    notification, at most `LAST_SECONDS` or until `interrupt` emits: nothing comes after a result.
    An interrupted run sends nothing, as a person was there. One notification is sent at a time;
    those that arrive meanwhile are sent together afterwards. Only the first failure emits
    `NotificationFailed`; later notifications are still tried. Disposal cancels.
    """

    def operator(source: Observable[E]) -> Observable[E]:
        def subscribe(
            observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            name = f"cuggino ({one_line(project)})" if project else "cuggino"
            calls = _Calls(
                notifier,
                observer,
                serial(scheduler),
                _Outbox(name, frozenset(on), page, mask),
                subject=subject,
                at=at,
                interrupt=never() if interrupt is None else interrupt,
            )
            upstream = source.subscribe(
                calls.pass_on, calls.fail, calls.complete, scheduler=scheduler
            )
            return CompositeDisposable(upstream, Disposable(calls.dispose))

        return Observable(subscribe)

    return operator


class _Reported(NamedTuple):
    """What a person knows of a run, and when they are told about the night."""

    night: Night
    at: str | None
    """The local time of the message about a night."""
    morning: datetime | None
    """When the next such message is due; None without a time."""
    limits: frozenset[tuple[str, datetime | None]] = frozenset()
    """Usage limits that were reported, which several items may reach at once."""

    @classmethod
    def since(cls, now: datetime, at: str | None) -> _Reported:
        """Return the state at the beginning of a stream."""
        return cls(Night(), at, next_time(at, now) if at is not None else None)

    def add(self, event: ev.Event, now: datetime) -> tuple[_Reported, list[Message]]:
        """Return the state after an event, and the messages about it."""
        night, morning, limits = self.night.add(event, now), self.morning, self.limits
        messages: list[Message] = []
        if isinstance(event, ev.WatchBacklogWaiting) and not event.proposals:
            if night.has_items:
                messages.append(night_message(night, now, ended=True))
            return self._replace(night=night.next()), messages
        if self.at is not None and morning is not None and now >= morning:
            morning = next_time(self.at, now)
            if self.night.has_items:
                messages.append(night_message(night, now, ended=False))
                night = night.next()
        message = message_for(event, night)
        limit = limit_of(event) if isinstance(event, ev.RateLimited | ev.QuotaWaiting) else None
        if message is not None and limit not in limits:  # the wait that follows has the same limit
            messages.append(message)
            limits |= set() if limit is None else {limit}
        return _Reported(night, self.at, morning, limits), messages


class _Outbox:
    """The messages that wait to be sent, as one if there are several."""

    def __init__(
        self,
        name: str,
        on: frozenset[Occasion],
        page: Callable[[], str | None],
        mask: Callable[[str], str],
    ) -> None:
        self.mask = mask
        self._name = name
        self._on = on
        self._page = page
        self._waiting: list[Message] = []
        self._dropped = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, message: Message) -> None:
        """Keep a message about one of the occasions."""
        if not message.occasions & self._on:
            return
        if len(self._waiting) < WAITING_LIMIT:
            self._waiting.append(message)
        else:
            self._dropped += 1

    def clear(self) -> None:
        """Drop the messages."""
        self._waiting.clear()

    def take(self) -> tuple[str, str]:
        """Return title and body of the waiting message, or of all of them as one."""
        waiting, self._waiting = self._waiting, []
        dropped, self._dropped = self._dropped, 0
        if len(waiting) == 1:
            title, body = waiting[0].title, waiting[0].body
        else:
            title = f"{len(waiting) + dropped} messages"
            lines = ["\n".join(filter(None, (one.title, one.body))) for one in waiting]
            body = "\n\n".join([*lines, *([f"and {dropped} more"] if dropped else [])])
        text = plain(self.mask(body))
        if (address := self._page()) is not None:
            text = f"{text}\n{address}" if text else address
        return f"{self._name}: {one_line(self.mask(title))}", text


class _Calls:
    """The notifications of one subscription, on its scheduler: one is sent, others wait."""

    def __init__(
        self,
        notifier: Notifier,
        observer: abc.ObserverBase[Any],
        lane: abc.SchedulerBase,
        outbox: _Outbox,
        *,
        subject: str,
        at: str | None,
        interrupt: Observable[object],
    ) -> None:
        self._notifier = notifier
        self._observer = observer
        self._lane = lane
        self._outbox = outbox
        self._subject = subject
        self._interrupt = interrupt
        self._reported = _Reported.since(lane.now, at)
        self._running = SerialDisposable()
        self._sending = self._failed = self._disposed = False
        self._held: list[Callable[[], None]] | None = None
        """Items and end held back until the last notification was sent; None before the end."""
        self._patience = SerialDisposable()

    # -- the stream

    def pass_on(self, event: Any) -> None:
        if self._held is not None:
            self._held.append(lambda: self._observer.on_next(event))
            return
        if isinstance(event, ev.RunResult) and self._reported.night.state.kind != "watch":
            self._add(event)
            night, message = self._reported.night, None
            if event.outcome != "interrupted":
                message = result_message(event, night, self._lane.now, subject=self._subject)
            self._end(message, lambda: self._observer.on_next(event))
        else:
            self._observer.on_next(event)
            self._add(event)

    def fail(self, error: Exception) -> None:
        night, message = self._reported.night, None
        if night.began is not None:
            message = error_message(error, night, self._lane.now, subject=self._subject)
        if isinstance(error, Interrupted):
            self._outbox.clear()
            self._running.disposable = Disposable()
            self._sending = False
        self._end(message, lambda: self._observer.on_error(error))

    def complete(self) -> None:
        self._end(None, self._observer.on_completed)

    def _end(self, message: Message | None, then: Callable[[], None]) -> None:
        """Hold back the end of the stream until the last notification was sent."""
        if self._held is not None:
            self._held.append(then)
            self._flush_if_idle()
            return
        self._held = [then]
        if message is not None:
            self._queue([message])
        if not self._flush_if_idle():
            asked = self._interrupt.pipe(ops.observe_on(self._lane))
            self._patience.disposable = CompositeDisposable(
                timer(LAST_SECONDS).subscribe(lambda _: self._flush(), scheduler=self._lane),
                asked.subscribe(lambda _: self._flush(), lambda _: None, scheduler=self._lane),
            )

    def _flush_if_idle(self) -> bool:
        if self._held is None or self._sending or self._outbox:
            return False
        self._flush()
        return True

    def _flush(self) -> None:
        """Pass on the held events, and drop the notifications not sent yet."""
        self._outbox.clear()
        self._patience.disposable = Disposable()
        while self._held and not self._disposed:
            self._held.pop(0)()

    # -- the messages

    def _add(self, event: ev.Event) -> None:
        if self._disposed:
            return
        self._reported, messages = self._reported.add(event, self._lane.now)
        self._queue(messages)

    def _queue(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self._outbox.add(message)
            self._send()

    def _send(self) -> None:
        # A loop, not recursion: a notifier may complete within `subscribe`.
        while self._outbox and not self._sending and not self._disposed:
            title, body = self._outbox.take()
            self._sending = True
            try:
                stream = self._notifier.notify(title, body)
                self._running.disposable = stream.subscribe(
                    None, self._unsent, self._sent, scheduler=self._lane
                )
            except Exception as error:
                self._unsent(error)

    def _sent(self) -> None:
        self._sending = False
        self._go_on()

    def _unsent(self, error: Exception) -> None:
        if self._disposed:
            return
        self._sending = False
        if not self._failed:
            self._failed = True
            words = error.message if isinstance(error, CugginoError) else str(error)
            words = self._outbox.mask(words) or type(error).__name__
            self._observer.on_next(ev.NotificationFailed(message=words))
        self._go_on()

    def _go_on(self) -> None:
        self._send()
        self._flush_if_idle()

    def dispose(self) -> None:
        self._disposed = True
        self._running.dispose()
        self._patience.dispose()


def next_time(at: str, now: datetime) -> datetime:
    """Return the next moment at which local clocks show this time (`07:00`)."""
    hour, _, minute = at.partition(":")
    local = now.astimezone()
    there = local.replace(hour=int(hour), minute=int(minute), second=0, microsecond=0)
    return there if there > local else there + timedelta(days=1)
