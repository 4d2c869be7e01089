"""Interruption of a run by a person (AUT-059, AUT-079)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from reactivex import Observable, abc, never

from cuggino.errors import Interrupted
from cuggino.operators import (
    NOTHING,
    Broadcast,
    Managed,
    Subscription,
    attach,
    interrupt_when,
    managed,
)

T = TypeVar("T")


class Interruption:
    """One interruption for all stages of a run: for those that run, and those to come."""

    def __init__(self) -> None:
        self._is_asked = False
        self._running: Broadcast[object] = Broadcast()
        self.asked: Observable[object] = Managed(self._subscribe)
        """Emits when the run is interrupted; at once if it was before."""

    @contextmanager
    def heard(
        self, interrupt: Observable[object] | None, lane: abc.SchedulerBase
    ) -> Iterator[None]:
        """Listen to `interrupt` within the block, which must be entered on the lane.

        Its items may come on any thread. An error counts as an item: a run that can no longer be
        interrupted must not continue.
        """
        thread = threading.get_ident()

        def hear(_item: object) -> None:
            if threading.get_ident() == thread:
                self.ask()
            else:
                lane.schedule(lambda *_: self.ask())

        source: Observable[object] = never() if interrupt is None else interrupt
        listening = source.subscribe(hear, hear, lambda: None, scheduler=lane)
        try:
            yield
        finally:
            listening.dispose()

    def ending(self, source: Observable[T]) -> Observable[T]:
        """Pass the source on until interrupted; then release it and fail with `Interrupted`."""

        def subscribe(
            observer: Subscription[Any], scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            def stop(_item: object) -> None:
                observer.on_error(Interrupted("interrupted"))

            return attach(
                self.asked, stop, observer.on_error, observer.on_completed, scheduler=scheduler
            )

        return source.pipe(interrupt_when(managed(subscribe)))

    def ask(self) -> None:
        """Interrupt the run; must be called on its lane."""
        if not self._is_asked:
            self._is_asked = True
            self._running.send(True)

    def _subscribe(
        self, observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        if self._is_asked:
            observer.on_next(True)
            return NOTHING
        return self._running.listen(observer)
