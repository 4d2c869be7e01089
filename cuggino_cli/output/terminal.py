"""The one writer to the terminal: lines that stay, and one spinner below them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TextIO

from cuggino_cli.output.sanitize import inert
from cuggino_cli.output.theme import Fragment, paint
from cuggino_cli.output.widths import fit, width

ColorMode = Literal["auto", "always", "never"]

_CLEAR_LINE = "\x1b[2K"
_LINE_UP = "\x1b[1A"
_FALLBACK_COLUMNS = 80


def choose_color(mode: ColorMode, stream: TextIO, env: Mapping[str, str]) -> bool:
    """Whether to colour: the mode decides, `auto` colours a terminal that can show it.

    With `auto`, a non-empty `NO_COLOR` and `TERM=dumb` switch colours off (CUG-135).
    """
    if mode == "auto":
        return choose_interactive(stream, env)
    return mode == "always"


def choose_interactive(stream: TextIO, env: Mapping[str, str]) -> bool:
    """Whether spinner and bell fit: on a terminal, without `NO_COLOR` and `TERM=dumb` (CUG-135)."""
    return stream.isatty() and not env.get("NO_COLOR") and env.get("TERM") != "dumb"


def columns_of(stream: TextIO) -> Callable[[], int]:
    """Asks for the stream's width in columns as it is now; 80 where there is none to be had."""

    def columns() -> int:
        try:
            return os.get_terminal_size(stream.fileno()).columns or _FALLBACK_COLUMNS
        except (OSError, ValueError):
            return _FALLBACK_COLUMNS

    return columns


class Terminal:
    """Prints whole lines, and keeps at most one spinner line below them (CUG-134).

    The spinner is erased before anything is printed. Without `interactive` there is neither
    spinner nor bell, and without `color` as well no control character is ever written but newline
    and tab. Nothing is buffered here. A reader that has gone shows as BrokenPipeError.

    Args:
        stream: what is written to; only this object may write to it while a spinner is shown.
        color: whether lines are coloured.
        interactive: whether a person watches: spinner and bell.
        columns: the present width, asked anew each time, so that a resize is followed.
    """

    def __init__(
        self, stream: TextIO, *, color: bool, interactive: bool, columns: Callable[[], int]
    ) -> None:
        self._stream = stream
        self._color = color
        self._interactive = interactive
        self._columns = columns
        self._drawn: int | None = None
        """Columns that the spinner took when it was drawn, None when there is none."""

    @property
    def interactive(self) -> bool:
        """Whether a spinner is shown."""
        return self._interactive

    def columns(self) -> int:
        """The present width."""
        return self._columns()

    def print(self, fragments: Iterable[Fragment]) -> None:
        """Writes the fragments and a newline, in place of the spinner."""
        text = paint(fragments, color=self._color, bell=self._interactive)
        self._write(f"{self._erasure()}{text}\n")
        self._drawn = None

    def spin(self, text: str) -> None:
        """Shows the text as the spinner, on one line short of the last column."""
        if not self._interactive:
            return
        line = fit(inert(text).replace("\n", " ").replace("\t", " "), self.columns())
        self._write(f"{self._erasure() or self._erase_rows(1)}{line}")
        self._drawn = width(line)

    def clear(self) -> None:
        """Erases the spinner, if one is shown."""
        if self._drawn is not None:
            self._write(self._erasure())
            self._drawn = None

    def _erasure(self) -> str:
        if self._drawn is None:
            return ""
        # A terminal made narrower has wrapped the line: its rows above the cursor go as well.
        return self._erase_rows(-(-self._drawn // max(self.columns(), 1)))

    def _erase_rows(self, rows: int) -> str:
        return f"{_CLEAR_LINE}{f'{_LINE_UP}{_CLEAR_LINE}' * (rows - 1)}\r"

    def _write(self, text: str) -> None:
        if self._stream.closed:
            raise BrokenPipeError(errno.EPIPE, "the output is closed")
        try:
            self._stream.write(text)
        except UnicodeEncodeError as error:
            self._stream.write(text.encode(error.encoding, "replace").decode(error.encoding))
        self._stream.flush()
