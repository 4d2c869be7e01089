"""`managed`: make an operator that keeps the contract here; `attach`: subscribe to one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from reactivex import Observable, abc

T = TypeVar("T")


class Stream(Observable[T]):
    """An Observable that is cheap to make: a stage consists of dozens."""

    def __init__(self, subscribe: abc.Subscription[T]) -> None:
        self._subscribe = subscribe

    @cached_property
    def lock(self) -> RLock:  # type: ignore[override]
        return threading.RLock()

    if not TYPE_CHECKING:  # RxPY's has an overload for each number of operators

        def pipe(self, *operators: Callable[[Any], Any]) -> Any:
            """Return this stream with the operators applied in order."""
            piped: Any = self
            for operator in operators:
                piped = operator(piped)
            return piped


class Managed(Stream[T]):
    """A stream whose subscribe function keeps the contract of this package.

    It emits nothing after its end or disposal, and looks up its observer's `on_next` for each event
    (a cached method would outlive a disposal). That is all that `attach` needs.
    """


def attach(
    source: Observable[Any],
    on_next: Callable[[Any], None],
    on_error: Callable[[Exception], None],
    on_completed: Callable[[], None],
    *,
    scheduler: abc.SchedulerBase | None,
) -> abc.DisposableBase:
    """Subscribe like `source.subscribe`, with one call fewer for each event.

    It is for our own operators, which form long chains: RxPY wraps every subscriber in an observer.
    """
    if not isinstance(source, Managed):
        return source.subscribe(on_next, on_error, on_completed, scheduler=scheduler)
    attached = _Attached(on_next, on_error, on_completed)
    try:
        attached.hold(source._subscribe_core(attached, scheduler))
    except Exception as error:
        if not attached.fail(error):
            raise
    return attached


def _ignore(_value: object) -> None:
    pass


class Holder(abc.DisposableBase):
    """The resources of a subscription, disposed of once.

    Like RxPY's `SingleAssignmentDisposable`, but without its lock, which would slow down every
    operator in a chain. Two threads that dispose of it at the same moment both dispose of the held
    resource, which must allow that.
    """

    closed = False
    _held: abc.DisposableBase | None = None

    def hold(self, held: abc.DisposableBase) -> None:
        self._held = held
        if self.closed:
            Holder.dispose(self)

    def dispose(self) -> None:
        self.closed = True
        held, self._held = self._held, None
        if held is not None:
            held.dispose()


class _Nothing(abc.DisposableBase):
    def dispose(self) -> None:
        pass


NOTHING: abc.DisposableBase = _Nothing()
"""The disposable of a stream that ends within its subscription."""


class Both(abc.DisposableBase):
    """Two disposables, disposed of in order; both must allow repeated disposal."""

    def __init__(self, first: abc.DisposableBase, second: abc.DisposableBase) -> None:
        self._first = first
        self._second = second

    def dispose(self) -> None:
        self._first.dispose()
        self._second.dispose()


class _Attached(Holder, abc.ObserverBase[Any]):
    """An observer like RxPY's `AutoDetachObserver`; its `on_next` is the subscriber's function."""

    def __init__(
        self,
        on_next: Callable[[Any], None],
        on_error: Callable[[Exception], None],
        on_completed: Callable[[], None],
    ) -> None:
        self.__dict__["on_next"] = on_next
        self._on_error = on_error
        self._on_completed = on_completed

    def on_next(self, value: Any) -> None:
        """Pass the value on; replaced by the subscriber's function."""

    def on_error(self, error: Exception) -> None:
        if self._close():
            try:
                self._on_error(error)
            finally:
                self.dispose()

    def on_completed(self) -> None:
        if self._close():
            try:
                self._on_completed()
            finally:
                self.dispose()

    def fail(self, error: Exception) -> bool:
        """Report an error of the subscription; return False after the end."""
        is_open = self._close()
        if is_open:
            self._on_error(error)
        return is_open

    def dispose(self) -> None:
        self.__dict__["on_next"] = _ignore
        super().dispose()

    def _close(self) -> bool:
        """Let no more events through; return True to the first caller."""
        first, self.closed = not self.closed, True
        self.__dict__["on_next"] = _ignore
        return first


class Subscription(Holder, abc.ObserverBase[T]):
    """One subscription of a managed stream: passes events on until its end or disposal."""

    def __init__(self, observer: abc.ObserverBase[T]) -> None:
        self._observer = observer
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

    def follow(
        self, source: Observable[T], scheduler: abc.SchedulerBase | None
    ) -> abc.DisposableBase:
        """Subscribe to the source and pass everything on."""
        return attach(source, self.on_next, self.on_error, self.on_completed, scheduler=scheduler)

    def hold(self, held: abc.DisposableBase) -> None:
        """Hold what `subscribe` has returned; an end that came within it is passed on now."""
        super().hold(held)
        self._subscribing = False
        if self._ending is not None:
            self._ending()

    def _end(self, then: Callable[[], None]) -> None:
        if self.closed:
            return
        self.dispose()
        if self._subscribing:
            self._ending = then
        else:
            then()


class Broadcast(Managed[T]):
    """A hot stream that never ends: `send` emits to the current subscribers.

    For use on one thread. (RxPY's `Subject` has a lock, and can end.)
    """

    def __init__(self) -> None:
        super().__init__(self.listen)
        self._observers: list[abc.ObserverBase[T]] = []

    def send(self, value: T) -> None:
        for observer in tuple(self._observers):
            observer.on_next(value)

    def listen(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        """Subscribe an observer that ignores what comes after its disposal."""
        self._observers.append(observer)
        return _Listening(self._observers, observer)


class _Listening(abc.DisposableBase):
    def __init__(self, observers: list[Any], observer: object) -> None:
        self._observers = observers
        self._observer = observer

    def dispose(self) -> None:
        if self._observer in self._observers:
            self._observers.remove(self._observer)


Subscribe: TypeAlias = Callable[[Subscription[T], abc.SchedulerBase | None], abc.DisposableBase]


def managed(subscribe: Subscribe[T]) -> Observable[T]:
    """Return a cold Observable that keeps the contract of `cuggino.operators`.

    `subscribe` gets an observer to send to, and returns the resource that it holds. The resource is
    released before the end is passed on, and when the subscriber's `on_next` raises; its exception
    then becomes the error. Nothing is emitted after an end or a disposal. (`reactivex.create`
    guarantees neither: it releases after the end, and raises a subscriber's exception into the
    source.)
    """

    def begin(
        observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        subscription = Subscription(observer)
        subscription.hold(subscribe(subscription, scheduler))
        return subscription

    return Managed(begin)
