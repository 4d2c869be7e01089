"""The operator that calls a person while a watch passes."""

from __future__ import annotations

from collections.abc import Callable

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SerialDisposable

from cuggino.errors import CugginoError
from cuggino.events import NotificationFailed, RateLimited, WatchEvent
from cuggino.notify.messages import message_for, plain
from cuggino.notify.notifier import Notifier

WAITING_LIMIT = 20
"""Messages that are kept while one is being sent; of more only the number is told."""


def with_notifications(
    notifier: Notifier, *, project: str = ""
) -> Callable[[Observable[WatchEvent]], Observable[WatchEvent]]:
    """Call a person for each event that needs one; `project` is named in the title.

    ::

        source:                 a--W----P--|       W, P need a person
        notifier:                  ---|            its second sending fails after one second
                                        -#
        with_notifications:     a--W----PX-|       X: NotificationFailed

    Every event is passed on unchanged and at once, completion and error too. One notification is
    sent at a time; those that come meanwhile are sent together afterwards. A usage limit that is
    reported again is sent once. The first failure adds one `NotificationFailed`, later ones
    nothing; the next notifications are tried all the same. The end of the stream and disposal
    cancel what is being sent.
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
        # A loop, not a recursion: a notifier may be done within `subscribe`.
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
        """The message that waits, or all that wait as one."""
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
