"""Interruption of a run by a person (AUT-059, AUT-079)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

from reactivex import Observable, abc, never, operators as ops
from reactivex.subject import AsyncSubject

from cuggino.errors import Interrupted
from cuggino.operators import interrupt_when

T = TypeVar("T")


class Interruption:
    """One interruption for all stages of a run: for those that run, and those to come."""

    def __init__(self) -> None:
        self._asked: AsyncSubject[None] = AsyncSubject()
        """Emits when the run is interrupted, or at once if it was before."""

    @contextmanager
    def heard(
        self, interrupt: Observable[object] | None, lane: abc.SchedulerBase
    ) -> Iterator[None]:
        """Listen to `interrupt` within the block, which must be entered on the lane.

        Its items may come on any thread. An error counts as an item: a run that can no longer be
        interrupted must not continue.
        """
        asked: Callable[[object], None] = lambda _item: self.ask()  # noqa: E731
        with heard(never() if interrupt is None else interrupt, lane, asked, asked):
            yield

    def ending(self, source: Observable[T]) -> Observable[T]:
        """Pass the source on until interrupted; then release it and fail with `Interrupted`."""

        def stop(_item: object) -> NoReturn:
            raise Interrupted("interrupted")

        return source.pipe(interrupt_when(self._asked.pipe(ops.map(stop))))

    def ask(self) -> None:
        """Interrupt the run; must be called on its lane."""
        self._asked.on_next(None)
        self._asked.on_completed()


@contextmanager
def heard(
    source: Observable[T],
    lane: abc.SchedulerBase,
    hear: Callable[[T], None],
    fail: Callable[[Exception], None],
) -> Iterator[None]:
    """Call `hear` with each item of the source, or `fail` with its error, within the block.

    The block must be entered on the lane, where both are called. Items may come on any thread.
    """
    thread = threading.get_ident()

    def on_lane(call: Callable[[Any], None]) -> Callable[[Any], None]:
        def called(value: Any) -> None:
            if threading.get_ident() == thread:
                call(value)
            else:
                lane.schedule(lambda *_: call(value))

        return called

    listening = source.subscribe(on_lane(hear), on_lane(fail), lambda: None, scheduler=lane)
    try:
        yield
    finally:
        listening.dispose()
