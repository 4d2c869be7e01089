"""Keeping the folder of journals small."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cuggino.domain.run_state import RESUMABLE
from cuggino.errors import StorageError
from cuggino.events import RunEnded
from cuggino.storage.journal_reader import last_entry, list_journals


def prune(
    folder: Path, *, now: datetime, days: int, runs: int, keep: Collection[str] = ()
) -> list[Path]:
    """Remove old journals; gives what was removed, newest first.

    A journal goes when its last entry is more than `days` old. One of a run that has ended for
    good goes as well when there are `runs` newer ones of that kind; a run that can be resumed is
    removed for its age only, and so is a file that cannot be read. An empty one is of a process
    that was killed as it began, and goes at once: whoever prunes holds the lock of the workspace.
    What cannot be removed stays until the next time.

    Args:
        folder: the folder of the journals.
        now: the time; without a zone it is UTC.
        days: how long a journal is kept.
        runs: how many journals of ended runs are kept.
        keep: ids of runs that are kept whatever they are.
    """
    oldest = (now.replace(tzinfo=UTC) if now.tzinfo is None else now) - timedelta(days=days)
    removed: list[Path] = []
    ended = 0
    try:
        journals = list_journals(folder)
    except StorageError:
        return removed
    for path in journals:
        try:
            at, final = _end_of(path)
            ended += final
            wanted = at >= oldest and not (final and ended > runs) and path.stat().st_size > 0
            if path.stem in keep or wanted:
                continue
            path.unlink()
        except OSError:
            continue
        removed.append(path)
    return removed


def has_ended(path: Path) -> bool:
    """Whether the journal is of a run that nobody will go on with; so is one that is not there."""
    try:
        return _end_of(path)[1]
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _end_of(path: Path) -> tuple[datetime, bool]:
    """When the run said its last word, and whether it has ended for good."""
    last = last_entry(path)
    if last is None:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC), False
    final = isinstance(last.event, RunEnded) and last.event.state not in RESUMABLE
    return last.at, final
