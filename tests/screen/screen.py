"""A small terminal emulator that understands the writer's sequences and wraps like a real one."""

from __future__ import annotations

import io
import os
import re

from wcwidth import wcwidth

_TOKEN = re.compile(r"\x1b\[(?P<args>[?0-9;]*)(?P<final>[A-Za-z])|\x1b\][^\x07]*\x07|.", re.S)
_BEGUN = re.compile(r"\x1b(\[[?0-9;]*|\][^\x07]*)?\Z")


def printed(ours: int, theirs: int) -> str:
    """Return what was printed on a terminal; one read has only what the kernel has passed on."""
    end, text = b"<end>", b""
    os.write(theirs, end)
    while not text.endswith(end):
        text += os.read(ours, 4096)
    return text.removesuffix(end).decode()


class Screen(io.StringIO):
    """A stream that keeps what a person would see.

    A wide character takes two cells and starts a new row when only one is left. The height is
    unlimited.
    """

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.columns = columns
        self._begun = ""
        """The beginning of a sequence whose end has not been written yet."""
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
        text, self._begun = self._begun + text, ""
        if begun := _BEGUN.search(text):
            text, self._begun = text[: begun.start()], begun.group()
        for token in _TOKEN.finditer(text):
            self._take(token.group(), token.group("final"), token.group("args"))
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

    def _take(self, token: str, final: str | None = None, args: str | None = None) -> None:
        if final is not None:
            self._move(final, args or "")
        elif token == "\r":
            self.column = 0
        elif token == "\b":
            self.column = max(self.column - 1, 0)
        elif token == "\n":
            self._next_row()
            self.continued.discard(self.row)
        elif token != "\x07" and not token.startswith("\x1b"):
            self._put(token)

    def _move(self, final: str, args: str) -> None:
        """Move the cursor or erase; modes, colors and titles change no cell."""
        count = int(args) if args.isdigit() else 1
        match final:
            case "A":
                self.row = max(self.row - count, 0)
            case "B":
                self.row = min(self.row + count, len(self.cells) - 1)
            case "C":
                self.column += count
            case "D":
                self.column = max(self.column - count, 0)
            case "J":
                self.cells[self.row] = self.cells[self.row][: self.column]
                del self.cells[self.row + 1 :]
            case "K" if args == "2":
                self.cells[self.row] = []
            case "K":
                self.cells[self.row] = self.cells[self.row][: self.column]
            case _:
                pass

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
