"""`merge_now`: merge without a scheduler hop and without a lock."""

from __future__ import annotations

from typing import TypeVar

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable

T = TypeVar("T")


def merge_now(*sources: Observable[T]) -> Observable[T]:
    """Emit what any source emits; complete when all have, fail with the first that fails.

    ::

        a:              a---b--|
        b:              (c|)
        merge_now:      (ac)b--|

    Sources are subscribed in order, within `subscribe` itself. (`reactivex.merge` subscribes one
    scheduler hop later, which loses the first value inside `publish`, and holds a lock during
    `on_next`.) All sources must be on one thread.
    """

    def subscribe(
        observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        subscriptions = CompositeDisposable()
        waiting = len(sources)
        ended = False

        def on_completed() -> None:
            nonlocal waiting
            waiting -= 1
            if waiting == 0:
                observer.on_completed()

        def on_error(error: Exception) -> None:
            nonlocal ended
            ended = True
            subscriptions.dispose()
            observer.on_error(error)

        if not sources:
            observer.on_completed()
        for source in sources:
            if ended:
                break
            subscriptions.add(
                source.subscribe(observer.on_next, on_error, on_completed, scheduler=scheduler)
            )
        return subscriptions

    return Observable(subscribe)
