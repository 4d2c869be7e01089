"""`interrupt_when`: end a stream from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, SerialDisposable

T = TypeVar("T")


def interrupt_when(
    notifier: Observable[Any], *farewell: T
) -> Callable[[Observable[T]], Observable[T]]:
    """Pass the source on until the notifier emits; then release it, say farewell, complete.

    ::

        source:                         a--b--c--d
        notifier:                       -------!
        interrupt_when(notifier, X):    a--b--c(X|)

    The notifier is subscribed first, and the source is released (its process reaped) before the
    farewell: `take_until` does both the other way round. A notifier that completes without an
    event interrupts nothing; its error is the stream's error.
    """

    def operator(source: Observable[T]) -> Observable[T]:
        def subscribe(
            observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            running = SerialDisposable()
            watching = SerialDisposable()
            interrupted = False

            def release() -> None:
                watching.dispose()
                running.dispose()

            def interrupt(_: Any) -> None:
                nonlocal interrupted
                if interrupted:
                    return
                interrupted = True
                release()
                for event in farewell:
                    observer.on_next(event)
                observer.on_completed()

            def fail(error: Exception) -> None:
                nonlocal interrupted
                interrupted = True
                release()
                observer.on_error(error)

            def complete() -> None:
                release()
                observer.on_completed()

            watching.disposable = notifier.subscribe(interrupt, fail, scheduler=scheduler)
            if not interrupted:
                running.disposable = source.subscribe(
                    observer.on_next, fail, complete, scheduler=scheduler
                )
            return CompositeDisposable(watching, running)

        return Observable(subscribe)

    return operator
