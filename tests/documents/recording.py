"""A recorded run of the demo: its lines with colors and times."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import shlex
import shutil
import struct
import sys
import termios
import time
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from tests.screen.screen import Screen

COLUMNS = 100
ROWS = 30


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
    """Run `cuggino demo` in a pseudo-terminal, and remove its project.

    Return its permanent lines. The path of this Python is shortened.
    """
    lines = list(lines_of(_output([sys.executable, "-m", "cuggino_cli", "demo"])))
    text = "\n".join(line.text for line in lines)
    for project in set(re.findall(r"/tmp/cuggino-demo-\w+", text)):
        shutil.rmtree(project)
    python = shlex.quote(sys.executable)
    return [
        line._replace(
            spans=tuple(
                span._replace(text=span.text.replace(python, "python3")) for span in line.spans
            )
        )
        for line in lines
    ]


def lines_of(output: Iterable[tuple[float, str]]) -> Iterator[Line]:
    """Yield the lines that are left at the end, without erased and overwritten text."""
    screen = _StyledScreen()
    for screen.seconds, sent in output:
        screen.write(sent)
    yield from screen.styled_lines()


class _StyledScreen(Screen):
    """A terminal without an end that remembers the style of each cell and when a row began."""

    def __init__(self) -> None:
        super().__init__(columns=sys.maxsize)
        self.seconds = 0.0
        """The time of what is written."""
        self._began: dict[int, float] = {}
        self._codes: tuple[int, ...] = ()
        self._styles: dict[tuple[int, int], tuple[int, ...]] = {}

    def _move(self, final: str, args: str) -> None:
        if final != "m":
            super()._move(final, args)
            return
        given = tuple(int(number or 0) for number in args.split(";"))
        kept = given[len(given) - given[::-1].index(0) :] if 0 in given else None
        self._codes = (*self._codes, *given) if kept is None else kept

    def _put(self, char: str) -> None:
        if self.column == 0:
            self._began[self.row] = self.seconds
        self._styles[self.row, self.column] = self._codes
        super()._put(char)

    def styled_lines(self) -> Iterator[Line]:
        last = 0.0
        for number, row in enumerate(self.cells if self.cells[-1] else self.cells[:-1]):
            last = max(last, self._began.get(number, 0.0))
            cells = [
                (char, self._styles.get((number, at), ())) for at, char in enumerate(row) if char
            ]
            groups = groupby(cells, key=lambda cell: cell[1])
            spans = (Span("".join(char for char, _ in same), codes) for codes, same in groups)
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
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while True:
            try:
                sent = os.read(master, 65536)
            except OSError:  # the other end of the terminal is closed
                break
            if not sent:
                break
            yield time.monotonic() - start, decoder.decode(sent)
    finally:
        os.close(master)
        _, status = os.waitpid(child, 0)
    if code := os.waitstatus_to_exitcode(status):
        raise RuntimeError(f"the demo ended with {code}")
