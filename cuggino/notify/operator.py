"""The operator that notifies a person about the events of a watch."""

from __future__ import annotations

from collections.abc import Callable

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SerialDisposable

from cuggino.errors import CugginoError
from cuggino.events import (
    Event,
    NotificationFailed,
    RateLimited,
    WatchBacklogWaiting,
    WatchEvent,
    WatchItemParked,
    WatchItemRetry,
    WatchSpecIssueWaiting,
)
from cuggino.notify.notifier import Notifier

WAITING_LIMIT = 20
"""Messages kept while one is being sent; of more, only the number is reported."""


def with_notifications(
    notifier: Notifier, *, project: str = ""
) -> Callable[[Observable[WatchEvent]], Observable[WatchEvent]]:
    """Call a person for each event that needs one; `project` is named in the title.

    ::

        source:                 a--W----P--|       W, P need a person
        first call:             ---|
        second call:            -#
        with_notifications:     a--W----PX-|       X: NotificationFailed

    Every event is passed on unchanged and at once, completion and error too. One notification is
    sent at a time; those that come meanwhile are sent together afterwards. A usage limit that is
    reported again is sent once. The first failure adds one `NotificationFailed`, later ones
    nothing; the next notifications are tried all the same. The end of the stream and disposal
    cancel the one being sent.
    """

    def operator(source: Observable[WatchEvent]) -> Observable[WatchEvent]:
        def subscribe(
            observer: abc.ObserverBase[WatchEvent], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            calls = _Calls(notifier, project, observer, scheduler)
            upstream = SerialDisposable()

            def on_next(event: WatchEvent) -> None:
                observer.on_next(event)
                calls.add(event)

            def on_error(error: Exception) -> None:
                calls.dispose()
                observer.on_error(error)

            def on_completed() -> None:
                calls.dispose()
                observer.on_completed()

            def dispose() -> None:
                upstream.dispose()
                calls.dispose()

            upstream.disposable = source.subscribe(
                on_next, on_error, on_completed, scheduler=scheduler
            )
            return Disposable(dispose)

        return Observable(subscribe)

    return operator


class _Calls:
    """The notifications of one subscription, on its scheduler: one is sent, others wait."""

    def __init__(
        self,
        notifier: Notifier,
        project: str,
        observer: abc.ObserverBase[WatchEvent],
        scheduler: abc.SchedulerBase | None,
    ) -> None:
        self._notifier = notifier
        self._name = f"cuggino ({plain(project)})" if project else "cuggino"
        self._observer = observer
        self._scheduler = scheduler
        self._waiting: list[tuple[str, str]] = []
        self._dropped = 0
        self._running = SerialDisposable()
        self._sending = False
        self._limit: tuple[str, str] | None = None
        self._failed = False
        self._disposed = False

    def add(self, event: WatchEvent) -> None:
        message = message_for(event)
        if message is None or self._disposed:
            return
        if isinstance(event, RateLimited) and event.resets_at is not None:
            if message == self._limit:
                return
            self._limit = message
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
                    None, self._fail, self._done, scheduler=self._scheduler
                )
            except Exception as error:
                self._fail(error)

    def _next(self) -> tuple[str, str]:
        """Return the waiting message, or all of them as one."""
        waiting, self._waiting = self._waiting, []
        dropped, self._dropped = self._dropped, 0
        if len(waiting) == 1:
            title, body = waiting[0]
            return f"{self._name}: {plain(title)}", plain(body)
        lines = [plain(title) for title, _ in waiting]
        if dropped:
            lines.append(f"and {dropped} more")
        return f"{self._name}: {len(waiting) + dropped} messages", "\n".join(lines)

    def _done(self) -> None:
        self._sending = False
        self._send()

    def _fail(self, error: Exception) -> None:
        if self._disposed:
            return
        self._sending = False
        if not self._failed:
            self._failed = True
            words = error.message if isinstance(error, CugginoError) else str(error)
            self._observer.on_next(NotificationFailed(message=words or type(error).__name__))
        self._send()

    def dispose(self) -> None:
        self._disposed = True
        self._running.dispose()


BODY_LIMIT = 500
"""Characters of a message; an agent's error can be long."""


def message_for(event: Event) -> tuple[str, str] | None:
    """Return title and body of the notification about the event, or None if it needs no person."""
    match event:
        case WatchSpecIssueWaiting():
            return (
                "A spec issue waits for you",
                "The work goes on when .cuggino/spec-issues/ is empty.",
            )
        case WatchBacklogWaiting():
            return "The backlog is empty", "The work goes on with the next item in the backlog."
        case WatchItemRetry(login=True, message=message):
            return "log in to continue", message
        case WatchItemParked(filename=filename, reason=reason):
            return f"Parked: {filename}", f"{reason}\nIt is in .cuggino/parked/ now."
        case RateLimited(status="rejected", limit=limit, resets_at=resets_at):
            resets = f"It resets at {resets_at:%Y-%m-%d %H:%M %Z}".rstrip() if resets_at else ""
            words = [f"Limit: {limit}." if limit else "", f"{resets}." if resets else ""]
            return "The agent's usage limit is reached", " ".join(filter(None, words)) or "Wait."
        case _:
            return None


def plain(text: str) -> str:
    """Return the text without control characters except newlines, cut to the limit."""
    kept = "".join(c for c in text if c == "\n" or c.isprintable())
    return kept if len(kept) <= BODY_LIMIT else f"{kept[: BODY_LIMIT - 2]} …"
