"""That a person asks the deliverables loop to stop (AUT-059, AUT-079)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

from reactivex import Observable, abc, operators as ops
from reactivex.disposable import Disposable
from reactivex.subject import Subject

from cuggino.errors import CugginoError
from cuggino.operators import interrupt_when

T = TypeVar("T")


class Interrupted(CugginoError):
    """A person has asked the loop to stop; what ran is to be run again."""


class Interruption:
    """Whether it was asked for, for all stages of one run: those that run, and those to come."""

    def __init__(self) -> None:
        self._is_asked = False
        self._running: Subject[object] = Subject()
        self.asked: Observable[object] = Observable(self._subscribe)
        """Emits when it was asked for, at once if that was before."""

    @contextmanager
    def heard(self, interrupt: Observable[object], lane: abc.SchedulerBase) -> Iterator[None]:
        """Listen to `interrupt` while the block runs, which is to be entered on the lane.

        Whatever thread an item comes on, it acts on the lane. An error counts as an item: who
        cannot be stopped any more must not go on.
        """
        thread = threading.get_ident()

        def hear(_item: object) -> None:
            if threading.get_ident() == thread:
                self._ask()
            else:
                lane.schedule(lambda *_: self._ask())

        listening = interrupt.subscribe(hear, hear, lambda: None, scheduler=lane)
        try:
            yield
        finally:
            listening.dispose()

    def ending(self, source: Observable[T]) -> Observable[T]:
        """The source until it is asked for: then it is released, and fails with `Interrupted`."""

        def stop(_item: object) -> NoReturn:
            raise Interrupted("interrupted")

        return source.pipe(interrupt_when(self.asked.pipe(ops.map(stop))))

    def _ask(self) -> None:
        if not self._is_asked:
            self._is_asked = True
            self._running.on_next(True)

    def _subscribe(
        self, observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        if self._is_asked:
            observer.on_next(True)
            return Disposable()
        return self._running.subscribe(observer, scheduler=scheduler)
