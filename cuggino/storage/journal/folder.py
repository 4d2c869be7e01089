"""The folder of journals: finding a run, its digest, and removing old journals."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from cuggino.domain import item_name
from cuggino.errors import RunNotResumable, StorageError
from cuggino.events import RunEnded, RunStarted, is_resumable
from cuggino.files import is_linked
from cuggino.storage.ids import time_of
from cuggino.storage.journal.digest import kept_digest, remove_digest
from cuggino.storage.journal.reader import (
    JournalFile,
    iter_entries,
    last_entry,
    list_journals,
    scan_journal,
)

_OPENING = b'{"v":'
"""The beginning of every entry."""
_LONGEST_TORN = 1024 * 1024
_REMEMBERED = 1024
"""Journals whose beginning or end a process remembers."""


def find_run(
    folder: Path, run_id: str | None, *, kind: Literal["run", "deliver", "loop"] = "run"
) -> JournalFile:
    """Return the unfinished run whose id starts with `run_id`; without one, the latest.

    `kind` is the loop that resumes it.

    Raises:
        RunNotResumable: no run or several match, or the run has ended or is resumed by a watch.
    """
    found = [path for path in list_journals(folder) if path.stem.startswith(run_id or "")]
    if run_id is None:
        for path in found:
            origin = origin_of(path)
            if origin is None or origin.kind != kind or origin.item is not None:
                continue
            if has_ended(path):
                continue
            journal = scan_journal(path)
            if journal.resumable:
                return journal
        raise RunNotResumable(
            "there is no unfinished run to resume", hint="see `cuggino runs` for all runs"
        )
    if not found:
        raise RunNotResumable(f"there is no run {run_id}", hint="see `cuggino runs` for all runs")
    if len(found) > 1:
        raise RunNotResumable(
            f"{len(found)} runs begin with {run_id}", hint="give more of the id: see `cuggino runs`"
        )
    journal = scan_journal(found[0])
    if journal.started.kind == "watch":
        raise RunNotResumable(
            f"{found[0].stem} is a watch", hint="start `cuggino watch`, which resumes it"
        )
    if journal.started.kind != kind:
        command = f"cuggino {journal.started.kind}"
        raise RunNotResumable(
            f"{found[0].stem} is a run of `{command}`",
            hint=f"resume it with `{command} --resume {found[0].stem[:13]}`",
        )
    if journal.started.item is not None:
        item, whole = item_name(journal.started.item), journal.started.attempt_of
        if whole is not None:
            raise RunNotResumable(
                f"run {found[0].stem} is {item} of run {whole}, which resumes it",
                hint="`cuggino runs list` shows what can be resumed",
            )
        raise RunNotResumable(
            f"run {found[0].stem} is for the backlog item {item}",
            hint="`cuggino watch` resumes it with the item",
        )
    if not journal.resumable:
        raise RunNotResumable(
            f"run {found[0].stem} has ended ({journal.state.replace('_', ' ')})",
            hint="start a new one with "
            + ("`cuggino run TEXT`" if kind == "run" else f"`cuggino {kind}`"),
        )
    return journal


class RunOrigin(NamedTuple):
    """What a journal is about; all of its beginning that is worth remembering."""

    run_id: str
    kind: str
    """The loop."""
    item: str | None
    """The backlog item, if it is about one."""
    slot: int = 0
    """The slot where it works; 0 in the project itself."""


def origin_of(path: Path) -> RunOrigin | None:
    """Return what the journal is about, or None if it cannot be read."""
    try:
        return _origin(path, path.stat().st_ino)
    except (OSError, StorageError):  # killed as it started, or a foreign file
        return None


@lru_cache(maxsize=_REMEMBERED)
def _origin(path: Path, _inode: int) -> RunOrigin:
    """Read the first event, which never changes."""
    event = next(iter_entries(path)).event
    assert isinstance(event, RunStarted)  # by `iter_entries`
    slot = event.options.get("slot")
    return RunOrigin(event.run_id, event.kind, event.item, slot if isinstance(slot, int) else 0)


def prune(
    folder: Path, *, now: datetime, days: int, runs: int, keep: Collection[str] = ()
) -> list[Path]:
    """Remove old journals; return the removed ones, newest first.

    A journal is removed if its last entry is more than `days` old, or if its run has ended for good
    and `runs` newer journals of such runs exist. A resumable run is removed only for its age. An
    empty file, of a process killed as it started, is removed at once; the caller holds the lock of
    the workspace. Files that cannot be removed are left for the next time.

    Only journals are removed: files of other programs, and everything in a folder that is reached
    through a link stay.

    Args:
        folder: the folder of the journals.
        now: the time, in UTC if it has no zone.
        days: how long a journal is kept.
        runs: how many journals of ended runs are kept.
        keep: ids of runs that are always kept.
    """
    oldest = (now.replace(tzinfo=UTC) if now.tzinfo is None else now) - timedelta(days=days)
    removed: list[Path] = []
    ended = 0
    if is_linked(folder):
        return removed
    try:
        journals = list_journals(folder)
    except StorageError:
        return removed
    are_few = len(journals) <= runs
    for path in journals:
        try:
            is_empty = path.stat().st_size == 0
            if are_few and not is_empty and _began(path) >= oldest:
                continue  # without reading it
            end = _end_of(path)
            ended += end.is_final
            wanted = end.at >= oldest and not (end.is_final and ended > runs) and not is_empty
            if path.stem in keep or wanted or not (end.is_known or _is_journal(path)):
                continue
            path.unlink()
        except OSError:
            continue
        _forget_digest(path)
        removed.append(path)
    return removed


def _forget_digest(path: Path) -> None:
    remove_digest(path)


def has_only_journals(folder: Path) -> bool:
    """Return whether the folder can be read and has no file that is not a journal."""
    try:
        return all(path.is_file() and _is_journal(path) for path in folder.iterdir())
    except OSError:
        return False


def has_ended(path: Path) -> bool:
    """Return whether the journal's run cannot be resumed; also if the file is missing."""
    try:
        return _end_of(path).is_final
    except FileNotFoundError:
        return True
    except OSError:
        return False


