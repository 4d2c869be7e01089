"""Reading the journal of a run, line by line or as a whole."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cuggino.errors import StorageError
from cuggino.events import (
    Event,
    KnownState,
    RunEnded,
    RunStarted,
    UnknownEvent,
    event_type,
    is_resumable,
)
from cuggino.files import storing

VERSION = 1
"""The version of the line format."""

SUFFIX = ".jsonl"

_BEGINNINGS = frozenset({"RunStarted", "RunContinued"})
"""The first events of a process."""

_TAG = re.compile(rb'"event":\{"_tag": ?"(\w+)"')
_HEAD = 400
"""Bytes of a line that contain its event's tag."""
_TAIL = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a journal."""

    seq: int
    """Counted from 1 without gaps, over all processes of the run."""
    at: datetime
    """The time of the event, in UTC."""
    stage: str | None
    """The stage of the event, as `name#ordinal`; None for the loop itself."""
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalFile:
    """The contents of a journal."""

    run_id: str
    started: RunStarted
    entries: tuple[Entry, ...]
    """All entries: the first is `started`, the last may be `ended`."""
    ended: RunEnded | None
    """The end of the last process; None while it works, or if it was killed."""
    torn: bool
    """True if the last line was only partly written; it is not among the entries."""

    @property
    def state(self) -> KnownState:
        """Return the state of the run, `unfinished` without an end."""
        return self.ended.state if self.ended else "unfinished"

    @property
    def resumable(self) -> bool:
        """Return whether another process can resume the run."""
        return is_resumable(self.state)


def read_journal(path: Path, *, only: Collection[str] | None = None) -> JournalFile:
    """Read the whole journal, except for a torn last line. The file is not changed.

    `only` is that of `iter_entries`: fast and small even for a long run.

    Raises:
        StorageError: it cannot be read, a line before the last is broken or has an unknown
            version, or there is no whole line.
    """
    scan = Scan(path, only=only)
    entries = tuple(scan)
    started, last = entries[0].event, entries[-1].event
    assert isinstance(started, RunStarted)  # by `Scan`
    return JournalFile(
        run_id=started.run_id,
        started=started,
        entries=entries,
        ended=last if isinstance(last, RunEnded) else None,
        torn=scan.torn,
    )


def iter_entries(
    path: Path, *, only: Collection[str] | None = None
) -> Generator[Entry, None, None]:
    """Yield the entries one by one, keeping one line in memory; errors as `read_journal`.

    With `only`, yield those whose events have one of these tags, and the first and last entry of
    each process; most other lines are skipped without being parsed.
    """
    return Scan(path, only=only).__iter__()


def list_journals(folder: Path) -> list[Path]:
    """Return the journals in the folder, newest run first; none without a folder.

    The names are UUIDs of version 7, which sort by the time when the runs began.

    Raises:
        StorageError: the folder cannot be read.
    """
    with storing("list journals", folder):
        try:
            found = [
                path
                for path in folder.iterdir()
                if path.suffix == SUFFIX and not path.name.startswith(".") and path.is_file()
            ]
        except FileNotFoundError:
            return []
    return sorted(found, key=lambda path: path.name, reverse=True)


def last_entry(path: Path) -> Entry | None:
    """Return the last whole entry, searching from the end, or None if there is none.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        tail = _TAIL
        while True:
            begin = max(size - tail, 0)
            file.seek(begin)
            lines = file.read(size - begin).split(b"\n")[:-1]
            for line in reversed(lines if begin == 0 else lines[1:]):
                raw = _json(line + b"\n")
                if raw is not _TORN:
                    try:
                        return _entry(raw)
                    except (ValueError, RecursionError):
                        return None
            if begin == 0:
                return None
            tail *= 4


class Scan:
    """One pass over a journal; `length` and `torn` describe the part read so far."""

    def __init__(self, path: Path, *, only: Collection[str] | None = None) -> None:
        self.path = path
        self.length = 0
        """Bytes of the whole lines."""
        self.torn = False
        """The last line was not whole."""
        self._only = only if only is None else {*only, *_BEGINNINGS}

    def __iter__(self) -> Generator[Entry, None, None]:
        number = 0
        passed: bytes | None = None
        """The previous line, if it was skipped."""
        with storing("read journal", self.path), self.path.open("rb") as file:
            for line in file:
                tag = self._tag(line)
                if tag is not None and self._only is not None and tag not in self._only:
                    number += 1
                    self.length += len(line)
                    passed = line
                    continue
                raw = _json(line)
                if raw is _TORN:
                    if file.read(1):
                        raise self._broken(number + 1, "not JSON")
                    self.torn = True
                    break
                entry = self._entry(raw, number + 1)
                if passed is not None and entry.event.tag in _BEGINNINGS:
                    yield self._entry(_json(passed), number)
                number += 1
                self.length += len(line)
                wanted = self._only is None or entry.event.tag in self._only
                passed = None if wanted else line
                if wanted:
                    yield entry
            if passed is not None:
                yield self._entry(_json(passed), number)
        if not number:
            raise StorageError(
                "read journal",
                f"{self.path} has no whole line: its run ended before it began",
                hint="the file can be removed",
            )

    def _tag(self, line: bytes) -> str | None:
        """Return the event tag at the start of the line, or None if in doubt."""
        if self._only is None or not line.endswith(b"}}\n"):
            return None
        found = _TAG.search(line, 0, _HEAD)
        return found[1].decode() if found else None

    def _entry(self, raw: object, number: int) -> Entry:
        try:
            entry = _entry(raw)
        except _UnknownVersion as error:
            raise StorageError(
                "read journal",
                f"{self.path}: line {number} has version {error} of the journal format; "
                f"this cuggino supports version {VERSION}",
                hint="use the cuggino that wrote it, or a newer one",
            ) from error
        except (ValueError, RecursionError) as error:
            why = " ".join(str(error).splitlines()[:3])
            raise self._broken(number, why) from error
        if entry.seq != number:
            raise self._broken(number, f"out of order, with number {entry.seq}")
        if number == 1 and not isinstance(entry.event, RunStarted):
            raise self._broken(number, "a journal begins with RunStarted")
        return entry

    def _broken(self, number: int, why: str) -> StorageError:
        return StorageError(
            "read journal",
            f"{self.path}: line {number} is broken: {why}",
            hint="nothing in the file was changed; move it away to work without it",
        )


_TORN = object()


def _json(line: bytes) -> object:
    """Return the value of the line, or `_TORN` if it is not whole."""
    if not line.endswith(b"\n"):
        return _TORN
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return _TORN


class _UnknownVersion(ValueError):
    pass


def _entry(raw: object) -> Entry:
    match raw:
        case {
            "v": 1,
            "seq": int(seq),
            "at": str(at),
            "stage": str() | None as stage,
            "event": {"_tag": str(tag)} as fields,
        }:
            # As in `parse_event`; `_tag` is ignored like any unknown field.
            cls = event_type(tag)
            event = UnknownEvent(raw=fields) if cls is None else cls.model_validate(fields)
            time = datetime.fromisoformat(at)
            if time.tzinfo is None:
                raise ValueError("its time has no zone")
            return Entry(seq=seq, at=time.astimezone(UTC), stage=stage, event=event)
        case {"v": version} if version != VERSION:
            raise _UnknownVersion(repr(version))
        case _:
            raise ValueError("not a journal entry")
