"""Keeping the machine awake while a loop works.

It may sleep while a watch waits for a person or for an item, and while a run is paused. It does not
while a loop waits for a usage limit, for its hours or for its next attempt.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from reactivex import Observable, abc, concat, operators as ops, timer
from reactivex.disposable import CompositeDisposable, Disposable, SerialDisposable
from wakepy import keep

from cuggino import events as ev

with suppress(ImportError):  # macOS needs it not
    # wakepy would import it with the first request, when its package may have been replaced.
    import wakepy.dbus_adapters.jeepney  # noqa: F401

T = TypeVar("T")

DELAY = 10.0
"""Seconds of work before asking the system to stay awake: no system sleeps sooner, and short runs
are over by then."""

JOIN_LIMIT = 1.0
"""Seconds that a disposal waits for the request to the system."""

_RESTS = (
    ev.RunPaused,
    ev.WatchAuditEnded,
    ev.WatchAuditFailed,
    ev.WatchAuditInterrupted,
    ev.WatchBacklogWaiting,
    ev.WatchSpecIssueWaiting,
)
"""The events after which nothing happens until a person acts; a pause with a time ends itself."""

_WORKS = (ev.PauseEnded, ev.WatchAuditStarted, ev.WatchProcessingItem)
"""The events after which a loop works again."""


def sleep_prevention() -> str:
    """Keep the machine awake for a moment and return what does so; empty if nothing can."""
    method = None
    with keep.running(on_fail="pass") as mode:
        method = mode.method if mode.active else None
    return method.name if method is not None else ""


def awake() -> Observable[Any]:
    """Keep the machine awake while subscribed; emits nothing and never completes.

    A helper thread holds the request, as the system may answer late. A system without a way to do
    so is left alone.
    """

    def subscribe(
        observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        released = threading.Event()

        def hold() -> None:
            if not released.is_set():
                with keep.running(on_fail="pass"):
                    released.wait()

        def release() -> None:
            released.set()
            thread.join(JOIN_LIMIT)

        thread = threading.Thread(target=hold, name="cuggino-awake", daemon=True)
        thread.start()
        return Disposable(release)

    return Observable(subscribe)


def keeping_awake(
    awake: Observable[Any], *, delay: float = DELAY
) -> Callable[[Observable[T]], Observable[T]]:
    """Subscribe to `awake` while the loop works, from `delay` seconds on; events pass unchanged.

    ::

        source:         a--W---P--c--|      W: WatchBacklogWaiting, P: WatchProcessingItem
        awake:           ------------
        keeping_awake:  a--W---P--c--|
    """

    def operator(source: Observable[T]) -> Observable[T]:
        def subscribe(
            observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            held = SerialDisposable()
            works = False

            def work() -> None:
                nonlocal works
                if not works:
                    works = True
                    late = concat(timer(delay).pipe(ops.ignore_elements()), awake)
                    held.disposable = late.subscribe(scheduler=scheduler)

            def rest() -> None:
                nonlocal works
                works = False
                held.disposable = Disposable()

            def on_next(item: T) -> None:
                if isinstance(item, _WORKS) or (isinstance(item, ev.RunPaused) and item.until):
                    work()
                elif isinstance(item, _RESTS):
                    rest()
                observer.on_next(item)

            def on_error(error: Exception) -> None:
                held.dispose()
                observer.on_error(error)

            def on_completed() -> None:
                held.dispose()
                observer.on_completed()

            work()
            running = source.subscribe(on_next, on_error, on_completed, scheduler=scheduler)
            return CompositeDisposable(running, held)

        return Observable(subscribe)

    return operator
