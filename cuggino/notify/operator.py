"""The operator that notifies a person about a run or a watch."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Any, TypeVar

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
            calls = _Calls(
                notifier,
                observer,
                serial(scheduler),
                name=f"cuggino ({one_line(project)})" if project else "cuggino",
                subject=subject,
                on=frozenset(on),
                at=at,
                page=page,
                mask=mask,
                interrupt=never() if interrupt is None else interrupt,
            )
            upstream = source.subscribe(
                calls.pass_on, calls.fail, calls.complete, scheduler=scheduler
            )
            return CompositeDisposable(upstream, Disposable(calls.dispose))

        return Observable(subscribe)

    return operator


class _Calls:
    """The notifications of one subscription, on its scheduler: one is sent, others wait."""

    def __init__(
        self,
        notifier: Notifier,
        observer: abc.ObserverBase[Any],
        lane: abc.SchedulerBase,
        *,
        name: str,
        subject: str,
        on: frozenset[Occasion],
        at: str | None,
        page: Callable[[], str | None],
        mask: Callable[[str], str],
        interrupt: Observable[object],
    ) -> None:
        self._notifier = notifier
        self._observer = observer
        self._lane = lane
        self._name = name
        self._subject = subject
        self._on = on
        self._at = at
        self._page = page
        self._mask = mask
        self._interrupt = interrupt
        self._night = Night()
        self._morning = next_time(at, lane.now) if at is not None else None
        self._waiting: list[Message] = []
        self._dropped = 0
        self._running = SerialDisposable()
        self._limits: set[tuple[str, datetime | None]] = set()
        """Texts of notified usage limits, which several items may reach at once."""
        self._sending = self._failed = self._disposed = False
        self._held: list[Callable[[], None]] | None = None
        """Items and end held back until the last notification was sent; None before the end."""
        self._patience = SerialDisposable()

    # -- the stream

    def pass_on(self, event: Any) -> None:
        if self._held is not None:
            self._held.append(lambda: self._observer.on_next(event))
            return
        if isinstance(event, ev.RunResult) and self._night.state.kind != "watch":
            self._add(event)
            message = None
            if event.outcome != "interrupted":
                message = result_message(event, self._night, self._lane.now, subject=self._subject)
            self._end(message, lambda: self._observer.on_next(event))
        else:
            self._observer.on_next(event)
            self._add(event)

    def fail(self, error: Exception) -> None:
        message = None
        if self._night.began is not None:
            message = error_message(error, self._night, self._lane.now, subject=self._subject)
        if isinstance(error, Interrupted):
            self._waiting.clear()
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
            self._queue(message)
        if not self._flush_if_idle():
            asked = self._interrupt.pipe(ops.observe_on(self._lane))
            self._patience.disposable = CompositeDisposable(
                timer(LAST_SECONDS).subscribe(lambda _: self._flush(), scheduler=self._lane),
                asked.subscribe(lambda _: self._flush(), lambda _: None, scheduler=self._lane),
            )

    def _flush_if_idle(self) -> bool:
        if self._held is None or self._sending or self._waiting:
            return False
        self._flush()
        return True

    def _flush(self) -> None:
        """Pass on the held events, and drop the notifications not sent yet."""
        self._waiting.clear()
        self._patience.disposable = Disposable()
        while self._held and not self._disposed:
            self._held.pop(0)()

    # -- the messages

    def _add(self, event: ev.Event) -> None:
        if self._disposed:
            return
        now = self._lane.now
        before, self._night = self._night, self._night.add(event, now)
        if isinstance(event, ev.WatchBacklogWaiting) and not event.proposals:
            if self._night.has_items:
                self._queue(night_message(self._night, now, ended=True))
            self._night = self._night.next()
            return
        if self._morning is not None and now >= self._morning:
            self._morning = next_time(self._at or "", now)
            if before.has_items:
                self._queue(night_message(self._night, now, ended=False))
                self._night = self._night.next()
        message = message_for(event, self._night)
        if message is None:
            return
        if isinstance(event, ev.RateLimited | ev.QuotaWaiting):
            limit = limit_of(event)
            if limit in self._limits:  # the wait that follows, too
                return
            self._limits.add(limit)
        self._queue(message)

    def _queue(self, message: Message) -> None:
        if not message.occasions & self._on:
            return
        if len(self._waiting) < WAITING_LIMIT:
            self._waiting.append(message)
        else:
            self._dropped += 1
        self._send()

    def _send(self) -> None:
        # A loop, not recursion: a notifier may complete within `subscribe`.
        while self._waiting and not self._sending and not self._disposed:
            title, body = self._next()
            self._sending = True
            try:
                stream = self._notifier.notify(title, body)
                self._running.disposable = stream.subscribe(
                    None, self._unsent, self._sent, scheduler=self._lane
                )
            except Exception as error:
                self._unsent(error)

    def _next(self) -> tuple[str, str]:
        """Return title and body of the waiting message, or of all of them as one."""
        waiting, self._waiting = self._waiting, []
        dropped, self._dropped = self._dropped, 0
        if len(waiting) == 1:
            title, body = waiting[0].title, waiting[0].body
        else:
            title = f"{len(waiting) + dropped} messages"
            lines = ["\n".join(filter(None, (one.title, one.body))) for one in waiting]
            body = "\n\n".join([*lines, *([f"and {dropped} more"] if dropped else [])])
        text = plain(self._mask(body))
        if (address := self._page()) is not None:
            text = f"{text}\n{address}" if text else address
        return f"{self._name}: {one_line(self._mask(title))}", text

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
            words = self._mask(words) or type(error).__name__
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
