"""A terminal of a few columns that understands what the writer sends, and wraps like real ones."""

from __future__ import annotations

import io
import re

_TOKEN = re.compile(r"\x1b\[2K|\x1b\[1A|\x1b\[[0-9;]*m|.", re.S)


class Screen(io.StringIO):
    """A stream that keeps what a person would see; each character is one column wide."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.columns = columns
        self.lines = [""]
        self.row = 0
        self.column = 0
        self.continued: set[int] = set()
        """Rows that go on with the row above, since it was full."""

    def write(self, text: str) -> int:
        for token in _TOKEN.findall(text):
            self._take(token)
        return super().write(text)

    def resize(self, columns: int) -> None:
        """Changes the width and wraps the last line anew, cursor at its end."""
        self.columns = columns
        last = self.lines.pop()
        while len(self.lines) in self.continued:
            self.continued.remove(len(self.lines))
            last = self.lines.pop() + last
        rows = [last[at : at + columns] for at in range(0, len(last), columns)] or [""]
        self.continued.update(range(len(self.lines) + 1, len(self.lines) + len(rows)))
        self.lines += rows
        self.row, self.column = len(self.lines) - 1, len(rows[-1])

    def _take(self, token: str) -> None:
        if token == "\x1b[2K":
            self.lines[self.row] = ""
        elif token == "\x1b[1A":
            self.row -= 1
        elif token == "\r":
            self.column = 0
        elif token == "\n":
            self._next_row()
            self.continued.discard(self.row)
        elif token != "\x07" and not token.startswith("\x1b"):
            self._put(token)

    def _next_row(self) -> None:
        self.row, self.column = self.row + 1, 0
        if self.row == len(self.lines):
            self.lines.append("")

    def _put(self, char: str) -> None:
        if self.column == self.columns:
            self._next_row()
            self.continued.add(self.row)
        line = self.lines[self.row].ljust(self.column)
        self.lines[self.row] = line[: self.column] + char + line[self.column + 1 :]
        self.column += 1

    def visible(self) -> list[str]:
        """The lines down to the last one that shows something."""
        return "\n".join(self.lines).rstrip("\n").split("\n")
