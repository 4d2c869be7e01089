"""`alongside`: merge other streams for as long as the source lasts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, abc

from cuggino.operators.acquire_release import Together
from cuggino.operators.managed import Subscription, managed

T = TypeVar("T")


def alongside(*others: Observable[T]) -> Callable[[Observable[T]], Observable[T]]:
    """Emit the events of the source and of the `others` until the source completes.

    ::

        source:             -a--b-|
        other:              --x--y--z
        alongside(other):   -ax-by|

    The others are subscribed first. When one of them completes, nothing changes; when one fails,
    the stream fails. All must be on one thread. (RxPY's `merge` waits for all of them.)
    """

    def operator(source: Observable[T]) -> Observable[T]:
        def subscribe(
            observer: Subscription[T], scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            subscriptions = Together()
            for other in others:
                if observer.closed:
                    break
                subscriptions.add(
                    other.subscribe(
                        observer.on_next, observer.on_error, lambda: None, scheduler=scheduler
                    )
                )
            if not observer.closed:
                subscriptions.add(source.subscribe(observer, scheduler=scheduler))
            return subscriptions

        return managed(subscribe)

    return operator
