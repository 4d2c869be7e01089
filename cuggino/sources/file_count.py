"""How many files wait in a folder: counted once, and as a stream."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SerialDisposable, SingleAssignmentDisposable

from cuggino.sources.folder import PollingStarted, folder_changes
from cuggino.sources.lane import serial_lane


def count_files(folder: Path) -> int:
    """The number of visible files in `folder` (CUG-101).

    Names that start with `.`, folders and everything else that is not a regular file do not
    count; a link counts as what it points to. A folder that is missing or cannot be read has 0.
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


def _unheard(_notice: PollingStarted) -> None:
    """Nobody has asked how the folder is watched."""


def watch_file_count(
    folder: Path,
    *,
    settle: float = 30.0,
    changes: Callable[[Path], Observable[object]] = folder_changes,
    count: Callable[[Path], int] = count_files,
    on_polling: Callable[[PollingStarted], object] = _unheard,
) -> Observable[int]:
    """Emit how many files there are, now and whenever the number has changed (CUG-101).

    ::

        changes:            -a---a-------------b------
        count:              2   (3)           (3)
        settle=5:           2---------3---------------

    The first number is emitted within `subscribe`; `changes(folder)` is subscribed before it is
    counted, so that no change falls between the two (CUG-105). `settle` seconds after the last of
    a series of changes the files are counted again, and a number that differs from the one before
    is emitted. Nothing is scheduled while nothing changes, and never more than one timer.

    `changes` emits anything for a change; a `PollingStarted` among it is none, and is passed to
    `on_polling`. All but the first number comes on the scheduler given to `subscribe`, which must
    be serial and is passed to `changes`; without one, and instead of one that is not serial, on a
    private thread.

    Never completes, not even when `changes` does. Errors: whatever `changes`, `count`,
    `on_polling` or the subscriber's `on_next` raise; the watch has been released by then.
    """
    if settle < 0:
        raise ValueError("settle must not be negative")

    def subscribe(
        observer: abc.ObserverBase[int], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        counting = _Counting(
            lambda: count(folder), timedelta(seconds=settle), on_polling, observer, scheduler
        )
        counting.begin(lambda: changes(folder))
        return Disposable(counting.dispose)

    return Observable(subscribe)


class _Counting:
    """One subscriber: its watch, its timer, the last number.

    A timer per change (`ops.debounce`) would leave thousands of cancelled ones in the scheduler's
    queue after a burst. Here one timer runs, and starts again for the rest if it fires too early.
    """

    def __init__(
        self,
        count: Callable[[], int],
        settle: timedelta,
        on_polling: Callable[[PollingStarted], object],
        observer: abc.ObserverBase[int],
        scheduler: abc.SchedulerBase | None,
    ) -> None:
        self._count = count
        self._settle = settle
        self._on_polling = on_polling
        self._observer = observer
        self._lane, self._close_lane = serial_lane(scheduler)
        self._watch = SingleAssignmentDisposable()
        self._timer = SerialDisposable()
        self._last: int | None = None
        self._lock = threading.Lock()
        """Guards the four below: the first number may come on another thread than the rest."""
        self._begun = False
        self._armed = False
        self._ended = False
        self._changed_at: datetime | None = None

    def begin(self, changes: Callable[[], Observable[object]]) -> None:
        try:
            self._watch.disposable = changes().subscribe(
                self._on_change, self._fail, scheduler=self._lane
            )
        except Exception as error:
            self._fail(error)
        self._emit()
        with self._lock:
            self._begun = True
            self._armed = arm = self._changed_at is not None
        if arm:
            self._arm(self._settle)

    def dispose(self) -> None:
        with self._lock:
            self._ended = True
        self._timer.dispose()
        self._watch.dispose()
        self._close_lane()

    def _on_change(self, item: object) -> None:
        if isinstance(item, PollingStarted):
            self._guarded(lambda: self._on_polling(item))
            return
        with self._lock:
            self._changed_at = self._lane.now
            arm = self._begun and not self._armed
            self._armed = self._armed or arm
        if arm:
            self._arm(self._settle)

    def _arm(self, delay: timedelta) -> None:
        self._timer.disposable = self._lane.schedule_relative(delay, self._fire)

    def _fire(self, _scheduler: abc.SchedulerBase, _state: object = None) -> None:
        with self._lock:
            assert self._changed_at is not None
            left = self._changed_at + self._settle - self._lane.now
            self._armed = left > timedelta(0)
        if left > timedelta(0):
            self._arm(min(left, self._settle))  # never longer, should the clock be set back
        else:
            self._emit()

    def _emit(self) -> None:
        """Count, and emit the number if it is a new one."""
        self._guarded(self._emit_new)

    def _emit_new(self) -> None:
        number = self._count()
        if number != self._last and not self._ended:
            self._last = number
            self._observer.on_next(number)

    def _guarded(self, action: Callable[[], object]) -> None:
        if self._ended:
            return
        try:
            action()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        with self._lock:
            first, self._ended = not self._ended, True
        if first:
            self.dispose()
            self._observer.on_error(error)
