"""Listing the runs of a project by their journals, with the state of each."""

from __future__ import annotations

import fcntl
import functools
import itertools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cuggino.errors import RunNotFound, StorageError
from cuggino.events import RunResumed, RunStarted, is_resumable, shown_state
from cuggino.runs.digests import delivery_of, digest_of
from cuggino.runs.state import LASTING, Delivery, RunState, RunStatus
from cuggino.storage import LockOwner, Workspace
from cuggino.storage.journal import (
    JournalDigest,
    JournalFile,
    list_journals,
    scan_journal,
    skim,
)

_SHORTEST_ID = 8
_NAMED = 5
"""Runs that an error about an ambiguous id names."""


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """A run read from its journal."""

    path: Path
    short_id: str
    """The shortest unique prefix of its id."""
    digest: JournalDigest
    """Its beginning, its end and its totals."""
    state: RunStatus

    @property
    def checked(self) -> bool | None:
        """For an approval: whether the check command decided (`LoopApproved`)."""
        return self.digest.ended.checked if self.digest.ended is not None else None

    @property
    def shown_state(self) -> str:
        """The state that views show, such as `unchecked` or `all_passed`."""
        delivery = self.delivery
        ended = delivery.ended if delivery is not None else None
        return shown_state(self.state, self.checked, ended.reason if ended is not None else None)

    @property
    def id(self) -> str:
        return self.path.stem

    @property
    def started(self) -> RunStarted:
        """The first event: the kind of run and its options."""
        return self.digest.started

    @functools.cached_property
    def journal(self) -> JournalFile:
        """Its journal, whose entries are read from the file when they are iterated.

        Raises:
            StorageError: the journal cannot be read.
        """
        return scan_journal(self.path)

    @functools.cached_property
    def folded(self) -> RunState:
        """The state at its end, without the last words and tools.

        Raises:
            StorageError: the journal cannot be read.
        """
        return RunState.of(skim(self.path, LASTING, totals=("UsageUpdate",), recent=0))

    @property
    def resumable(self) -> bool:
        """True if a new process can resume the run; never while one is working on it.

        A watch that ended is not resumed: a new watch picks up where it stopped.
        """
        return can_resume(self.started, self.state)

    @property
    def resume_command(self) -> str | None:
        """The command line that resumes the run, or None if it cannot be resumed."""
        return resume_command(self.started, self.state, self.short_id)

    @property
    def totals(self) -> RunResumed:
        """Duration, cost and counts of the whole run."""
        return self.digest.totals

    @property
    def message(self) -> str:
        """The cause of the end, such as an error, or ""."""
        return self.digest.message

    @property
    def delivery(self) -> Delivery | None:
        """Sessions and deliverables of a run of the deliver loop; None for other runs."""
        return delivery_of(self.digest)


def can_resume(started: RunStarted, state: RunStatus) -> bool:
    """Return whether a new process can resume a run in this state."""
    if started.attempt_of:
        return False  # its run is resumed
    if state == "killed":
        return True
    return state != "running" and started.kind != "watch" and is_resumable(state)


def resume_command(started: RunStarted, state: RunStatus, short_id: str) -> str | None:
    """Return the command line that resumes a run in this state; None if it cannot be resumed."""
    if not can_resume(started, state):
        return None
    if started.kind == "watch" or started.item is not None:
        return "cuggino watch"
    return f"cuggino {started.kind} --resume {short_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableRun:
    """A run whose journal cannot be read."""

    path: Path
    short_id: str
    error: StorageError

    @property
    def id(self) -> str:
        return self.path.stem


class Runs:
    """The recorded runs of one project, as they were when this was created.

    The duration of a run at work ends at the time `at`; default: the current time.
    """

    def __init__(self, project: str | os.PathLike[str], *, at: datetime | None = None) -> None:
        self._at = at or datetime.now(UTC)
        workspace = Workspace(Path(project))
        self._folder = workspace.journal
        self._paths = list_journals(workspace.journal)
        self._worker = working_process(workspace)
        self._short = short_ids([path.stem for path in self._paths])

    def all(self) -> Iterator[RecordedRun | UnreadableRun]:
        """Yield every run, newest first."""
        for path in self._paths:
            try:
                yield self.read(path)
            except StorageError as error:
                yield UnreadableRun(path=path, short_id=self._short[path.stem], error=error)

    def find(self, run_id: str | None = None) -> RecordedRun:
        """Read the run with this id, unique prefix of an id, or journal path; default the latest.

        Raises:
            RunNotFound: no run matches, or several do.
            StorageError: its journal cannot be read.
        """
        return self.read(self.path_of(run_id))

    def path_of(self, run_id: str | None = None) -> Path:
        """Return the journal of a run, found as in `find`."""
        paths = {path.stem: path for path in self._paths}
        if not paths:
            raise RunNotFound(
                f"there is no journal of a run in {self._folder}",
                hint="`cuggino run` writes one, unless `journal` is false in the configuration",
            )
        if run_id is None:
            return self._paths[0]
        wanted = Path(run_id).name.removesuffix(".jsonl")
        if wanted in paths:
            return paths[wanted]
        found = [name for name in paths if wanted and name.startswith(wanted)]
        if not found:
            raise RunNotFound(f"there is no run {run_id!r}", hint="`cuggino runs` lists all runs")
        if len(found) > 1:
            more = ", ..." if len(found) > _NAMED else ""
            raise RunNotFound(
                f"{len(found)} runs begin with {run_id!r}: {', '.join(found[:_NAMED])}{more}",
                hint="give more characters of the id",
            )
        return paths[found[0]]

    def short_id(self, path: Path) -> str:
        """Return the shortest unique prefix of the id of a run."""
        return self._short.get(path.stem, path.stem)

    def read(self, path: Path) -> RecordedRun:
        """Read the run of a journal.

        Raises:
            StorageError: the journal cannot be read.
        """
        digest = digest_of(path)
        state = self._state(digest)
        return RecordedRun(
            path=path,
            short_id=self.short_id(path),
            digest=_until(self._at, digest) if state == "running" else digest,
            state=state,
        )

    def _state(self, digest: JournalDigest) -> RunStatus:
        if digest.ended is not None:
            return digest.ended.state
        worker = self._worker
        # The live run started, or was resumed, after its process locked the workspace.
        live = worker is not None and (worker.since is None or digest.continued >= worker.since)
        return "running" if live else "killed"


def _until(at: datetime, digest: JournalDigest) -> JournalDigest:
    """Return the digest with the time since the last entry: an agent may be silent for long."""
    silent = max((at - digest.last).total_seconds(), 0.0)
    totals = digest.totals.model_copy(update={"duration": digest.totals.duration + silent})
    return digest.model_copy(update={"totals": totals})


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Map each id to its shortest unique prefix of at least eight characters."""
    names = sorted({*ids})
    neighbors = zip(names, ["", *names], [*names[1:], ""], strict=False)
    return {
        name: name[: max(_SHORTEST_ID, *(_common(name, other) + 1 for other in others))]
        for name, *others in neighbors
    }


def _common(one: str, other: str) -> int:
    """Return the length of the common prefix."""
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return sum(1 for _ in same)


def working_process(workspace: Workspace) -> LockOwner | None:
    """Return the live process that holds the workspace; the owner file of a killed one is stale."""
    owner = workspace.owner()
    if owner is None:
        return None
    try:
        lock = os.open(workspace.folder / "lock", os.O_RDONLY)
    except OSError:
        return None
    try:
        # Not by process id: another process may have it by now, in a container most likely.
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return owner
    finally:
        os.close(lock)
    return None
