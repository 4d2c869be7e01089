"""The runs that have a journal: which there are, which of them is live, and playing one again."""

from __future__ import annotations

import fcntl
import itertools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable, SerialDisposable
from reactivex.scheduler import TimeoutScheduler

from cuggino.errors import StorageError
from cuggino.events import (
    Event,
    RunContinued,
    RunResumed,
    RunStarted,
    RunState,
    is_journal_event,
)
from cuggino.storage import LockOwner, Workspace
from cuggino.storage.journal import (
    COUNTED,
    Entry,
    JournalFile,
    iter_entries,
    list_journals,
    read_journal,
    run_totals,
)
from cuggino.storage.journal_delivery import DELIVERED, Delivery, fold_delivery
from cuggino_cli.naming import find

ShownState: TypeAlias = RunState | Literal["running", "killed"]
"""What a person sees of a run: one without an end is either worked on, or its process died."""

_SHORTEST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """A run by its journal."""

    path: Path
    journal: JournalFile
    """Without the entries that count for nothing here."""
    state: ShownState

    @property
    def resumable(self) -> bool:
        """Whether another process can go on with it; not while one works on it.

        A watch that was ended is over: a new one does the same.
        """
        if self.journal.started.kind == "watch":
            return self.state == "killed"
        return self.journal.resumable and self.state != "running"

    @property
    def totals(self) -> RunResumed:
        """What it came to."""
        return run_totals(self.journal)

    @property
    def message(self) -> str:
        """What went wrong, if anything did."""
        said = self.journal.ended.message if self.journal.ended is not None else ""
        delivery = None if said else self.delivery
        return delivery.ended.error if delivery is not None and delivery.ended is not None else said

    @property
    def delivery(self) -> Delivery | None:
        """What became of the deliverables; None unless it is a run of their loop."""
        is_one = self.journal.started.kind == "deliver"
        return fold_delivery(self.journal.entries) if is_one else None


class Runs:
    """The recorded runs of a project."""

    def __init__(self, root: Path) -> None:
        workspace = Workspace(root)
        self._paths = list_journals(workspace.journal)
        self._at_work = _at_work(workspace)

    def all(self) -> Iterator[RecordedRun | tuple[Path, StorageError]]:
        """The runs, newest first; for a journal that cannot be read its path and the reason."""
        for path in self._paths:
            try:
                yield self.read(path)
            except StorageError as error:
                yield path, error

    def find(self, wanted: str) -> Path:
        """The journal of the run with this id, or with the one id that begins so.

        Raises:
            click.UsageError: there is none, or there are several.
        """
        by_id = {path.stem: path for path in self._paths}
        return by_id[find(wanted, list(by_id), what="run", number_of=lambda _name: None)]

    def read(self, path: Path) -> RecordedRun:
        """The run of the journal.

        Raises:
            StorageError: the journal cannot be read.
        """
        journal = read_journal(path, only=COUNTED | DELIVERED)
        return RecordedRun(path=path, journal=journal, state=self._state(journal))

    def short_ids(self) -> dict[str, str]:
        """The shortest beginnings, but eight characters at least, that tell the ids apart."""
        names = sorted(path.stem for path in self._paths)
        neighbours = zip(names, ["", *names], [*names[1:], ""], strict=False)
        return {
            name: name[: max(_SHORTEST, *(_common(name, other) + 1 for other in others))]
            for name, *others in neighbours
        }

    def _state(self, journal: JournalFile) -> ShownState:
        if journal.ended is not None:
            return journal.ended.state
        begun = max(e.at for e in journal.entries if isinstance(e.event, RunStarted | RunContinued))
        owner = self._at_work
        # The one that is worked on has begun, or gone on, since the workspace was taken.
        live = owner is not None and (owner.since is None or begun >= owner.since)
        return "running" if live else "killed"


def _common(one: str, other: str) -> int:
    """How many characters they begin with in common."""
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return sum(1 for _ in same)


def _at_work(workspace: Workspace) -> LockOwner | None:
    """Who works in the workspace; the word of one who was killed does not count."""
    owner = workspace.owner()
    if owner is None:
        return None
    try:
        lock = os.open(workspace.folder / "lock", os.O_RDONLY)
    except OSError:
        return None
    try:
        # Not by the process id, which another process may have by now, in a container at once.
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return owner
    finally:
        os.close(lock)
    return None


def replayed(path: Path, *, speed: float) -> Observable[Event]:
    """What the run emitted, as it emitted it; cold.

    With a `speed` above 0 an event comes after the time that had passed before it, divided by
    `speed`; time in which no process worked counts as none. With 0 they come at once. The
    scheduler given to `subscribe` keeps the time. One line of the journal is in memory.

    Errors: `StorageError` at the first line that cannot be read.
    """

    def subscribe(
        observer: abc.ObserverBase[Event], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        lane = scheduler or TimeoutScheduler.singleton()
        entries = iter_entries(path)
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
            gap, event = following

            def play(_scheduler: abc.SchedulerBase, _state: object = None) -> None:
                observer.on_next(event)
                if not pending.is_disposed:
                    prepare()

            pending.disposable = lane.schedule_relative(gap, play)

        prepare()
        return CompositeDisposable(pending, Disposable(entries.close))

    return Observable(subscribe)


def _paced(entries: Iterable[Entry], speed: float) -> Iterator[tuple[float, Event]]:
    """The events that were emitted, each with the seconds to wait for it."""
    before, gap = None, 0.0
    for entry in entries:
        if isinstance(entry.event, RunContinued):
            before = None
        if speed and before is not None:
            gap += max((entry.at - before).total_seconds(), 0.0) / speed
        before = entry.at
        if not is_journal_event(entry.event):
            yield gap, entry.event
            gap = 0.0
