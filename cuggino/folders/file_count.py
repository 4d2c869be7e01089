"""`watch_file_count`: the number of files in a folder, as a stream. `count_files`: counted once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from reactivex import Observable, abc, merge, never, operators as ops, timer
from reactivex.disposable import CompositeDisposable, Disposable

from cuggino.folders.folder import PollingStarted, folder_changes
from cuggino.operators import LoopScheduler, managed, on_loop
from cuggino.operators.alongside import alongside
from cuggino.operators.merge_now import merge_now
from cuggino.operators.scheduler import lane_of

T = TypeVar("T")


def count_files(folder: Path) -> int:
    """Return the number of visible regular files in `folder`.

    Names that start with `.`, folders and special files do not count. A link counts as its target.
    The count of a missing or unreadable folder is 0.
    """
    count = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.name.startswith("."):
                    with suppress(OSError):  # a link into a forbidden place
                        count += entry.is_file()
    except OSError:
        return 0
    return count


def settled(settle: float, *, longest: float) -> Callable[[Observable[object]], Observable[object]]:
    """Emit the last item after `settle` quiet seconds, or `longest` after the first of a series.

    ::

        changes:                -a---------b-c-d-e-f-g----
        settled(3, longest=5):  ----a-----------d-----g---

    A `debounce` with a longest wait. (RxPY's emits nothing as long as the source does not rest.)
    """

    def operator(changes: Observable[object]) -> Observable[object]:
        def series(first: object) -> Observable[object]:
            items = changes.pipe(ops.start_with(first))
            end = merge(items.pipe(ops.debounce(settle)), timer(longest))
            return items.pipe(ops.take_until(end), ops.take_last(1))

        return changes.pipe(ops.map(series), ops.exclusive())

    return ops.publish(operator)


def watch_file_count(
    folder: Path,
    *,
    settle: float = 30.0,
    longest: float | None = None,
    changes: Callable[[Path], Observable[object]] = folder_changes,
    count: Callable[[Path], T] = count_files,  # type: ignore[assignment]  # int by default
    on_polling: Callable[[PollingStarted], object] = lambda _notice: None,
) -> Observable[T]:
    """Emit how many files there are, now and whenever the number has changed.

    ::

        changes:            -a---a-------------b------    settle=5
        watch_file_count:   2---------3---------------    counts: 2, 3, 3

    `changes(folder)` is subscribed before the first count, so that no change is lost between the
    two. `settle` seconds after the last of a series of changes the files are counted
    again, and `longest` seconds (by default ten times as many) after the first of a series that
    does not end. `changes` emits anything for a change; a `PollingStarted` is passed to
    `on_polling` instead. `count` may return anything else that is compared with `==`.

    The first number is emitted within `subscribe`, the rest on the scheduler given to it, which
    must be serial. Without one, everything is emitted on a private thread.

    Never completes, not even when `changes` does. Errors: any raised by `changes`, `count` or
    `on_polling`.
    """
    if settle < 0:
        raise ValueError("settle must not be negative")
    longest = 10 * settle if longest is None else longest
    if longest < settle:
        raise ValueError("longest must not be less than settle")

    def is_change(item: object) -> bool:
        if isinstance(item, PollingStarted):
            on_polling(item)
            return False
        return True

    def counts(
        observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None
    ) -> abc.DisposableBase:
        found = changes(folder).pipe(ops.filter(is_change))
        endless: Observable[object] = never().pipe(alongside(found))
        counted = merge_now(endless.pipe(settled(settle, longest=longest)), _once_now()).pipe(
            ops.map(lambda _: count(folder))
        )
        return counted.pipe(ops.distinct_until_changed()).subscribe(observer, scheduler=scheduler)

    def on_a_lane(
        observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None
    ) -> abc.DisposableBase:
        lane, release = lane_of(scheduler)
        if lane is scheduler:
            return managed(counts).subscribe(observer, scheduler=lane)
        counting = on_loop(managed(counts)).subscribe(observer, scheduler=lane)
        if isinstance(lane, LoopScheduler):  # the private one: nothing else runs there
            begun = threading.Event()
            lane.schedule(lambda *_: begun.set())
            begun.wait()
        return CompositeDisposable(counting, Disposable(release))

    return managed(on_a_lane)


def _once_now() -> Observable[object]:
    """Return a stream that emits one item within `subscribe` and does not end."""

    def subscribe(
        observer: abc.ObserverBase[object], _scheduler: abc.SchedulerBase | None
    ) -> abc.DisposableBase:
        observer.on_next(None)
        return never().subscribe()

    return managed(subscribe)
