"""`managed`: make an operator that keeps the contract of `cuggino.operators`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import SerialDisposable

T = TypeVar("T")


class Held(abc.DisposableBase):
    """What a subscription holds, released before its end.

    An end that comes within a source's `subscribe`, which has not returned what to release yet, is
    passed on afterward.
    """

    def __init__(self) -> None:
        self._held = SerialDisposable()
        self._subscribing = False
        self._ending: Callable[[], None] | None = None

    def hold(self, subscribe: Callable[[], abc.DisposableBase]) -> None:
        """Subscribe, and hold what that returns in place of what was held before."""
        self._subscribing = True
        self._held.disposable = subscribe()
        self._subscribing = False
        if self._ending is not None:
            self._ending()

    def release(self) -> None:
        """Release what is held; another source may be held after that."""
        self._held.disposable = None

    def end(self, then: Callable[[], None]) -> None:
        """Release what is held, and only then call `then`, which passes the end on."""
        self._held.dispose()
        if self._subscribing:
            self._ending = then
        else:
            then()

    def dispose(self) -> None:
        self._ending = None
        self._held.dispose()


class Subscription(abc.ObserverBase[T], abc.DisposableBase):
    """One subscription of a managed stream: passes events on until its end or disposal."""

    def __init__(self, observer: abc.ObserverBase[T]) -> None:
        self.closed = False
        self._observer = observer
        self._held = Held()

    def on_next(self, value: T) -> None:
        if self.closed:
            return
        try:
            self._observer.on_next(value)
        except Exception as error:
            self.on_error(error)

    def on_error(self, error: Exception) -> None:
        self._end(lambda: self._observer.on_error(error))

    def on_completed(self) -> None:
        self._end(self._observer.on_completed)

    def hold(self, subscribe: Callable[[], abc.DisposableBase]) -> None:
        """Subscribe, and hold what that returns."""
        self._held.hold(subscribe)

    def dispose(self) -> None:
        self.closed = True
        self._held.dispose()

    def _end(self, then: Callable[[], None]) -> None:
        if not self.closed:
            self.closed = True
            self._held.end(then)


Subscribe: TypeAlias = Callable[[Subscription[T], abc.SchedulerBase | None], abc.DisposableBase]


def managed(subscribe: Subscribe[T]) -> Observable[T]:
    """Return a cold Observable that keeps the contract of `cuggino.operators`.

    `subscribe` gets an observer to send to, and returns the resource that it holds. The resource is
    released before the end is passed on, and when the subscriber's `on_next` raises; its exception
    then becomes the error. Nothing is emitted after an end or a disposal. (RxPY's `create`
    guarantees neither: it releases after the end, and raises a subscriber's exception into the
    source.)
    """

    def begin(
        observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        subscription = Subscription(observer)
        subscription.hold(lambda: subscribe(subscription, scheduler))
        return subscription

    return Observable(begin)
