"""`alongside`: hear others while a stream lasts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable

T = TypeVar("T")


def alongside(*others: Observable[T]) -> Callable[[Observable[T]], Observable[T]]:
    """Emit what the source emits and what the `others` emit, for as long as the source lasts.

    ::

        source:               -a--b--|
        other:                --x--y--z--
        alongside(other):     -ax-by-|

    The others are subscribed first, and all are released before the end of the source is passed
    on. That another one completes changes nothing; its error is the stream's error. All must be on
    one thread.
    """

    def operator(source: Observable[T]) -> Observable[T]:
        def subscribe(
            observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            subscriptions = CompositeDisposable()
            ended = False

            def fail(error: Exception) -> None:
                nonlocal ended
                if not ended:
                    ended = True
                    subscriptions.dispose()
                    observer.on_error(error)

            def complete() -> None:
                nonlocal ended
                if not ended:
                    ended = True
                    subscriptions.dispose()
                    observer.on_completed()

            def on_next(event: T) -> None:
                if not ended:
                    observer.on_next(event)

            for other in others:
                if ended:
                    break
                subscriptions.add(other.subscribe(on_next, fail, lambda: None, scheduler=scheduler))
            if not ended:
                subscriptions.add(source.subscribe(on_next, fail, complete, scheduler=scheduler))
            return subscriptions

        return Observable(subscribe)

    return operator
