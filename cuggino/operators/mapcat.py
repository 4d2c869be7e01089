"""`mapcat`: map each value to any number of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from reactivex import Observable, abc

from cuggino.operators.managed import Subscription, managed

A = TypeVar("A")
B = TypeVar("B")


def mapcat(fn: Callable[[A], Iterable[B]]) -> Callable[[Observable[A]], Observable[B]]:
    """Emit every item of `fn(value)` for every value, in order and at once.

    ::

        source:             -2-3-|
        mapcat(range):      -(01)-(012)-|

    An exception of `fn` is the stream's error. (RxPY's `concat_map` does the same a hundred times
    slower, with an inner subscription for each value.)
    """

    def operator(source: Observable[A]) -> Observable[B]:
        def subscribe(
            observer: Subscription[B], scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            def on_next(value: A) -> None:
                try:
                    for item in fn(value):
                        observer.on_next(item)
                        if observer.closed:
                            return
                except Exception as error:
                    observer.on_error(error)

            return source.subscribe(
                on_next, observer.on_error, observer.on_completed, scheduler=scheduler
            )

        return managed(subscribe)

    return operator
