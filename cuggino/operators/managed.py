"""`managed`: make an operator that keeps the contract of `cuggino.operators`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeAlias, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import SerialDisposable

T = TypeVar("T")
P = ParamSpec("P")


def released(held: abc.DisposableBase, error: Exception | None = None) -> Exception | None:
    """Release what is held; return what that raises, with `error` as its context, or `error`.

    An exception raised to the source instead would end nothing: the stream would never end.
    """
    try:
        held.dispose()
    except Exception as failure:
        return _chained(failure, error)
    return error


def _chained(failure: Exception, error: Exception | None) -> Exception:
    if failure is not error and failure.__context__ is None:
        failure.__context__ = error
    return failure


class Held(abc.DisposableBase):
    """What a subscription holds, released before its end.

    An end that comes within a source's `subscribe`, which has not returned what to release yet, is
    passed on afterward.
    """

    def __init__(self) -> None:
        self._held = SerialDisposable()
        self._subscribing = False
        self._ending: tuple[abc.ObserverBase[Any], Exception | None] | None = None

    def hold(self, subscribe: Callable[[], abc.DisposableBase]) -> None:
        """Subscribe, and hold what that returns in place of what was held before."""
        self._subscribing = True
        unreleased: Exception | None = None
        try:
            self._held.disposable = subscribe()
        except Exception as failure:
            if self._ending is None:
                raise
            unreleased = failure  # RxPY releases a source that has ended already
        finally:
            self._subscribing = False
        if self._ending is not None:
            observer, error = self._ending
            self._end(observer, error if unreleased is None else _chained(unreleased, error))

    def release(self, error: Exception | None = None) -> Exception | None:
        """Release what is held; another source may be held after that. Returns as `released`."""
        held = self._held.current
        self._held.current = None
        return error if held is None else released(held, error)

    def end(self, observer: abc.ObserverBase[Any], error: Exception | None = None) -> None:
        """Release what is held, and only then pass the end on: the error, or completion.

        What the release raises is the error.
        """
        self._ending = observer, error
        if not self._subscribing:
            self._end(observer, error)

    def _end(self, observer: abc.ObserverBase[Any], error: Exception | None) -> None:
        error = released(self._held, error)
        if error is None:
            observer.on_completed()
        else:
            observer.on_error(error)

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
        self._end(error)

    def on_completed(self) -> None:
        self._end(None)

    def safely(self, step: Callable[P, None]) -> Callable[P, None]:
        """Return `step` for a source to call: what it raises is the error of this stream."""

        def call(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                step(*args, **kwargs)
            except Exception as error:
                self.on_error(error)

        return call

    def hold(self, subscribe: Callable[[], abc.DisposableBase]) -> None:
        """Subscribe, and hold what that returns."""
        self._held.hold(subscribe)

    def dispose(self) -> None:
        self.closed = True
        self._held.dispose()

    def _end(self, error: Exception | None) -> None:
        if not self.closed:
            self.closed = True
            self._held.end(self._observer, error)


Subscribe: TypeAlias = Callable[[Subscription[T], abc.SchedulerBase | None], abc.DisposableBase]


def managed(subscribe: Subscribe[T]) -> Observable[T]:
    """Return a cold Observable that keeps the contract of `cuggino.operators`.

    `subscribe` gets an observer to send to, and returns the resource that it holds. The resource is
    released before the end is passed on, and when the subscriber's `on_next` raises; its exception
    then becomes the error, and so does one of the release. Nothing is emitted after an end or a
    disposal. (RxPY's `create` guarantees neither: it releases after the end, and raises a
    subscriber's exception into the source.)
    """

    def begin(
        observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        subscription = Subscription(observer)

        def held() -> abc.DisposableBase:
            resource = subscribe(subscription, scheduler)
            if not hasattr(resource, "dispose"):
                raise TypeError(
                    "the function of managed() must return a disposable, such as its subscription, "
                    f"not {type(resource).__name__}"
                )
            return resource

        subscription.hold(held)
        return subscription

    return Observable(begin)
