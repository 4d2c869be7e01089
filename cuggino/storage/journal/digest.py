"""The digest of a journal: what a list of runs shows, kept in `.cuggino/digests`.

A journal of a long run has hundreds of thousands of entries. Its digest is written when a process
of the run ends, or when the journal is first read as a whole, and holds as long as the journal has
the same size and time. It can be deleted at any time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from cuggino.events import KnownState, RunContinued, RunEnded, RunResumed, RunStarted, is_resumable
from cuggino.files import storing, write_atomic
from cuggino.storage.journal.reader import Entry, iter_entries
from cuggino.storage.journal.totals import COUNTED, Totals


class JournalDigest(BaseModel):
    """The beginning, the end and the totals of a run."""

    model_config = ConfigDict(frozen=True)

    v: Literal[1] = 1
    """The version of the format."""
    size: int
    """Bytes of the journal."""
    modified: int
    """Its time of change in nanoseconds."""
    started: RunStarted
    began: datetime
    """The time of the first entry."""
    continued: datetime
    """The time when the last process began."""
    last: datetime
    """The time of the last entry."""
    ended: RunEnded | None
    """The end of the last process; None while it works, or if it was killed."""
    totals: RunResumed

    @property
    def state(self) -> KnownState:
        """Return the state of the run, `unfinished` without an end."""
        return self.ended.state if self.ended else "unfinished"

    @property
    def resumable(self) -> bool:
        """Return whether another process can resume the run."""
        return is_resumable(self.state)


class DigestFold:
    """The digest of a journal that is being read or written, entry by entry."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._totals = Totals()
        self._first: Entry | None = None
        self._began: Entry | None = None
        self._last: Entry | None = None
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Count an entry."""
        if self._first is None:
            self._first = entry
        kind = type(entry.event)
        if kind is RunStarted or kind is RunContinued:
            self._began = entry
            if self._last is not None:
                self._totals.until(self._last.at)
        self._last = entry
        if kind.__name__ in COUNTED:
            self._totals.add(entry)

    @property
    def is_whole(self) -> bool:
        """Return whether the first entry is among those added."""
        return self._first is not None and isinstance(self._first.event, RunStarted)

    @property
    def run_id(self) -> str:
        """Return the id of the run, or "" without its first entry."""
        first = self._first.event if self._first is not None else None
        return first.run_id if isinstance(first, RunStarted) else ""

    @property
    def seq(self) -> int:
        """Return the number of the last entry, 0 without one."""
        return self._last.seq if self._last is not None else 0

    @property
    def totals(self) -> RunResumed:
        """Return the totals so far."""
        if self._last is not None:
            self._totals.until(self._last.at)
        return self._totals.result()

    def digest(self, status: os.stat_result) -> JournalDigest:
        """Return the digest of a journal with this status; it has a first entry."""
        first, began, last = self._first, self._began, self._last
        assert first is not None and began is not None and last is not None
        assert isinstance(first.event, RunStarted)
        return JournalDigest(
            size=status.st_size,
            modified=status.st_mtime_ns,
            started=first.event,
            began=first.at,
            continued=began.at,
            last=last.at,
            ended=last.event if isinstance(last.event, RunEnded) else None,
            totals=self.totals,
        )


def digest_of(path: Path) -> JournalDigest:
    """Return the digest of the journal: the kept one, or one from reading the whole journal.

    Raises:
        StorageError: as `read_journal`.
    """
    with storing("read journal", path):
        status = path.stat()
    if kept := kept_digest(path, size=status.st_size, modified=status.st_mtime_ns):
        return kept
    # If it grows meanwhile, its size and time are those of before, so that the digest is not used.
    digest = DigestFold(iter_entries(path, only=COUNTED)).digest(status)
    keep_digest(path, digest)
    return digest


def kept_digest(path: Path, *, size: int, modified: int) -> JournalDigest | None:
    """Return the digest that is kept of a journal with this size and time, or None."""
    if (place := _place(path)) is None:
        return None
    try:
        kept = JournalDigest.model_validate_json(place.read_bytes())
    except (OSError, ValidationError):
        return None
    return kept if (kept.size, kept.modified) == (size, modified) else None


def keep_digest(path: Path, digest: JournalDigest) -> None:
    """Write the digest of a journal, if that is possible."""
    if (place := _place(path)) is None:
        return
    with suppress(OSError, ValueError):  # half a surrogate pair cannot be written
        text = digest.model_dump_json()
        if not place.parent.exists():
            place.parent.mkdir(mode=0o700)
            (place.parent / ".gitignore").write_text("*\n")
        write_atomic(place, f"{text}\n", sync=False)


def remove_digest(path: Path) -> None:
    """Remove the digest of a journal that is removed."""
    if (place := _place(path)) is not None:
        with suppress(OSError):
            place.unlink(missing_ok=True)


def _place(path: Path) -> Path | None:
    """Return the file of the journal's digest; None for a journal outside a workspace."""
    if path.parent.name != "journal":
        return None
    return path.parent.with_name("digests") / f"{path.stem}.json"
