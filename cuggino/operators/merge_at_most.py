"""`merge_at_most`: run a limited number of streams at the same time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, Observer, abc
from reactivex.disposable import Disposable

from cuggino.operators.acquire_release import Scope, Together
from cuggino.operators.managed import Held, Subscription, managed
from cuggino.operators.mistakes import require_number, require_stream

T = TypeVar("T")


def merge_at_most(
    n: int, *, on_release: Callable[[], object] | None = None
) -> Callable[[Observable[Observable[T]]], Observable[T]]:
    """Merge the streams that the source emits, with at most `n` running at the same time.

    ::

        source:             abc|
        a:                  x---y|
        b:                  --z|
        c:                  -w|
        merge_at_most(2):   x--zyw|

    Further streams wait, and start in order: each when a running one has completed and has been
    released. It completes when the source and all streams have, and fails with the first that
    fails; a stream that must not end the others handles its own errors. All must be on one thread.

    A failure or disposal releases every running stream before it returns, in order. `on_release` is
    called before the first of them: use it to signal whatever takes long to end, so that everything
    ends at the same time (`cuggino.processes.interrupt_processes`). (RxPY's `merge` with
    `max_concurrent` holds a lock during `on_next`, and releases after the end.)
    """
    require_number("n", n)
    if n < 1:
        raise ValueError(f"n is {n}, but at least one stream must run")

    def operator(source: Observable[Observable[T]]) -> Observable[T]:
        def subscribe(
            observer: Subscription[T], scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            waiting: deque[Observable[T]] = deque()
            running: dict[Held, None] = {}
            is_starting = has_ended = False

            def add(stream: Observable[T]) -> None:
                require_stream(stream, "merge_at_most")
                waiting.append(stream)
                start()

            def end() -> None:
                nonlocal has_ended
                has_ended = True
                start()

            def start() -> None:
                """Start streams while there is room; a loop, as they may complete at once."""
                nonlocal is_starting
                if is_starting:
                    return
                is_starting = True
                try:
                    while waiting and len(running) < n and not observer.closed:
                        run(waiting.popleft())
                finally:
                    is_starting = False
                if has_ended and not waiting and not running:
                    observer.on_completed()

            def run(stream: Observable[T]) -> None:
                held = Held()
                running[held] = None

                def completed() -> None:
                    running.pop(held, None)
                    start()

                after = Observer[T](on_error=observer.on_error, on_completed=completed)
                held.hold(
                    lambda: stream.subscribe(
                        observer.on_next,
                        lambda error: held.end(after, error),
                        lambda: held.end(after),
                        scheduler=scheduler,
                    )
                )

            def release() -> None:
                waiting.clear()
                with Scope() as scope:  # all are released, even if one of them raises
                    for held in reversed(running):
                        scope.defer(held.dispose)
                    if running and on_release is not None:
                        scope.defer(on_release)
                    running.clear()

            adding = source.subscribe(
                observer.safely(add), observer.on_error, end, scheduler=scheduler
            )
            return Together(adding, Disposable(release))

        return managed(subscribe)

    return operator
