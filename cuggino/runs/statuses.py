"""Following the status of projects while other processes work in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable, SerialDisposable

from cuggino.errors import StorageError
from cuggino.folders import folder_changes
from cuggino.operators.scheduler import lane_of
from cuggino.runs.following import PERIOD
from cuggino.runs.state import RunState
from cuggino.runs.status import ProjectStatus, project_status, read_run
from cuggino.storage import Workspace
from cuggino.storage.journal import Entry, JournalTail

SETTLE = 0.04
"""Seconds between a change and the next look: events often come several at once."""


def follow_statuses(
    projects: Callable[[], Iterable[Path]],
    *,
    period: float = PERIOD,
    changes: Callable[[Path], Observable[object]] = folder_changes,
) -> Observable[tuple[ProjectStatus, ...]]:
    """Emit the status of each of the projects, in their order, whenever one may have changed.

    While a run works, its journals are read as they grow, when `changes` of their folder emits.
    Other changes (of the projects, a killed process, an answer) are seen every `period` seconds,
    when `projects` is called again. Emits on the scheduler given at `subscribe` if that is serial,
    otherwise on a private thread. Never completes. Errors: none; a project that cannot be read has
    a `problem`.
    """

    def subscribe(
        observer: abc.ObserverBase[tuple[ProjectStatus, ...]],
        scheduler: abc.SchedulerBase | None = None,
    ) -> abc.DisposableBase:
        lane, close_lane = lane_of(scheduler, "cuggino-status")
        timer, soon = SerialDisposable(), SerialDisposable()
        following: dict[Path, _Followed] = {}
        changed: set[Path] = set()

        def stop() -> None:
            for followed in following.values():
                followed.watch.dispose()

        def note(project: Path) -> None:
            if not changed:
                soon.disposable = lane.schedule_relative(SETTLE, emit_changed)
            changed.add(project)

        def emit_changed(*_: Any) -> None:
            for project in changed:
                if project in following:
                    look_at(project)
            changed.clear()
            emit()

        def look_at(project: Path) -> None:
            at = lane.now if lane.now.tzinfo else lane.now.replace(tzinfo=UTC)
            status = following[project].read(at)
            if status.owner is None:
                following[project].watch.disposable = None
                following[project].is_watched = False
            elif not following[project].is_watched:
                following[project].is_watched = True
                journal = Workspace(project).journal
                following[project].watch.disposable = changes(journal).subscribe(
                    lambda _: note(project), scheduler=lane
                )

        def emit() -> None:
            observer.on_next(tuple(one.status for one in following.values() if one.status))

        def look(*_: Any) -> None:
            wanted = list(dict.fromkeys(path.resolve() for path in projects()))
            for project in following.keys() - set(wanted):
                following.pop(project).watch.dispose()
            for project in wanted:
                followed = following.pop(project) if project in following else _Followed(project)
                following[project] = followed  # at its place in the order
                look_at(project)
            emit()
            timer.disposable = lane.schedule_relative(period, look)

        timer.disposable = lane.schedule(look)
        return CompositeDisposable(timer, soon, Disposable(stop), Disposable(close_lane))

    return Observable(subscribe)


class _Followed:
    """A project, and the journals that were read of it."""

    def __init__(self, project: Path) -> None:
        self.watch = SerialDisposable()
        self.is_watched = False
        self.status: ProjectStatus | None = None
        self._project = project
        self._journals: dict[Path, GrowingRun] = {}
        self._read: set[Path] = set()

    def read(self, at: datetime) -> ProjectStatus:
        self._read.clear()
        try:
            self.status = project_status(self._project, at=at, read=self._fold)
        except StorageError as error:
            self.status = ProjectStatus(folder=self._project, at=at, problem=error.message)
        for path in self._journals.keys() - self._read:
            del self._journals[path]
        return self.status

    def _fold(self, path: Path) -> tuple[RunState, Entry, Entry]:
        self._read.add(path)
        return self._journals.setdefault(path, GrowingRun(path)).read()


class GrowingRun:
    """The state of the run of a journal, read as it grows."""

    def __init__(self, path: Path) -> None:
        self._tail = JournalTail(path)
        self._restarts = 0
        self._run: tuple[RunState, Entry, Entry] | None = None

    def read(self) -> tuple[RunState, Entry, Entry]:
        """Return the state, and the first and the last entry.

        Raises:
            StorageError: the journal cannot be read; the next call reads it from its beginning.
        """
        if self._run is None:
            self._tail.skip()
            self._run = read_run(self._tail.path)
        before, self._run = self._run, None
        state, first, last = before
        if self._tail.has_changed():
            while entries := self._tail.read():
                if self._tail.restarts != self._restarts:
                    self._restarts = self._tail.restarts
                    return self.read()
                for entry in entries:
                    if entry.seq > last.seq:  # else it was there at the first reading
                        state, last = state.add(entry.event, at=entry.at, stage=entry.stage), entry
        self._run = state, first, last
        return self._run