def is_concluded(path: Path) -> bool:
    """Return whether the last process of the journal's run recorded its end.

    Raises:
        OSError: the file cannot be read.
    """
    return _end_of(path).is_recorded


class _End(NamedTuple):
    at: datetime
    """The time of the last entry."""
    is_recorded: bool
    """The last entry is `RunEnded`."""
    is_final: bool
    """The run cannot be resumed."""
    is_known: bool
    """There is a digest, so that the file is a journal."""


def _end_of(path: Path) -> _End:
    """Return the end by the journal's digest, or by its last entry without one."""
    status = path.stat()
    return _end(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=_REMEMBERED)
def _end(path: Path, size: int, modified: int) -> _End:
    if kept := kept_digest(path, size=size, modified=modified):
        at, event = kept.last, kept.ended
        is_known = kept.started.run_id == path.stem
    elif last := last_entry(path):
        at, event = last.at, last.event if isinstance(last.event, RunEnded) else None
        is_known = False
    else:
        return _End(datetime.fromtimestamp(modified / 1e9, UTC), False, False, False)
    is_final = event is not None and not is_resumable(event.state)
    return _End(at, event is not None, is_final, is_known)


def _began(path: Path) -> datetime:
    """Return the time in the name of the journal; the first of all times for another name."""
    return time_of(path.stem) or datetime.min.replace(tzinfo=UTC)


def _is_journal(path: Path) -> bool:
    """Return whether the file is the journal that its name says, or the beginning of one."""
    origin = origin_of(path)
    if origin is not None:
        return origin.run_id == path.stem
    if time_of(path.stem) is None:
        return False
    with path.open("rb") as file:
        # Nothing but a part of the first line: its process was killed.
        line = file.readline(_LONGEST_TORN)
    return not line or (line.startswith(_OPENING) and not line.endswith(b"\n"))
