"""A small terminal emulator that understands the writer's sequences and wraps like a real one."""

from __future__ import annotations

import io
import re

from wcwidth import wcwidth

_TOKEN = re.compile(r"\x1b\[2K|\x1b\[1A|\x1b\[[0-9;]*m|.", re.S)


class Screen(io.StringIO):
    """A stream that keeps what a person would see.

    A wide character takes two cells and starts a new row when only one is left. The height is
    unlimited.
    """

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.columns = columns
        self.cells: list[list[str]] = [[]]
        """The rows; the cell after a wide character is empty."""
        self.row = 0
        self.column = 0
        self.continued: set[int] = set()
        """Rows that continue a full row above."""

    @property
    def lines(self) -> list[str]:
        """Return the rows as texts."""
        return ["".join(row) for row in self.cells]

    def write(self, text: str) -> int:
        for token in _TOKEN.findall(text):
            self._take(token)
        return super().write(text)

    def resize(self, columns: int) -> None:
        """Change the width and rewrap all lines; the cursor stays at the end of its line."""
        texts: list[str] = []
        for row, text in enumerate(self.lines[: self.row + 1]):
            if row in self.continued:
                texts[-1] += text
            else:
                texts.append(text)
        self.columns = columns
        self.cells, self.row, self.column, self.continued = [[]], 0, 0, set()
        for char in "\n".join(texts):
            self._take(char)

    def _take(self, token: str) -> None:
        if token == "\x1b[2K":
            self.cells[self.row] = []
        elif token == "\x1b[1A":
            self.row = max(self.row - 1, 0)
        elif token == "\r":
            self.column = 0
        elif token == "\n":
            self._next_row()
            self.continued.discard(self.row)
        elif token != "\x07" and not token.startswith("\x1b"):
            self._put(token)

    def _next_row(self) -> None:
        self.row, self.column = self.row + 1, 0
        if self.row == len(self.cells):
            self.cells.append([])

    def _put(self, char: str) -> None:
        wide = max(wcwidth(char), 0)
        if self.column + wide > self.columns:
            self._next_row()
            self.continued.add(self.row)
        row = self.cells[self.row]
        row += [" "] * (self.column - len(row))
        row[self.column : self.column + wide] = [char, *[""] * (wide - 1)]
        self.column += wide

    def visible(self) -> list[str]:
        """Return the lines down to the last one that is not blank."""
        return "\n".join(self.lines).rstrip("\n").split("\n")
