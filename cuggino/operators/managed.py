"""`managed`: make an operator that keeps the contract of `cuggino.operators`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import SingleAssignmentDisposable

T = TypeVar("T")


class Subscription(abc.ObserverBase[T], abc.DisposableBase):
    """One subscription of a managed stream: passes events on until its end or disposal."""

    def __init__(self, observer: abc.ObserverBase[T]) -> None:
        self.closed = False
        self._observer = observer
        self._held = SingleAssignmentDisposable()
        self._subscribing = True
        self._ending: Callable[[], None] | None = None

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

    def hold(self, held: abc.DisposableBase) -> None:
        """Hold what `subscribe` has returned; an end that came within it is passed on now."""
        self._held.disposable = held
        self._subscribing = False
        if self._ending is not None:
            self._ending()

    def dispose(self) -> None:
        self.closed = True
        self._held.dispose()

    def _end(self, then: Callable[[], None]) -> None:
        if self.closed:
            return
        self.dispose()
        if self._subscribing:
            self._ending = then
        else:
            then()


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
        subscription.hold(subscribe(subscription, scheduler))
        return subscription

    return Observable(begin)
