"""Following a run while another process works on it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from reactivex import Observable, abc
from reactivex.disposable import SerialDisposable
from reactivex.scheduler import TimeoutScheduler

from cuggino.errors import StorageError
from cuggino.runs.listing import working_process
from cuggino.runs.tails import RunTail
from cuggino.storage import Workspace
from cuggino.storage.journal import Entry, last_entry

PERIOD = 0.25
"""Seconds between polls of the journals."""


def follow(
    project: str | os.PathLike[str],
    journal: Path,
    *,
    period: float = PERIOD,
    is_worked_on: Callable[[datetime], bool] | None = None,
    on_lost: Callable[[], None] = lambda: None,
) -> Observable[Entry]:
    """Emit the entries of a run: those in its journal, then those that its process appends.

    For a watch, the entries of its items' runs are included. Completes after the end of the run, or
    at once after the recorded entries if no process works on it. If the process is killed later,
    `on_lost` is called, and the entries of the process that resumes the run follow.

    Polls every `period` seconds. Timers run on the scheduler given at `subscribe`. `is_worked_on`
    returns whether a process works on a run whose last entry has this time.

    Errors: `StorageError` if the journal is removed, or a line is broken or of an unknown version.
    """
    is_alive = is_worked_on or _worked_on(Workspace(Path(project)))

    def subscribe(
        observer: abc.ObserverBase[Entry], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        lane = scheduler or TimeoutScheduler.singleton()
        tail, timer = RunTail(journal), SerialDisposable()
        was_alive = is_lost = False

        def emit() -> bool:
            """Emit new entries; return whether to keep polling."""
            for entry in tail.read():
                observer.on_next(entry)
                if timer.is_disposed:
                    return False
            if tail.is_missing:
                raise StorageError("follow", f"{journal} is gone")
            if tail.ended is not None:
                observer.on_completed()
            return tail.ended is None

        def begin(*_: Any) -> None:
            nonlocal was_alive
            with suppress(OSError):  # reading it will report that it is missing
                # Before emitting: a subscriber may take long, and the process may end meanwhile.
                was_alive = (last := last_entry(journal)) is not None and is_alive(last.at)
            look()

        def look(*_: Any) -> None:
            nonlocal was_alive, is_lost
            try:
                goes_on = emit()
                if goes_on and not (tail.last is not None and is_alive(tail.last)):
                    goes_on = emit()  # entries written before it ended
                    if goes_on and not was_alive:
                        observer.on_completed()
                        return
                    if goes_on and not is_lost:
                        is_lost = True
                        on_lost()
                elif goes_on:
                    was_alive, is_lost = True, False
            except StorageError as error:
                observer.on_error(error)
                return
            if goes_on and not timer.is_disposed:
                timer.disposable = lane.schedule_relative(period, look)

        timer.disposable = lane.schedule(begin)
        return timer

    return Observable(subscribe)


def _worked_on(workspace: Workspace) -> Callable[[datetime], bool]:
    def is_worked_on(last: datetime) -> bool:
        owner = working_process(workspace)
        return owner is not None and (owner.since is None or last >= owner.since)

    return is_worked_on
