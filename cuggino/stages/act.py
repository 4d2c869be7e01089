"""A small deed of the loop itself as a stage: a file read, a file written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from reactivex import Observable, abc, disposable

from cuggino.operators import serial

T = TypeVar("T")


def act(do: Callable[[], T]) -> Observable[T]:
    """Do it at subscription, emit what it gave; its exception is the stream's error.

    A loop's generator is a function of its stages' outcomes alone: what it reads from the disk
    it reads through a stage.
    """

    def subscribe(
        observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        observer.on_next(do())
        observer.on_completed()
        return disposable.Disposable()

    return Observable(subscribe)


def clock() -> Observable[datetime]:
    """Emit the scheduler's time at subscription: the only clock that a loop looks at."""

    def subscribe(
        observer: abc.ObserverBase[datetime], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        observer.on_next(serial(scheduler).now)
        observer.on_completed()
        return disposable.Disposable()

    return Observable(subscribe)


def lane() -> Observable[abc.SchedulerBase]:
    """Emit the scheduler of the subscription, for what must know the time when all has ended."""

    def subscribe(
        observer: abc.ObserverBase[abc.SchedulerBase],
        scheduler: abc.SchedulerBase | None = None,
    ) -> abc.DisposableBase:
        observer.on_next(serial(scheduler))
        observer.on_completed()
        return disposable.Disposable()

    return Observable(subscribe)
