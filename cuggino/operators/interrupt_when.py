"""`interrupt_when`: end a stream from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import SingleAssignmentDisposable

from cuggino.operators.acquire_release import Together
from cuggino.operators.managed import Subscription, managed, released
from cuggino.operators.mistakes import require_stream

T = TypeVar("T")


def interrupt_when(
    notifier: Observable[Any], *farewell: T
) -> Callable[[Observable[T]], Observable[T]]:
    """Pass the source on until the notifier emits; then release it, emit `farewell`, complete.

    ::

        source:                         a--b--c--d
        notifier:                       -------n
        interrupt_when(notifier, X):    a--b--c(X|)

    A notifier that completes without an event interrupts nothing; its error is the stream's
    error. (RxPY's `take_until` subscribes the source before the notifier, and completes before the
    source is released.)
    """
    require_stream(notifier, "interrupt_when")

    def operator(source: Observable[T]) -> Observable[T]:
        def subscribe(
            observer: Subscription[T], scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            running = SingleAssignmentDisposable()

            def interrupt(_: Any) -> None:
                if running.is_disposed:
                    return
                if (error := released(running)) is not None:
                    observer.on_error(error)
                for event in farewell:
                    observer.on_next(event)
                observer.on_completed()

            watching = notifier.subscribe(
                interrupt, observer.on_error, lambda: None, scheduler=scheduler
            )
            if not observer.closed:
                running.disposable = source.subscribe(observer, scheduler=scheduler)
            return Together(watching, running)

        return managed(subscribe)

    return operator
