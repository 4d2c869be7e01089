"""The one writer to the terminal: lines that stay, and a spinner or a few lines below them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TextIO

from cuggino_cli.output.sanitize import inert
from cuggino_cli.output.theme import Fragment, paint
from cuggino_cli.output.widths import fit, rows, width

ColorMode = Literal["auto", "always", "never"]

_CLEAR_LINE = "\x1b[2K"
_LINE_UP = "\x1b[1A"
_FALLBACK_COLUMNS = 80
_FALLBACK_ROWS = 24


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


def rows_of(stream: TextIO) -> Callable[[], int]:
    """Asks for the stream's height in rows as it is now; 24 where there is none to be had."""

    def height() -> int:
        try:
            return os.get_terminal_size(stream.fileno()).lines or _FALLBACK_ROWS
        except (OSError, ValueError):
            return _FALLBACK_ROWS

    return height


class Terminal:
    """Prints lines, and keeps a spinner or a few drawn lines below them (CUG-134).

    What is drawn is erased before anything is printed, and nothing is drawn while a line is
    unfinished. Without `interactive` nothing is drawn and
    no bell rings, and without `color` as well no control character is ever written but newline
    and tab. Nothing is buffered here. A reader that has gone shows as BrokenPipeError.

    Args:
        stream: what is written to; only this object may write to it while something is drawn.
        color: whether lines are coloured.
        interactive: whether a person watches: spinner, drawn lines and bell.
        columns: the present width, asked anew each time, so that a resize is followed.
        height: the present height, likewise.
        errors: where complaints go; None for the stream.
        error_color: whether complaints are coloured there.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        color: bool,
        interactive: bool,
        columns: Callable[[], int],
        height: Callable[[], int] = lambda: _FALLBACK_ROWS,
        errors: TextIO | None = None,
        error_color: bool = False,
    ) -> None:
        self._stream = stream
        self._color = color
        self._interactive = interactive
        self._columns = columns
        self._height = height
        self._errors = errors
        self._error_color = error_color
        self._is_still = False
        self._is_unfinished = False
        """The last line has no newline yet."""
        self._drawn: Sequence[Sequence[Fragment]] = []
        """The lines that are drawn, as they were cut; the cursor is at the end of the last one."""
        self._drawn_at = 0
        """Columns that the terminal had then."""

    @property
    def interactive(self) -> bool:
        """Whether anything is drawn."""
        return self._interactive

    def columns(self) -> int:
        """The present width."""
        return self._columns()

    def height(self) -> int:
        """The present height."""
        return self._height()

    def print(self, fragments: Iterable[Fragment], *, is_complaint: bool = False) -> None:
        """Writes the fragments and a newline, in place of what is drawn.

        They begin a new line, whatever was unfinished. A complaint goes to `errors`; when that is
        the same terminal, it stands between the lines where it belongs.
        """
        errors = self._errors if is_complaint else None
        color = self._color if errors is None else self._error_color
        text = paint(fragments, color=color, bell=self._interactive)
        self.end_line()
        if errors is None:
            self._write(self._stream, f"{self._erasure()}{text}\n")
        else:
            self.clear()
            self._write(errors, f"{text}\n")
        self._drawn = []

    def go_on(self, fragments: Iterable[Fragment]) -> None:
        """Writes the fragments behind what is there, without a newline (LOP-081).

        Whoever uses it calls `end_line` at the end.
        """
        text = paint(fragments, color=self._color, bell=self._interactive)
        if text:
            self._write(self._stream, f"{self._erasure()}{text}")
            self._drawn = []
            self._is_unfinished = not text.endswith("\n")

    def end_line(self) -> None:
        """Ends the line that is unfinished, if one is."""
        if self._is_unfinished:
            self._is_unfinished = False
            self._write(self._stream, "\n")

    def spin(self, text: str) -> None:
        """Shows the text as the spinner, on one line short of the last column."""
        self.draw([[Fragment("plain", text)]])

    def draw(self, lines: Sequence[Sequence[Fragment]]) -> None:
        """Shows these lines below all others, in place of those that were drawn before.

        Each is cut short of the last column; of more lines than there are rows the last ones are
        shown. Lines at the top that have not changed are left as they are, so that nothing
        flickers.
        """
        if not self._interactive or self._is_still or self._is_unfinished:
            return
        columns = self.columns()
        cut = [_fitted(line, columns) for line in lines[-max(self.height() - 1, 1) :]]
        same = 0
        if columns == self._drawn_at and len(cut) == len(self._drawn):
            # The last one is always written anew, in case somebody else has written there.
            while same < len(cut) - 1 and cut[same] == self._drawn[same]:
                same += 1
        erasure = self._erasure(same) or self._erase_rows(1)
        text = "\n".join(paint(line, color=self._color, bell=False) for line in cut[same:])
        self._write(self._stream, f"{erasure}{text}")
        self._drawn, self._drawn_at = cut, columns

    def clear(self) -> None:
        """Erases what is drawn, if anything is."""
        if self._drawn:
            self._write(self._stream, self._erasure())
            self._drawn = []

    def be_still(self) -> None:
        """Erases what is drawn, and draws nothing any more; lines are printed as ever."""
        self._is_still = True
        self.clear()

    def _erasure(self, kept: int = 0) -> str:
        """Erases what is drawn but for so many lines at the top."""
        if not self._drawn:
            return ""
        # A terminal made narrower has wrapped the lines: all rows above the cursor go as well.
        columns = max(self.columns(), 1)
        return self._erase_rows(sum(rows(_text(line), columns) for line in self._drawn[kept:]))

    def _erase_rows(self, count: int) -> str:
        return f"{_CLEAR_LINE}{f'{_LINE_UP}{_CLEAR_LINE}' * (count - 1)}\r"

    def _write(self, stream: TextIO, text: str) -> None:
        if stream.closed:
            raise BrokenPipeError(errno.EPIPE, "the output is closed")
        try:
            stream.write(text)
        except UnicodeEncodeError as error:
            stream.write(text.encode(error.encoding, "replace").decode(error.encoding))
        stream.flush()


def _fitted(line: Sequence[Fragment], columns: int) -> list[Fragment]:
    """The line as one line, short of the last column."""
    fitted = []
    for fragment in line:
        text = fit(inert(fragment.text).replace("\n", " ").replace("\t", " "), columns)
        fitted.append(Fragment(fragment.label, text))
        columns -= width(text)
    return fitted


def _text(line: Sequence[Fragment]) -> str:
    return "".join(fragment.text for fragment in line)
