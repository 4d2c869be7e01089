"""The journal of a run: one event a line, so that the run survives its process.

This module writes; what reads and keeps the folder small stands beside it and is named here too.
"""

from __future__ import annotations

import io
import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from cuggino.events import Event, RunEnded, RunStarted, StageFinished
from cuggino.events.wire import dump_event_bytes
from cuggino.storage.atomic import storage_error, storing
from cuggino.storage.journal_outcomes import (
    FinishedStage,
    decode_outcome,
    encode_outcome,
    finished_stages,
)
from cuggino.storage.journal_prune import has_ended, prune
from cuggino.storage.journal_reader import (
    SUFFIX,
    VERSION,
    Entry,
    JournalFile,
    Scan,
    iter_entries,
    list_journals,
    read_journal,
)
from cuggino.storage.journal_totals import COUNTED, fold_totals, run_totals

__all__ = [
    "COUNTED",
    "Entry",
    "FinishedStage",
    "Journal",
    "JournalFile",
    "decode_outcome",
    "encode_outcome",
    "finished_stages",
    "fold_totals",
    "has_ended",
    "iter_entries",
    "list_journals",
    "prune",
    "read_journal",
    "run_totals",
]

_DECIDES = (RunStarted, StageFinished, RunEnded)
"""What they say must survive the machine's death."""


class Journal:
    """Appends to the journal of one run; made by `create` and `open`.

    Every entry is handed to the system in one piece before `append` returns, so that it survives
    the death of the process. With `sync` the entries that decide (the run began, a stage finished,
    the run ended) also survive that of the machine, and with them all before. Whoever holds the
    lock of the workspace is the only writer.
    """

    def __init__(
        self, path: Path, file: io.FileIO, *, run_id: str, seq: int, length: int, sync: bool
    ) -> None:
        self.path = path
        self.run_id = run_id
        self._file = file
        self._sync = sync
        self._good = (seq, length)
        """The number of the last entry and where it ends; one value, for interruptions."""
        self._uncertain = False
        """There may be half a line behind the good ones."""

    @classmethod
    def create(
        cls, folder: Path, started: RunStarted, *, at: datetime, sync: bool = True
    ) -> Journal:
        """A new journal `<run_id>.jsonl`, with `started` in it; only the user may read it.

        Raises:
            StorageError: it cannot be written, or is there already.
        """
        path = folder / f"{started.run_id}{SUFFIX}"
        with storing("write journal", path):
            folder.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):  # a folder of somebody else who let us in
                folder.chmod(0o700)
            file = io.FileIO(path, "xb", opener=_private)
        journal = cls(path, file, run_id=started.run_id, seq=0, length=0, sync=sync)
        try:
            journal.append(started, at=at)
        except BaseException:
            with suppress(OSError):
                file.close()
            with suppress(OSError):
                path.unlink()
            raise
        if sync:
            with suppress(OSError):  # not every file system can
                _sync_folder(folder)
        return journal

    @classmethod
    def open(cls, path: Path, *, sync: bool = True) -> Journal:
        """Go on with a journal. A torn last line is cut off; what stands before it is as it was.

        Raises:
            StorageError: as `read_journal`, or it cannot be written; then nothing was changed.
        """
        scan = Scan(path)
        seq, run_id = 0, ""
        for entry in scan:
            seq = entry.seq
            if isinstance(entry.event, RunStarted):
                run_id = entry.event.run_id
        with storing("write journal", path):
            file = io.FileIO(path, "ab")
        journal = cls(path, file, run_id=run_id, seq=seq, length=scan.length, sync=sync)
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
        """The number of the last entry."""
        return self._good[0]

    def append(self, event: Event, *, at: datetime, stage: str | None = None) -> Entry:
        """Write the event as the next entry; `at` without a zone is UTC.

        Raises:
            StorageError: it could not be written, say for want of space. Then it is not in the
                journal, and neither is half of it: the next one follows what was there before.
        """
        time = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        seq, length = self._good
        entry = Entry(seq=seq + 1, at=time, stage=stage, event=event)
        line = _line(entry)
        try:
            self._add(line, synced=self._sync and isinstance(event, _DECIDES))
        except OSError as error:
            raise storage_error("write journal", self.path, error) from error
        self._good = (entry.seq, length + len(line))
        self._uncertain = False
        return entry

    def close(self) -> None:
        """Close the file; a second time does nothing.

        Raises:
            StorageError: the system tells only now that it could not write.
        """
        with storing("write journal", self.path):
            self._file.close()

    def _add(self, line: bytes, *, synced: bool) -> None:
        if self._uncertain:
            self._cut()
        self._uncertain = True
        try:
            self._write(line)
            if synced:
                os.fsync(self._file.fileno())
        except OSError:
            with suppress(OSError):  # else the next `append` does it, or the next `open`
                self._cut()
            raise

    def _write(self, line: bytes) -> None:
        """One call; a system that took only a part of it is asked again, and says why."""
        rest = memoryview(line)
        while rest:
            rest = rest[self._file.write(rest) or 0 :]

    def _cut(self) -> None:
        self._file.truncate(self._good[1])
        if self._sync:
            os.fsync(self._file.fileno())
        self._uncertain = False


def _line(entry: Entry) -> bytes:
    at = entry.at.isoformat(timespec="microseconds").replace("+00:00", "Z")
    head = f'{{"v":{VERSION},"seq":{entry.seq},"at":"{at}","stage":{_quoted(entry.stage)},"event":'
    return b"%b%b}\n" % (head.encode(), dump_event_bytes(entry.event))


@lru_cache(maxsize=8)
def _quoted(stage: str | None) -> str:
    return json.dumps(stage)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_APPEND, 0o600)


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
