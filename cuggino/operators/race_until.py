"""`race_until`: run streams at the same time until one of them has what is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from reactivex import Observable, abc, operators as ops
from reactivex.subject import Subject

from cuggino.operators.interrupt_when import interrupt_when
from cuggino.operators.managed import Subscription, managed
from cuggino.operators.mapcat import mapcat
from cuggino.operators.merge_at_most import merge_at_most
from cuggino.operators.mistakes import require_stream

T = TypeVar("T")

_ALL = 1_000
"""More streams than anybody races."""


def race_until(
    wins: Callable[[T], bool], *, on_release: Callable[[], object] | None = None
) -> Callable[[Observable[Observable[T]]], Observable[T]]:
    """Run the streams that the source emits at the same time, until an event of one `wins`.

    ::

        source:             (ab|)
        a:                  -x-y--Wz|
        b:                  --v----Wu|
        race_until(isW):    -xvy--Wz|

    With that event all others are released at once; the winner goes on to its end. Streams that
    the source emits later are not started. Without a winner it completes when the source and all
    streams have, and it fails with the first that fails; a stream that must not end the others
    handles its own errors. All must be on one thread. `on_release` is as for `merge_at_most`, and
    is also called when there is a winner. (RxPY's `amb` chooses by the first event of any kind.)
    """

    def operator(source: Observable[Observable[T]]) -> Observable[T]:
        def subscribe(
            observer: Subscription[T], scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            won: Subject[object] = Subject()
            is_won = False

            def racing(stream: Observable[T]) -> Observable[T]:
                require_stream(stream, "race_until")
                me = object()

                def look(event: T) -> Iterator[T]:
                    nonlocal is_won
                    yield event
                    if not is_won and wins(event):
                        is_won = True
                        if on_release is not None:
                            on_release()
                        won.on_next(me)

                others: Observable[object] = won.pipe(ops.filter(lambda winner: winner is not me))
                return stream.pipe(mapcat(look), interrupt_when(others))

            race: Observable[T] = source.pipe(
                interrupt_when(won), ops.map(racing), merge_at_most(_ALL, on_release=on_release)
            )
            return race.subscribe(observer, scheduler=scheduler)

        return managed(subscribe)

    return operator
