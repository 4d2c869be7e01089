"""The output of a program, split into lines or gathered whole."""

from __future__ import annotations


class Gatherer:
    """Keeps all chunks until the end, like a `LineSplitter` of output that is one line."""

    overflow = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return nothing."""
        self._parts.append(chunk)
        return []

    def rest(self) -> list[bytes]:
        """Return the whole output, which may be empty."""
        return [b"".join(self._parts)]


class LineSplitter:
    """Splits chunks at newlines, in linear time; `overflow` is set by a line above `limit` bytes.

    With `keep_ends` lines keep their newlines, which are not counted, and the lines of a chunk come
    as one, to avoid the cost of splitting where single lines do not matter.
    """

    def __init__(self, limit: int, *, keep_ends: bool = False) -> None:
        self.limit = limit
        self._end = b"\n" if keep_ends else b""
        self.overflow = False
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that `chunk` completes; none from an overlong line on."""
        if self._end and len(chunk) <= self.limit:
            return self._together(chunk)
        first, *lines = chunk.split(b"\n")
        self._parts.append(first)
        self._size += len(first)
        if self._size > self.limit:
            self.overflow = True
            return []
        if not lines:
            return []
        last = lines.pop()
        lines.insert(0, b"".join(self._parts))
        self._parts = [last]
        self._size = len(last)
        if self.limit < len(chunk):
            for index, line in enumerate(lines):
                if len(line) > self.limit:
                    self.overflow = True
                    return self._ended(lines[:index])
        self.overflow = self._size > self.limit
        return self._ended(lines)

    def _together(self, chunk: bytes) -> list[bytes]:
        """Return the lines that `chunk` completes as one."""
        first, end = chunk.find(b"\n"), chunk.rfind(b"\n") + 1
        self._size += first if end else len(chunk)
        self.overflow = self._size > self.limit
        if self.overflow or not end:
            self._parts.append(chunk)
            return []
        lines = b"".join((*self._parts, chunk[:end]))
        self._parts, self._size = [chunk[end:]], len(chunk) - end
        return [lines]

    def _ended(self, lines: list[bytes]) -> list[bytes]:
        return [line + self._end for line in lines] if self._end else lines

    def rest(self) -> list[bytes]:
        """Return the unterminated last line, if there is one."""
        parts, self._parts = self._parts, []
        return [b"".join(parts)] if self._size else []
