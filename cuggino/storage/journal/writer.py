"""Writing the journal of a run."""

from __future__ import annotations

import ctypes
import io
import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from errno import EEXIST
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from cuggino.events import (
    Event,
    RunEnded,
    RunStarted,
    StageFinished,
    StageStarted,
)
from cuggino.files import is_linked, storage_error, storing, write_atomic
from cuggino.protection import own_write
from cuggino.storage.journal.bounding import encoded
from cuggino.storage.journal.digest import JournalDigest, keep_digest
from cuggino.storage.journal.reader import SUFFIX, VERSION, Entry, Scan

_syncfs = getattr(ctypes.CDLL(None), "syncfs", None)
"""Waits until a file system is on the disk; Linux only."""


class JournalFold(Protocol):
    """What is counted of the entries, and becomes the digest of a journal that is closed."""

    @property
    def seq(self) -> int:
        """The number of the last entry that was counted; 0 without one."""

    def add(self, entry: Entry) -> None:
        """Count an entry."""

    def digest(self, status: os.stat_result) -> JournalDigest | None:
        """Return the digest of a journal with this status; None if entries are missing."""


class Journal:
    """The writer of one run's journal; made by `create` and `open`.

    `append` passes every entry to the system in one piece before it returns, so that it survives
    the death of the process. With `sync`, the entries that decide (run started, run ended, the end
    of a stage that had events or whose outcome is one) and all before them also survive a crash of
    the machine. On Linux so does what such a stage did, which is on the disk before its end: a
    resumed run does not do it again. Other stages, such as a look at the clock, are done again
    after one. The only writer is the process that holds the lock of the workspace.
    """

    def __init__(
        self,
        path: Path,
        file: io.FileIO,
        *,
        run_id: str,
        seq: int,
        length: int,
        sync: bool,
        fold: JournalFold | None = None,
    ) -> None:
        self.path = path
        self.run_id = run_id
        self._file = file
        self._sync = sync
        self._good = (seq, length)
        """The number and end of the last entry; one value, so that an interruption cannot split it.
        """
        self._uncertain = False
        """True if a partial line may follow the good ones."""
        self._eventful = True
        """True if the running stage has had an event."""
        self._fold = fold

    @classmethod
    def create(
        cls,
        folder: Path,
        started: RunStarted,
        *,
        at: datetime,
        sync: bool = True,
        fold: JournalFold | None = None,
    ) -> Journal:
        """Create the journal `<run_id>.jsonl` with `started`; only the user may read it.

        Others see it with this first line, or not at all. `fold` counts the entries, for a digest
        that is kept when the journal is closed.

        Raises:
            StorageError: it cannot be written, or exists already.
        """
        path = folder / f"{started.run_id}{SUFFIX}"
        entry, line = _written(started, seq=1, at=at, stage=None)
        with storing("write journal", path):
            folder.mkdir(parents=True, exist_ok=True)
            if not is_linked(folder):
                with suppress(OSError):  # the folder may belong to another user
                    folder.chmod(0o700)
            if os.path.lexists(path):
                raise FileExistsError(EEXIST, os.strerror(EEXIST))
            write_atomic(path, (line,), sync=sync, private=True)
            file = io.FileIO(path, "ab")
        if sync:
            with suppress(OSError):  # not supported by every file system
                _sync_folder(folder)
        if fold is not None:
            fold.add(entry)
        return cls(path, file, run_id=started.run_id, seq=1, length=len(line), sync=sync, fold=fold)

    @classmethod
    def open(cls, path: Path, *, sync: bool = True, fold: JournalFold | None = None) -> Journal:
        """Open an existing journal to append. A torn last line is cut off.

        The entries that `fold` has counted are not read again; it counts the others.

        Raises:
            StorageError: as `scan_journal`, or it cannot be written; nothing was changed.
        """
        seq = 0 if fold is None else fold.seq
        scan = Scan(path, only=None if fold is not None else (), begin=seq)
        for entry in scan:
            seq = entry.seq
            if fold is not None:
                fold.add(entry)
        with storing("write journal", path):
            file = io.FileIO(path, "ab")
        journal = cls(
            path, file, run_id=path.stem, seq=seq, length=scan.length, sync=sync, fold=fold
        )
        if scan.torn:
            try:
                with storing("write journal", path):
                    journal._cut()
            except BaseException:
                with suppress(OSError):
                    file.close()
                raise
        return journal

    @property
    def seq(self) -> int:
        """Return the number of the last entry."""
        return self._good[0]

    def append(self, event: Event, *, at: datetime, stage: str | None = None) -> Entry:
        """Write the event as the next entry; `at` without a zone is UTC.

        A long event of an agent is cut (`EVENT_LIMIT`), also in the entry that is returned.

        Raises:
            StorageError: it could not be written, for example because the disk is full. No part
                of it is in the journal, and the next entry follows the previous one.
        """
        seq, length = self._good
        entry, line = _written(event, seq=seq + 1, at=at, stage=stage)
        synced = self._sync and self._decides(event)
        try:
            if synced and _syncfs is not None and type(event) is StageFinished:
                _syncfs(self._file.fileno())
            self._add(line, synced=synced)
        except OSError as error:
            raise storage_error("write journal", self.path, error) from error
        self._good = (seq + 1, length + len(line))
        self._uncertain = False
        self._eventful = type(event) is not StageStarted
        if self._fold is not None:
            self._fold.add(entry)
        return entry

    def _decides(self, event: Event) -> bool:
        """Return whether the entry must survive a crash of the machine."""
        match event:
            case RunStarted() | RunEnded():
                return True
            case StageFinished(outcome=outcome):
                return self._eventful or (isinstance(outcome, dict) and "_tag" in outcome)
            case _:
                return False

    def close(self) -> None:
        """Close the file, and keep a digest of it; closing twice is allowed.

        Raises:
            StorageError: the system reports a write error only now.
        """
        if self._file.closed:
            return
        status = os.fstat(self._file.fileno())
        with storing("write journal", self.path):
            self._file.close()
        if self._fold is not None and status.st_size == self._good[1]:
            digest = self._fold.digest(status)
            if digest is not None:
                keep_digest(self.path, digest)

    def _add(self, line: bytes, *, synced: bool) -> None:
        if self._uncertain:
            self._cut()
        self._uncertain = True
        try:
            self._reopen()
            with own_write(self.path, line, appends=True):
                self._write(line)
            if synced:
                os.fsync(self._file.fileno())
        except OSError:
            with suppress(OSError):  # otherwise the next `append` or `open` cuts
                self._cut()
            raise

    def _reopen(self) -> None:
        """Open the file again if it was restored after somebody had removed or replaced it."""
        with suppress(FileNotFoundError):
            if self.path.stat().st_ino != os.fstat(self._file.fileno()).st_ino:
                restored = io.FileIO(self.path, "ab")
                self._file.close()
                self._file = restored

    def _write(self, line: bytes) -> None:
        """Write the line; after a partial write, repeat the call to get the error."""
        rest = memoryview(line)
        while rest:
            rest = rest[self._file.write(rest) or 0 :]

    def _cut(self) -> None:
        self._file.truncate(self._good[1])
        if self._sync:
            os.fsync(self._file.fileno())
        self._uncertain = False


def _written(event: Event, *, seq: int, at: datetime, stage: str | None) -> tuple[Entry, bytes]:
    """Return an entry, with a long event cut, and its line."""
    time = _utc(at)
    event, fields = encoded(event)
    line = b'{"v":%d,"seq":%d%b%b}\n' % (VERSION, seq, _head(time, stage), fields)
    return Entry(seq=seq, at=time, stage=stage, event=event), line


def _utc(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def _head(at: datetime, stage: str | None) -> bytes:
    """Return the part of a line between its number and its event; `at` is in UTC."""
    time = at.isoformat(timespec="microseconds").removesuffix("+00:00")
    return f',"at":"{time}Z","stage":{_quoted(stage)},"event":'.encode()


@lru_cache(maxsize=8)
def _quoted(stage: str | None) -> str:
    return json.dumps(stage)


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
