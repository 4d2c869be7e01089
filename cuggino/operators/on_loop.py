"""`on_loop`: the boundary of every stream that a service returns."""

from __future__ import annotations

import threading
from typing import TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable
from reactivex.internal.exceptions import DisposedException

from cuggino.operators.loop_scheduler import LoopScheduler
from cuggino.operators.managed import Held, released
from cuggino.operators.mistakes import require_stream
from cuggino.operators.scheduler import has_stopped, serial

T = TypeVar("T")

_NOTICE = 0.5
"""Seconds until a disposal notices that an event loop has stopped, which then releases nothing."""


def on_loop(source: Observable[T]) -> Observable[T]:
    """Subscribe, deliver and dispose the stream on one serial scheduler.

    The scheduler is the one given to `subscribe`, made serial by `serial`. Guarantees, for any
    threads and operators upstream:

    - every `on_next`, `on_error` and `on_completed` runs on that scheduler's thread;
    - upstream is released *before* `on_completed` or `on_error` is delivered;
    - an exception in the subscriber's `on_next` releases upstream and reaches its `on_error`;
    - `dispose()` from any thread returns when upstream is released.

    A stream that has crossed already is returned unchanged: an event crosses once. (RxPY's
    `observe_on` moves events alone, not subscription and disposal, and queues any number of them.)
    """
    require_stream(source, "on_loop")
    return source if isinstance(source, _OnLoop) else _OnLoop(source)


def within_loop(source: Observable[T]) -> Observable[T]:
    """Return the stream without its crossing, for a subscriber that is on its scheduler already.

    For a loop that runs another loop as a stage: its own stream crosses for both.
    """
    return source.uncrossed if isinstance(source, _OnLoop) else source


def crossing(
    stream: Observable[T], observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase
) -> Crossing[T]:
    """Return a subscription that `begin` starts, and that can be disposed at any time.

    For the edges, where an interrupt may come in the middle of `subscribe`.
    """
    return Crossing(within_loop(stream), observer, scheduler)


class _OnLoop(Observable[T]):
    def __init__(self, source: Observable[T]) -> None:
        super().__init__(self._cross)
        self.uncrossed = source

    def _cross(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        subscription = Crossing(self.uncrossed, observer, serial(scheduler))
        subscription.begin()
        return Disposable(subscription.dispose)


class Crossing(abc.ObserverBase[T]):
    """One subscription on a scheduler; see `on_loop`."""

    def __init__(
        self, source: Observable[T], observer: abc.ObserverBase[T], lane: abc.SchedulerBase
    ) -> None:
        self._source = source
        self._observer = observer
        self._lane = lane
        self._upstream = Held()
        self._gate = threading.Lock()
        self._thread: int | None = None
        self._closed = False
        self._is_disposed = False
        self._unreleased: Exception | None = None
        """What a release at an event after the disposal has raised."""

    def begin(self) -> None:
        self._lane.schedule(self._subscribe)

    def _subscribe(self, _scheduler: abc.SchedulerBase, _state: object = None) -> None:
        with self._gate:
            if self._closed:
                return
            self._thread = threading.get_ident()
        self._upstream.hold(
            lambda: self._source.subscribe(
                self.on_next, self.on_error, self.on_completed, scheduler=self._lane
            )
        )

    def on_next(self, value: T) -> None:
        if self._elsewhere():
            self._lane.schedule(lambda *_: self.on_next(value))
        elif not self._closed:
            try:
                self._observer.on_next(value)
            except Exception as error:
                self.on_error(error)
        elif self._is_disposed:  # the source may never let the scheduler release it
            self._unreleased = released(self._upstream, self._unreleased)

    def on_error(self, error: Exception) -> None:
        if self._elsewhere():
            self._lane.schedule(lambda *_: self.on_error(error))
        elif self._close():
            self._upstream.end(self._observer, error)

    def on_completed(self) -> None:
        if self._elsewhere():
            self._lane.schedule(lambda *_: self.on_completed())
        elif self._close():
            self._upstream.end(self._observer)

    def dispose(self) -> None:
        if not self._close() or self._thread is None:
            return
        self._is_disposed = True
        if not self._elsewhere():
            self._upstream.dispose()
            return
        is_released = threading.Event()

        def release(*_: object) -> None:
            try:
                self._upstream.dispose()
                if self._unreleased is not None:
                    raise self._unreleased
            finally:
                is_released.set()

        last: abc.DisposableBase = Disposable()
        try:
            if isinstance(self._lane, LoopScheduler):
                last = self._lane.at_end(release)  # which drops what is scheduled
            self._lane.schedule(release)
        except (DisposedException, RuntimeError):  # the lane has ended: nothing else runs
            release()
        while not is_released.wait(_NOTICE):
            if has_stopped(self._lane):
                release()
        last.dispose()

    def _elsewhere(self) -> bool:
        return threading.get_ident() != self._thread

    def _close(self) -> bool:
        """Return True to the first caller only, which ends the crossing."""
        with self._gate:
            first, self._closed = not self._closed, True
            return first
