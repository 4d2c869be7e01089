"""Small actions of the loop itself as stages: read a file, read the clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from cuggino.operators.scheduler import serial

T = TypeVar("T")


def act(do: Callable[[], T]) -> Observable[T]:
    """Call `do` at subscription and emit its result; its exception is the stream's error.

    A loop's generator must be a function of its stages' outcomes alone, so it reads the disk
    through a stage.
    """

    def subscribe(
        observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        observer.on_next(do())
        observer.on_completed()
        return Disposable()

    return Observable(subscribe)


def clock() -> Observable[datetime]:
    """Emit the scheduler's time at subscription: the only clock a loop may read."""

    def subscribe(
        observer: abc.ObserverBase[datetime], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        observer.on_next(serial(scheduler).now)
        observer.on_completed()
        return Disposable()

    return Observable(subscribe)


def lane() -> Observable[abc.SchedulerBase]:
    """Emit the scheduler of the subscription, for reading its time after the flow has ended."""

    def subscribe(
        observer: abc.ObserverBase[abc.SchedulerBase],
        scheduler: abc.SchedulerBase | None = None,
    ) -> abc.DisposableBase:
        observer.on_next(serial(scheduler))
        observer.on_completed()
        return Disposable()

    return Observable(subscribe)
