"""`merge_now`: merge without a scheduler hop and without a lock."""

from __future__ import annotations

from typing import TypeVar

from reactivex import Observable, abc

from cuggino.operators.acquire_release import Together
from cuggino.operators.managed import Subscription, managed

T = TypeVar("T")


def merge_now(*sources: Observable[T]) -> Observable[T]:
    """Emit the events of all sources; complete with the last, fail with the first that fails.

    ::

        a:              a---b--|
        b:              (c|)
        merge_now:      (ac)---b--|

    The sources are subscribed in order, within `subscribe` itself, and must be on one thread.
    (RxPY's `merge` subscribes one scheduler hop later, which loses the first value inside
    `publish`, and holds a lock during `on_next`.)
    """

    def subscribe(
        observer: Subscription[T], scheduler: abc.SchedulerBase | None
    ) -> abc.DisposableBase:
        subscriptions = Together()
        running = len(sources)

        def complete() -> None:
            nonlocal running
            running -= 1
            if running == 0:
                observer.on_completed()

        if not sources:
            observer.on_completed()
        for source in sources:
            if observer.closed:
                break
            subscriptions.add(
                source.subscribe(observer.on_next, observer.on_error, complete, scheduler=scheduler)
            )
        return subscriptions

    return managed(subscribe)
