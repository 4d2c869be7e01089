"""Recorded runs as Observables: their list, and the replay of one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import reactivex
from reactivex import Observable, abc, operators as ops
from reactivex.disposable import CompositeDisposable, Disposable, SerialDisposable
from reactivex.scheduler import TimeoutScheduler

from cuggino.errors import StorageError
from cuggino.events import Event, RunContinued, is_journal_event
from cuggino.runs.listing import RecordedRun, Runs, UnreadableRun
from cuggino.storage.journal import Entry, iter_entries


def list_runs(project: str | os.PathLike[str]) -> Observable[RecordedRun | UnreadableRun]:
    """Emit the recorded runs of a project, newest first, reading one journal at a time."""
    return reactivex.defer(lambda _scheduler: reactivex.from_iterable(Runs(project).all()))


def replay(journal: Path, *, speed: float = 0) -> Observable[Event]:
    """Replay the events of a recorded run like `replay_timed`, without their times. Cold."""
    return replay_timed(journal, speed=speed).pipe(ops.map(_event))


class TimedEvent(NamedTuple):
    """A recorded event and its time."""

    at: datetime
    event: Event


def _event(timed: TimedEvent) -> Event:
    return timed.event


def replay_timed(journal: Path, *, speed: float = 0) -> Observable[TimedEvent]:
    """Replay the events of a recorded run, each with its time. Cold.

    With a `speed` above 0 the recorded pauses are kept, divided by `speed`; time in which no
    process worked on the run is skipped. With 0 all events come at once. Timers run on the
    scheduler passed to `subscribe`. One journal line is in memory at a time.

    Errors: `StorageError` at the first line that cannot be read.
    """

    def subscribe(
        observer: abc.ObserverBase[TimedEvent], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        lane = scheduler or TimeoutScheduler.singleton()
        entries = iter_entries(journal)
        events = _paced(entries, speed)
        pending = SerialDisposable()

        def prepare() -> None:
            try:
                following = next(events, None)
            except StorageError as error:
                observer.on_error(error)
                return
            if following is None:
                observer.on_completed()
                return
            gap, timed = following

            def play(_scheduler: abc.SchedulerBase, _state: object = None) -> None:
                observer.on_next(timed)
                if not pending.is_disposed:
                    prepare()

            pending.disposable = lane.schedule_relative(gap, play)

        prepare()
        return CompositeDisposable(pending, Disposable(entries.close))

    return Observable(subscribe)


def _paced(entries: Iterable[Entry], speed: float) -> Iterator[tuple[float, TimedEvent]]:
    """Yield each emitted event with the seconds to wait before it."""
    before, gap = None, 0.0
    for entry in entries:
        if isinstance(entry.event, RunContinued):
            before = None
        if speed and before is not None:
            gap += max((entry.at - before).total_seconds(), 0.0) / speed
        before = entry.at
        if not is_journal_event(entry.event):
            yield gap, TimedEvent(entry.at, entry.event)
            gap = 0.0
