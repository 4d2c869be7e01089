"""Bytes in chunks to lines, in time linear in their length."""

from __future__ import annotations


class LineSplitter:
    """Cuts chunks at newlines; `overflow` is set once a line is longer than `limit` bytes.

    With `keep_ends` each line keeps its newline, which is not counted.
    """

    def __init__(self, limit: int, *, keep_ends: bool = False) -> None:
        self.limit = limit
        self._end = b"\n" if keep_ends else b""
        self.overflow = False
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes; none from an overlong line on."""
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

    def _ended(self, lines: list[bytes]) -> list[bytes]:
        return [line + self._end for line in lines] if self._end else lines

    def rest(self) -> list[bytes]:
        """The unterminated last line, if there is one."""
        parts, self._parts = self._parts, []
        return [b"".join(parts)] if self._size else []
