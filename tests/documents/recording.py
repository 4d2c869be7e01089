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
from typing import NamedTuple

COLUMNS = 100
ROWS = 30

_PIECE = re.compile(r"\x1b\[([\d;]*)([A-Za-z])|(\r\n|\r|\n)|([^\x1b\r\n]+)|(\x1b.?)")


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
    """Yield the lines of the output, without erased and overwritten text."""
    line: list[Span] = []
    codes: tuple[int, ...] = ()
    for seconds, sent in output:
        for numbers, letter, ending, text, unknown in _PIECE.findall(sent):
            if text:
                line.append(Span(text, codes))
            elif ending == "\r\n":
                yield Line(seconds, tuple(line))
                line = []
            elif letter == "m":
                given = [int(number or 0) for number in numbers.split(";")]
                codes = () if given == [0] else (*codes, *given)
            elif letter == "K" or ending == "\r":
                line = []
            else:
                raise ValueError(f"unsupported sequence {letter or ending or unknown!r}")
    if line:
        yield Line(seconds, tuple(line))


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
    for end in range(len(sent), max(len(sent) - 16, -1), -1):
        try:
            text = sent[:end].decode()
        except UnicodeDecodeError:
            continue
        if not re.search(r"(\x1b(\[[\d;]*)?|\r)$", text):
            return text, sent[end:]
    return "", sent
