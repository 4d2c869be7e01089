"""A recorded run of the demo: its lines with colors and times."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shlex
import struct
import sys
import termios
import time
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

COLUMNS = 100
ROWS = 30

_PIECE = re.compile(
    r"\x1b\[([?\d;]*)([A-Za-z])|([\r\n\b])|([^\x1b\r\n\b]+)|(\x1b\][^\x07]*\x07)|(\x1b.?)"
)


class Span(NamedTuple):
    """Text with one style."""

    text: str
    codes: tuple[int, ...]
    """SGR codes: 1 is bold, 2 dim, 31 to 36 are colors."""


class Line(NamedTuple):
    """A line that was not erased."""

    seconds: float
    """Seconds since the command started."""
    spans: tuple[Span, ...]

    @property
    def text(self) -> str:
        """Return the text without colors."""
        return "".join(span.text for span in self.spans)


def record_demo() -> list[Line]:
    """Run `cuggino demo` in a pseudo-terminal and return its permanent lines.

    The path of this Python is shortened.
    """
    python = shlex.quote(sys.executable)
    return [
        line._replace(
            spans=tuple(
                span._replace(text=span.text.replace(python, "python3")) for span in line.spans
            )
        )
        for line in lines_of(_output([sys.executable, "-m", "cuggino_cli", "demo"]))
    ]


def lines_of(output: Iterable[tuple[float, str]]) -> Iterator[Line]:
    """Yield the lines that are left at the end, without erased and overwritten text."""
    screen = _Screen()
    for seconds, sent in output:
        for args, letter, control, text, title, unknown in _PIECE.findall(sent):
            if text:
                screen.put(seconds, text.replace("\a", ""))  # the bell is heard, not seen
            elif control:
                screen.control(control)
            elif letter:
                screen.sequence(letter, args)
            elif not title:
                raise ValueError(f"unsupported sequence {unknown!r}")
    yield from screen.lines()


class _Screen:
    """The cells of a terminal without an end, each with its style."""

    def __init__(self) -> None:
        self._rows: list[list[tuple[str, tuple[int, ...]]]] = [[]]
        self._seconds = [0.0]
        self._row = self._column = 0
        self._codes: tuple[int, ...] = ()

    def put(self, seconds: float, text: str) -> None:
        row = self._rows[self._row]
        row += [(" ", ())] * (self._column - len(row))
        if self._column == 0:
            self._seconds[self._row] = seconds
        row[self._column : self._column + len(text)] = [(char, self._codes) for char in text]
        self._column += len(text)

    def control(self, char: str) -> None:
        if char == "\r":
            self._column = 0
        elif char == "\b":
            self._column = max(self._column - 1, 0)
        else:
            self._row += 1
            if self._row == len(self._rows):
                self._rows.append([])
                self._seconds.append(0.0)

    def sequence(self, letter: str, args: str) -> None:
        count = int(args) if args.isdigit() else 1
        match letter:
            case "m":
                given = tuple(int(number or 0) for number in args.split(";"))
                kept = given[len(given) - given[::-1].index(0) :] if 0 in given else None
                self._codes = (*self._codes, *given) if kept is None else kept
            case "A":
                self._row = max(self._row - count, 0)
            case "C":
                self._column += count
            case "D":
                self._column = max(self._column - count, 0)
            case "J":
                del self._rows[self._row][self._column :]
                del self._rows[self._row + 1 :], self._seconds[self._row + 1 :]
            case "K":
                del self._rows[self._row][0 if args == "2" else self._column :]
            case "h" | "l" | "t":
                pass  # modes and the kept title
            case _:
                raise ValueError(f"unsupported sequence {letter!r}")

    def lines(self) -> Iterator[Line]:
        rows = self._rows[:-1] if not self._rows[-1] else self._rows
        last = 0.0
        for row, seconds in zip(rows, self._seconds, strict=False):
            last = max(last, seconds)
            groups = groupby(row, key=lambda cell: cell[1])
            spans = (Span("".join(char for char, _ in cells), codes) for codes, cells in groups)
            yield Line(last, tuple(spans))


def _output(command: list[str]) -> Iterator[tuple[float, str]]:
    start = time.monotonic()
    child, master = pty.fork()
    if child == 0:  # pragma: no cover
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            os.environ.pop(name, None)
        os.environ["TERM"] = "xterm-256color"
        os.environ["TMPDIR"] = "/tmp"  # a longer path would be cut
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        os.execv(command[0], command)
    rest = b""
    try:
        while True:
            try:
                sent = os.read(master, 65536)
            except OSError:  # the other end of the terminal is closed
                break
            if not sent:
                break
            whole, rest = _whole(rest + sent)
            yield time.monotonic() - start, whole
    finally:
        os.close(master)
        _, status = os.waitpid(child, 0)
    if code := os.waitstatus_to_exitcode(status):
        raise RuntimeError(f"the demo ended with {code}")


def _whole(sent: bytes) -> tuple[str, bytes]:
    """Split the bytes into whole characters and sequences, and the rest."""
    for end in range(len(sent), max(len(sent) - 300, -1), -1):
        try:
            text = sent[:end].decode()
        except UnicodeDecodeError:
            continue
        if not re.search(r"\x1b(\[[?\d;]*|\][^\x07]*)?$", text):
            return text, sent[end:]
    return "", sent
