"""Following a journal that another process writes."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cuggino.errors import StorageError
from cuggino.storage.journal.reader import Entry, parse_entry

_HEAD = re.compile(
    rb'\{"v":1,"seq":(\d+),"at":"[^"]*","stage":(?:null|"([^"\\]*)"),"event":\{"_tag": ?"(\w+)"'
)
_CHUNK = 1024 * 1024
_RECENT = 256 * 1024
"""Bytes at the end of a long journal whose entries are never left out."""
_REMOVED = (-1, -1)
"""The file that was there: one of its name that comes is another, even with its inode."""


@dataclass(slots=True)
class _Extent:
    begin: int
    end: int


class JournalTail:
    """The entries appended to a journal since it was last read, found by polling.

    Only whole lines are read: a torn last line waits until it is completed, or cut off when the
    run is resumed. A journal that was replaced or cut below what was read is read again from its
    beginning, and `restarts` counts that. Not safe for concurrent use.

    Of a journal that is longer than `long` bytes when it is first read, the entries with the tags
    `spared` are left out, except for those at its end.
    """

    def __init__(
        self, path: Path, *, spared: Collection[str] = (), long: int = 8 * 1024 * 1024
    ) -> None:
        self.path = path
        self.restarts = 0
        self.missing = False
        """True if there was no file when it was last looked at."""
        self.seq = 0
        """The number of the last whole line."""
        self._spared = frozenset(tag.encode() for tag in spared)
        self._long = long
        self._spare_until: int | None = None
        self._offset = 0
        self._searched = 0
        """Bytes after the offset that are known to hold no end of a line."""
        self._file: tuple[int, int] | None = None
        self._seen: tuple[int, int, int, int] | None = None
        self._stages: dict[str, _Extent] = {}
        self._failure: StorageError | None = None

    def has_changed(self) -> bool:
        """Return whether a read would find something; costs one `stat`."""
        return self._stamp() != self._seen

    def pending(self) -> int:
        """Return how many bytes were not read yet."""
        try:
            return max(self.path.stat().st_size - self._offset, 0)
        except OSError:
            return 0

    def skip(self) -> None:
        """Skip what is in the journal now, apart from a torn last line."""
        with suppress(OSError), self.path.open("rb") as file:
            status = os.fstat(file.fileno())
            end = status.st_size
            while end > 0:
                begin = max(end - _CHUNK, 0)
                last = os.pread(file.fileno(), end - begin, begin).rfind(b"\n")
                if last >= 0:
                    end = begin + last + 1
                    break
                end = begin
            self._file = (status.st_dev, status.st_ino)
            self._spare_until = 0
            self._offset, self._searched = end, 0

    def read(self, *, most: int = 4 * _CHUNK) -> list[Entry]:
        """Return the new entries, of about `most` bytes; call it until it returns none.

        Raises:
            StorageError: a line is broken, or has an unknown version; it is not read again.
        """
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        entries: list[Entry] = []
        try:
            for begin, line in self._lines(most):
                if (entry := self._entry(begin, line)) is not None:
                    entries.append(entry)
        except StorageError as error:
            if not entries:
                raise
            self._failure = error  # of the next read: what precedes the line is good
            self._seen = None
        return entries

    def stage(self, name: str) -> Iterator[Entry]:
        """Yield all entries of a stage that have been seen, read from the file again."""
        extent = self._stages.get(name)
        if extent is None:
            return
        wanted = name.encode()
        with suppress(FileNotFoundError), self.path.open("rb") as file:
            file.seek(extent.begin)
            while file.tell() < extent.end and (line := file.readline()).endswith(b"\n"):
                head = _HEAD.match(line)
                if head is None or head[2] == wanted:
                    entry = parse_entry(line, self.path)
                    if entry.stage == name:
                        yield entry

    def _stamp(self) -> tuple[int, int, int, int] | None:
        try:
            found = os.stat(self.path)  # noqa: PTH116 (polled: a third of the time of `Path.stat`)
        except OSError:
            self.missing = True
            return None
        self.missing = False
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def _lines(self, most: int) -> Iterator[tuple[int, bytes]]:
        """Yield new whole lines with their offsets."""
        stamp = self._stamp()
        if stamp is None:
            self._seen = None
            self._file = _REMOVED if self._file else None
            return
        try:
            file = self.path.open("rb")
        except OSError:
            self.missing = True
            return
        with file:
            status = os.fstat(file.fileno())
            if self._is_other(status):
                self._restart()
            if self._searched < _CHUNK:
                self._searched = 0  # little to search again, if it was cut off and replaced
            self._file = (status.st_dev, status.st_ino)
            if self._spare_until is None:
                is_long = status.st_size > self._long
                self._spare_until = status.st_size - _RECENT if is_long else 0
            end = min(self._offset + most, status.st_size)
            while self._offset < status.st_size and self._offset < end:
                file.seek(self._offset + self._searched)
                whole = self._read_lines(file.read(_CHUNK), file.fileno())
                if whole is None:
                    break
                begin = self._offset
                for line in _split(whole):
                    self._offset = begin + len(line)
                    yield begin, line
                    begin = self._offset
            if self._offset >= end or self._offset + self._searched >= status.st_size:
                caught_up = self._offset + self._searched >= status.st_size
                self._seen = stamp if caught_up else None

    def _read_lines(self, data: bytes, descriptor: int) -> bytes | None:
        """Return the whole lines that end in `data`, which was read after what was searched."""
        while True:
            last = data.rfind(b"\n")
            if last >= 0:
                length = self._searched + last + 1
                whole = data[: last + 1]
                if self._searched:
                    whole = os.pread(descriptor, length, self._offset)
                self._searched = 0
                return whole
            if not data:
                return None
            self._searched += len(data)  # a long line, or a torn one
            data = os.pread(descriptor, 4 * _CHUNK, self._offset + self._searched)

    def _is_other(self, status: os.stat_result) -> bool:
        """Return whether the file is not the one that was read, or has lost lines."""
        if self._file is None:
            return False
        if status.st_size < self._offset + self._searched:
            self._searched = 0  # a torn line was cut off
        return (status.st_dev, status.st_ino) != self._file or status.st_size < self._offset

    def _restart(self) -> None:
        self.restarts += 1
        self._offset = self._searched = self.seq = 0
        self._spare_until = None
        self._stages.clear()

    def _entry(self, begin: int, line: bytes) -> Entry | None:
        """Return the entry of a line, or None if it is left out."""
        head = _HEAD.match(line)
        if head is not None and begin < (self._spare_until or 0) and head[3] in self._spared:
            self.seq = int(head[1])
            if head[2] is not None:
                self._extend(head[2].decode(), begin, begin + len(line))
            return None
        entry = parse_entry(line, self.path)
        self.seq = entry.seq
        if entry.stage is not None:
            self._extend(entry.stage, begin, begin + len(line))
        return entry

    def _extend(self, stage: str, begin: int, end: int) -> None:
        extent = self._stages.get(stage)
        if extent is None:
            self._stages[stage] = _Extent(begin, end)
        else:
            extent.end = end


def _split(data: bytes) -> list[bytes]:
    """Split at line feeds alone: `bytes.splitlines` also splits at carriage returns."""
    return [line + b"\n" for line in data.split(b"\n")[:-1]]
