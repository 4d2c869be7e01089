"""Following a run while another process works on it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable, SerialDisposable

from cuggino.errors import StorageError
from cuggino.folders import folder_changes
from cuggino.operators.scheduler import lane_of
from cuggino.runs.listing import working_process
from cuggino.runs.tails import RunTail
from cuggino.storage import Workspace
from cuggino.storage.journal import Entry, last_entry

PERIOD = 1.0
"""Seconds between polls, for changes that the system does not report, and for a killed process."""


def follow(
    project: str | os.PathLike[str],
    journal: Path,
    *,
    period: float = PERIOD,
    changes: Callable[[Path], Observable[object]] = folder_changes,
    is_worked_on: Callable[[datetime], bool] | None = None,
    on_lost: Callable[[], None] = lambda: None,
) -> Observable[Entry]:
    """Emit the entries of a run: those in its journal, then those that its process appends.

    For a watch, the entries of its items' runs are included. Completes after the end of the run, or
    at once after the recorded entries if no process works on it. If the process is killed later,
    `on_lost` is called, and the entries of the process that resumes the run follow.

    Reads the journals whenever `changes` of their folder emits, and every `period` seconds. Emits
    on the scheduler given at `subscribe` if that is serial, otherwise on a private thread.
    `is_worked_on` returns whether a process works on a run whose last entry has this time.

    Errors: `StorageError` if the journal is removed, or a line is broken or of an unknown version.
    """
    is_alive = is_worked_on or _worked_on(Workspace(Path(project)))

    def subscribe(
        observer: abc.ObserverBase[Entry], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        lane, close_lane = lane_of(scheduler, "cuggino-follow")
        tail, timer, watch = RunTail(journal), SerialDisposable(), SerialDisposable()
        following = CompositeDisposable(timer, watch, Disposable(close_lane))
        was_alive = is_lost = is_watched = False

        def complete() -> None:
            watch.dispose()
            observer.on_completed()

        def fail(error: Exception) -> None:
            watch.dispose()
            observer.on_error(error)

        def emit() -> bool:
            """Emit new entries; return whether to keep polling."""
            for entry in tail.read():
                observer.on_next(entry)
                if timer.is_disposed:
                    return False
            if tail.is_missing:
                raise StorageError("follow", f"{journal} is gone")
            if tail.ended is not None:
                complete()
            return tail.ended is None

        def listen() -> None:
            nonlocal is_watched
            if not is_watched:
                is_watched = True
                watch.disposable = changes(journal.parent).subscribe(hear, fail, scheduler=lane)

        def hear(_change: object) -> None:
            try:
                if not (timer.is_disposed or emit()):
                    timer.dispose()
            except StorageError as error:
                timer.dispose()
                fail(error)

        def begin(*_: Any) -> None:
            nonlocal was_alive
            with suppress(OSError):  # reading it will report that it is missing
                # Before emitting: a subscriber may take long, and the process may end meanwhile.
                was_alive = (last := last_entry(journal)) is not None and is_alive(last.at)
            if was_alive:
                listen()  # before reading, so that no entry is missed between the two
            look()

        def look(*_: Any) -> None:
            nonlocal was_alive, is_lost
            try:
                goes_on = emit()
                if goes_on and not (tail.last is not None and is_alive(tail.last)):
                    goes_on = emit()  # entries written before it ended
                    if goes_on and not was_alive:
                        complete()
                        return
                    if goes_on and not is_lost:
                        is_lost = True
                        on_lost()
                elif goes_on:
                    was_alive, is_lost = True, False
                    listen()
            except StorageError as error:
                fail(error)
                return
            if goes_on and not timer.is_disposed:
                timer.disposable = lane.schedule_relative(period, look)

        timer.disposable = lane.schedule(begin)
        return following

    return Observable(subscribe)


def _worked_on(workspace: Workspace) -> Callable[[datetime], bool]:
    def is_worked_on(last: datetime) -> bool:
        owner = working_process(workspace)
        return owner is not None and (owner.since is None or last >= owner.since)

    return is_worked_on
