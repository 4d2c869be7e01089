"""The one writer to the terminal: permanent lines, and a spinner or a few drawn lines below."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal, TextIO

from cuggino_cli.screen.fragments import Fragment, paint
from cuggino_cli.screen.text import fit, inert, rows, width

ColorMode = Literal["auto", "always", "never"]

_CLEAR_LINE = "\x1b[2K"
_LINE_UP = "\x1b[1A"
_FALLBACK_COLUMNS = 80
_FALLBACK_ROWS = 24


def choose_color(mode: ColorMode, stream: TextIO, env: Mapping[str, str]) -> bool:
    """Return whether to use colors: `auto` does on a terminal that supports them (CUG-135).

    With `auto`, a non-empty `NO_COLOR` and `TERM=dumb` turn colors off.
    """
    if mode == "auto":
        return choose_interactive(stream, env)
    return mode == "always"


def choose_interactive(stream: TextIO, env: Mapping[str, str]) -> bool:
    """Return whether to use spinner and bell: as `auto` for colors (CUG-135)."""
    return stream.isatty() and not env.get("NO_COLOR") and env.get("TERM") != "dumb"


def columns_of(stream: TextIO) -> Callable[[], int]:
    """Return a function for the stream's current width; 80 if unknown."""

    def columns() -> int:
        try:
            return os.get_terminal_size(stream.fileno()).columns or _FALLBACK_COLUMNS
        except (OSError, ValueError):
            return _FALLBACK_COLUMNS

    return columns


def rows_of(stream: TextIO) -> Callable[[], int]:
    """Return a function for the stream's current height; 24 if unknown."""

    def height() -> int:
        try:
            return os.get_terminal_size(stream.fileno()).lines or _FALLBACK_ROWS
        except (OSError, ValueError):
            return _FALLBACK_ROWS

    return height


class Terminal:
    """A writer of lines that keeps a spinner or a few drawn lines below them (CUG-134).

    Drawn lines are erased before anything is printed, and nothing is drawn while a line is
    unfinished. Unless `interactive`, nothing is drawn and no bell rings; without `color` as well,
    the only control characters written are newline and tab. Output is not buffered. A closed
    reader raises BrokenPipeError.

    Args:
        stream: the output; nothing else may write to it while lines are drawn.
        color: color the lines.
        interactive: draw spinner and lines, ring the bell.
        columns: the current width, called each time so that a resize is followed.
        height: the current height, likewise.
        errors: the output for errors; None for `stream`.
        error_color: color the lines on `errors`.
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
        self._held: list[str] | None = None
        """The output that is written when a block of `at_once` is left."""
        self._is_still = False
        self._is_unfinished = False
        """The last line has no newline yet."""
        self._drawn: Sequence[Sequence[Fragment]] = []
        """The drawn lines, as they were cut; the cursor is at the end of the last one."""
        self._drawn_at = 0
        """The width of the terminal at that time."""

    @property
    def interactive(self) -> bool:
        """Return whether anything is drawn."""
        return self._interactive

    def columns(self) -> int:
        return self._columns()

    def height(self) -> int:
        return self._height()

    def print(self, fragments: Iterable[Fragment], *, is_complaint: bool = False) -> None:
        """Print the fragments on a line of their own, replacing drawn lines.

        A complaint goes to `errors`; on the same terminal it appears in order.
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

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Write the output of the block at once."""
        if self._held is not None:
            yield
            return
        self._held = []
        try:
            yield
        finally:
            held, self._held = self._held, None
            if held:
                self._write(self._stream, "".join(held))

    def append(self, fragments: Iterable[Fragment]) -> None:
        """Append the fragments to the current line (LOP-081); call `end_line` at the end."""
        text = paint(fragments, color=self._color, bell=self._interactive)
        if text:
            self._write(self._stream, f"{self._erasure()}{text}")
            self._drawn = []
            self._is_unfinished = not text.endswith("\n")

    def end_line(self) -> None:
        if self._is_unfinished:
            self._is_unfinished = False
            self._write(self._stream, "\n")

    def spin(self, text: str) -> None:
        """Draw the text as the spinner."""
        self.draw([[Fragment("plain", text)]])

    def draw(self, lines: Sequence[Sequence[Fragment]]) -> None:
        """Draw lines below all others, replacing the drawn ones.

        Each is cut short of the last column; if there are more lines than rows, the last ones are
        drawn. Unchanged lines at the top are not redrawn, to avoid flicker.
        """
        if not self._interactive or self._is_still or self._is_unfinished:
            return
        columns = self.columns()
        cut = [_fitted(line, columns) for line in lines[-max(self.height() - 1, 1) :]]
        same = 0
        if columns == self._drawn_at and len(cut) == len(self._drawn):
            # The last line is always redrawn, in case another program wrote there.
            while same < len(cut) - 1 and cut[same] == self._drawn[same]:
                same += 1
        erasure = self._erasure(same) or self._erase_rows(1)
        text = "\n".join(paint(line, color=self._color, bell=False) for line in cut[same:])
        self._write(self._stream, f"{erasure}{text}")
        self._drawn, self._drawn_at = cut, columns

    def clear(self) -> None:
        """Erase the drawn lines."""
        if self._drawn:
            self._write(self._stream, self._erasure())
            self._drawn = []

    def be_still(self) -> None:
        """Erase the drawn lines and draw no more; printing continues."""
        self._is_still = True
        self.clear()

    def _erasure(self, kept: int = 0) -> str:
        """Return the sequence that erases the drawn lines but `kept` at the top."""
        if not self._drawn:
            return ""
        # A terminal made narrower has wrapped the lines: erase all their rows.
        columns = max(self.columns(), 1)
        return self._erase_rows(sum(rows(_text(line), columns) for line in self._drawn[kept:]))

    def _erase_rows(self, count: int) -> str:
        return f"{_CLEAR_LINE}{f'{_LINE_UP}{_CLEAR_LINE}' * (count - 1)}\r"

    def _write(self, stream: TextIO, text: str) -> None:
        if self._held is not None:
            if stream is self._stream:
                self._held.append(text)
                return
            held, self._held = self._held, None  # what comes first is written first
            self._write(self._stream, "".join(held))
            self._held = []
        if stream.closed:
            raise BrokenPipeError(errno.EPIPE, "the output is closed")
        try:
            stream.write(text)
        except UnicodeEncodeError as error:
            stream.write(text.encode(error.encoding, "replace").decode(error.encoding))
        stream.flush()


def _fitted(line: Sequence[Fragment], columns: int) -> list[Fragment]:
    """Cut the line short of the last column."""
    fitted = []
    for fragment in line:
        text = fit(inert(fragment.text).replace("\n", " ").replace("\t", " "), columns)
        fitted.append(Fragment(fragment.label, text))
        columns -= width(text)
    return fitted


def _text(line: Sequence[Fragment]) -> str:
    return "".join(fragment.text for fragment in line)
