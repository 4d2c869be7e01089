"""`waits_for_room`: a watch that survives a full disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reactivex import Observable, merge, operators as ops, timer

from cuggino.domain import is_full_disk
from cuggino.errors import CugginoError, Interrupted
from cuggino.events import WatchDiskFull
from cuggino.operators import Flow, ask, emit, flow, forward

PAUSE = 60.0
"""Seconds until the disk is checked for room again."""


def waits_for_room(
    interrupt: Observable[object] | None = None, *, on_full: Callable[[], object] = lambda: None
) -> Callable[[Observable[Any]], Observable[Any]]:
    """Subscribe to the source again, a minute after it failed because the disk is full.

    ::

        source:             a--#                    # no space left on device
        source, again:               -b-|
        waits_for_room:     a--F 59s -b-|           F = WatchDiskFull(retry_in=60.0, ...)

    The failed source is released first, with everything it held, and `on_full` is called.

    Errors: `Interrupted` after an item of `interrupt` in the pause; any other error of the source
    at once.
    """

    def operator(source: Observable[Any]) -> Observable[Any]:
        def story() -> Flow[None]:
            while True:
                try:
                    yield from forward(source)
                    return
                except CugginoError as error:
                    if not is_full_disk(error):
                        raise
                    message = error.message
                on_full()
                yield from emit(WatchDiskFull(message=message, retry_in=PAUSE))
                over = [timer(PAUSE).pipe(ops.map(lambda _: False))]
                over += [interrupt.pipe(ops.map(lambda _: True))] if interrupt is not None else []
                if (yield from ask(merge(*over).pipe(ops.take(1)))):
                    raise Interrupted("interrupted while it waited for room on the disk")

        return flow(story)

    return operator
