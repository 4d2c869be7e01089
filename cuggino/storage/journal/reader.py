"""Reading the journal of a run, line by line or as a whole."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import overload

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

_HEAD = re.compile(
    rb'\{"v":1,"seq":(\d+),"at":"[^"]*","stage":(?:(null)|"[^"\\]*"),"event":\{"_tag": ?"(\w+)"'
)
"""The number, the missing stage and the tag at the start of a line; other lines are parsed."""
_LINE = re.compile(
    rb'\{"v":1,"seq":(\d+),"at":"([^"]*Z)","stage":(?:null|"([^"\\]*)"),"event":\{"_tag": ?"(\w+)"'
)
"""The number, the time, the stage and the tag at the start of a line; other lines are parsed."""
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


@dataclass(slots=True)
class Line:
    """One line of a journal whose event is not parsed yet."""

    raw: bytes
    at: datetime = field(kw_only=True)
    stage: str | None = field(kw_only=True)
    tag: str = field(kw_only=True)

    def entry(self) -> Entry:
        """Parse it.

        Raises:
            ValueError: it is broken.
        """
        try:
            return _entry(json.loads(self.raw))
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


class Entries(Sequence[Entry]):
    """Entries of a journal, read from its file by each iteration: one line is in memory at a time.

    Lines that are appended later are not among them.
    """

    def __init__(
        self,
        path: Path,
        *,
        begin: int = 0,
        end: int,
        only: Collection[str] | None = None,
        loop: bool = False,
    ) -> None:
        self._path = path
        self._begin = begin
        self._end = end
        self._only = only
        self._loop = loop

    def only(self, tags: Collection[str], *, loop: bool = False) -> Entries:
        """Return those with these tags, as `iter_entries`; with `loop`, also those of no stage."""
        return Entries(self._path, begin=self._begin, end=self._end, only=tags, loop=loop)

    def lines(self, tags: Collection[str]) -> Iterator[Entry | Line]:
        """Iterate over all entries, those with these tags as lines that are not parsed yet."""
        return Scan(self._path, begin=self._begin, end=self._end).lines(tags)

    def __iter__(self) -> Iterator[Entry]:
        begin, end = self._begin, self._end
        if begin < end:
            yield from Scan(self._path, only=self._only, loop=self._loop, begin=begin, end=end)

    def __len__(self) -> int:
        return self._end - self._begin if self._only is None else sum(1 for _ in self)

    @overload
    def __getitem__(self, place: int) -> Entry: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Entry]: ...
    def __getitem__(self, place: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(place, slice) and self._only is None:
            begin, end, step = place.indices(len(self))
            if step == 1:
                before = self._begin
                return Entries(self._path, begin=before + begin, end=before + max(begin, end))
        return tuple(self)[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalFile:
    """A journal as it was when it was read."""

    path: Path
    first: Entry
    last: Entry
    torn: bool
    """True if the last line was only partly written; it is not among the entries."""
    entries: Entries = dataclasses.field(compare=False)
    """All entries: the first is `started`, the last may be `ended`."""

    @property
    def run_id(self) -> str:
        return self.started.run_id

    @property
    def started(self) -> RunStarted:
        assert isinstance(self.first.event, RunStarted)  # by `Scan`
        return self.first.event

    @property
    def ended(self) -> RunEnded | None:
        """Return the end of the last process; None while it works, or if it was killed."""
        return self.last.event if isinstance(self.last.event, RunEnded) else None

    @property
    def state(self) -> KnownState:
        """Return the state of the run, `unfinished` without an end."""
        return self.ended.state if self.ended else "unfinished"

    @property
    def resumable(self) -> bool:
        """Return whether another process can resume the run."""
        return is_resumable(self.state)


def without_lines(path: Path) -> StorageError:
    """Return the error of a journal that has no complete line."""
    return StorageError(
        "read journal",
        f"{path} has no complete line: its run ended before it began",
        hint="the file can be removed",
    )


def read_journal(path: Path, *, only: Collection[str] | None = None) -> JournalFile:
    """Read the whole journal, except for a torn last line. The file is not changed.

    `only` is that of `iter_entries`: fast even for a long run.

    Raises:
        StorageError: it cannot be read, a line before the last is broken or has an unknown
            version, or there is no complete line.
    """
    return _read(path, only, only)


def scan_journal(path: Path) -> JournalFile:
    """Read the journal as `read_journal`, but parse most lines only when its entries are read.

    Raises:
        StorageError: as `read_journal`; also by the entries, for lines that are parsed later.
    """
    return _read(path, (), None)


def _read(path: Path, parsed: Collection[str] | None, only: Collection[str] | None) -> JournalFile:
    scan = Scan(path, only=parsed)
    first = last = None
    for last in scan:
        first = first or last
    assert first is not None and last is not None  # by `Scan`
    entries = Entries(path, end=last.seq, only=only)
    return JournalFile(path=path, first=first, last=last, torn=scan.torn, entries=entries)


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

    The names are UUIDs of version 7, which sort by the time when the runs began. Links are no
    journals: a resumed run would write to their targets.

    Raises:
        StorageError: the folder cannot be read.
    """
    with storing("list journals", folder):
        try:
            found = [
                path
                for path in folder.iterdir()
                if path.suffix == SUFFIX
                and not path.name.startswith(".")
                and path.is_file()
                and not path.is_symlink()
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


def parse_entry(line: bytes, path: Path) -> Entry:
    """Return the entry of one whole line of the journal at `path`.

    Raises:
        StorageError: the line is broken, or has an unknown version.
    """
    raw = _json(line)
    try:
        if raw is _TORN:
            raise ValueError("not JSON")
        return _entry(raw)
    except _UnknownVersion as error:
        raise _unsupported(path, "a line", error) from error
    except (ValueError, RecursionError) as error:
        why = " ".join(str(error).splitlines()[:3])
        raise StorageError("read journal", f"{path}: a line is broken: {why}") from error


class Scan:
    """One pass over a journal; `length` and `torn` describe the part read so far.

    `begin` entries are skipped unread, and no line after the entry `end` is read; `loop` adds the
    entries without a stage to those of `only`.
    """

    def __init__(
        self,
        path: Path,
        *,
        only: Collection[str] | None = None,
        loop: bool = False,
        begin: int = 0,
        end: int | None = None,
    ) -> None:
        self.path = path
        self.length = 0
        """Bytes of the whole lines."""
        self.torn = False
        """The last line was not whole."""
        self._only = only if only is None else {*only, *_BEGINNINGS}
        self._loop = loop
        self._begin = begin
        self._end = end

    def __iter__(self) -> Generator[Entry, None, None]:
        number = 0
        passed: bytes | None = None
        """The previous line, if it was skipped."""
        left_out = self._left_out()
        with storing("read journal", self.path), self.path.open("rb") as file:
            for line in file:
                if number == self._end:
                    break
                if number < self._begin:
                    number += 1
                    self.length += len(line)
                    continue
                if left_out is not None and left_out(line, number + 1):
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
                wanted = self._wants(entry)
                passed = None if wanted else line
                if wanted:
                    yield entry
            if passed is not None:
                yield self._entry(_json(passed), number)
        if not number:
            raise without_lines(self.path)

    def lines(self, tags: Collection[str]) -> Iterator[Entry | Line]:
        """Yield the entries from `begin` to `end`; those with these tags are not parsed."""
        names = {tag.encode(): tag for tag in tags}
        stages: dict[bytes | None, str | None] = {None: None}
        head, time = _LINE.match, datetime.fromisoformat
        with storing("read journal", self.path), self.path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                if number <= self._begin:
                    continue
                if self._end is not None and number > self._end:
                    break
                found = head(raw)
                if found is not None:
                    seq, at, stage, tag = found.groups()
                    if tag in names and int(seq) == number and raw.endswith(b"}}\n"):
                        with suppress(ValueError):  # parsing says what is broken
                            when = time(at.decode())
                            if stage not in stages:
                                stages[stage] = json.loads(b'"%b"' % stage)
                            yield Line(raw, at=when, stage=stages[stage], tag=names[tag])
                            continue
                yield self._entry(_json(raw), number)

    def _wants(self, entry: Entry) -> bool:
        return (
            self._only is None
            or entry.event.tag in self._only
            or (self._loop and entry.stage is None)
        )

    def _left_out(self) -> Callable[[bytes, int], bool] | None:
        """Return whether the line with this number can be skipped unparsed; None if none can."""
        if self._only is None:
            return None
        tags = frozenset(tag.encode() for tag in self._only)
        head, loop = _HEAD.match, self._loop

        def left_out(line: bytes, number: int) -> bool:
            if not line.endswith(b"}}\n") or (found := head(line)) is None:
                return False
            seq, unstaged, tag = found.groups()
            return not (tag in tags or (loop and unstaged) or int(seq) != number)

        return left_out

    def _entry(self, raw: object, number: int) -> Entry:
        try:
            entry = _entry(raw)
        except _UnknownVersion as error:
            raise _unsupported(self.path, f"line {number}", error) from error
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


def _unsupported(path: Path, place: str, version: _UnknownVersion) -> StorageError:
    return StorageError(
        "read journal",
        f"{path}: {place} has version {version} of the journal format; "
        f"this cuggino supports version {VERSION}",
        hint="use the cuggino that wrote it, or a newer one",
    )


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
