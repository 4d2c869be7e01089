"""`until_terminal`: end a stage with its terminal event, after a short time to settle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from reactivex import Observable, abc
from reactivex.disposable import (
    Disposable,
    SerialDisposable,
    SingleAssignmentDisposable,
)

from cuggino.operators.acquire_release import Together
from cuggino.operators.managed import Subscription, managed
from cuggino.operators.mistakes import require_number
from cuggino.operators.scheduler import serial

T = TypeVar("T")


def until_terminal(
    is_terminal: Callable[[T], bool],
    *,
    linger: float,
    settle: Callable[[T], bool] = lambda _event: False,
    choose: Callable[[Sequence[T]], T] = lambda terminals: terminals[0],
    on_terminal: Callable[[T], object] = lambda _event: None,
    reopen: Callable[[T], bool] = lambda _event: False,
) -> Callable[[Observable[T]], Observable[T]]:
    """Pass events on up to the first terminal one, which comes last.

    ::

        source:             a--T--s-|               s: accepted by `settle`
        until_terminal:     a-----s-(T|)

        source:             a--T---------           linger=5
        until_terminal:     a-------(T|)            the source is released first

        source:             a--T-r-b-T-|            r: accepted by `reopen`
        until_terminal:     a----r-b---(T|)

    `on_terminal` is called with each terminal event when it arrives. After the first the source has
    `linger` seconds to end by itself, in which only events that `settle` accepts are passed on (an
    agent's `SessionEnded`, with its cost). Then it is released, and the terminal event is emitted
    last: it is the outcome of the stage. `choose` picks one of several terminal events that have
    arrived by then; by default the first. An event that `reopen` accepts voids all terminal events
    before it: the source continues as if there had been none. Errors after the terminal event are
    ignored. A source without a terminal event ends the stream as it ends. (RxPY's
    `take_while` cannot wait for what follows the terminal event.)
    """
    require_number("linger", linger)

    def operator(source: Observable[T]) -> Observable[T]:
        def subscribe(
            observer: Subscription[T], scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            running = SingleAssignmentDisposable()
            lingering = SerialDisposable()
            terminal: list[T] = []

            def on_next(event: T) -> None:
                if is_terminal(event):
                    on_terminal(event)
                    terminal.append(event)
                    if len(terminal) == 1:
                        lane = serial(scheduler)
                        lingering.disposable = lane.schedule_relative(linger, lambda *_: ended())
                elif not terminal or settle(event):
                    observer.on_next(event)
                elif reopen(event):
                    terminal.clear()
                    lingering.disposable = Disposable()
                    observer.on_next(event)

            def finish() -> None:
                lingering.dispose()
                running.dispose()
                if terminal:
                    observer.on_next(choose(terminal))
                observer.on_completed()

            def on_error(error: Exception) -> None:
                if terminal:
                    ended()
                else:
                    observer.on_error(error)

            ended = observer.safely(finish)
            running.disposable = source.subscribe(
                observer.safely(on_next), on_error, ended, scheduler=scheduler
            )
            return Together(lingering, running)

        return managed(subscribe)

    return operator
