"""The output of a run: lines, and on a terminal a status area below them."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Literal, Protocol, TextIO

from cuggino_cli.screen.fragments import Fragment, paint

ColorMode = Literal["auto", "always", "never"]

_SIMPLE = frozenset({"dumb", "unknown"})
_FALLBACK = os.terminal_size((80, 24))


def choose_color(mode: ColorMode, stream: TextIO, env: Mapping[str, str]) -> bool:
    """Return whether to use colors: `auto` does on a terminal that supports them (CUG-135).

    With `auto`, a non-empty `NO_COLOR` and `TERM=dumb` turn colors off.
    """
    if mode == "auto":
        return choose_interactive(stream, env)
    return mode == "always"


def choose_interactive(stream: TextIO, env: Mapping[str, str]) -> bool:
    """Return whether to use colors and the bell: as `auto` for colors (CUG-135)."""
    return stream.isatty() and not env.get("NO_COLOR") and env.get("TERM") != "dumb"


def choose_live(stream: TextIO, env: Mapping[str, str]) -> bool:
    """Return whether to draw a status area: on a terminal that can move its cursor."""
    return stream.isatty() and env.get("TERM") not in _SIMPLE


class Status(Protocol):
    """What the status area shows; an immutable value."""

    def rows(self, now: datetime, *, columns: int, height: int) -> Sequence[Sequence[Fragment]]:
        """Return the rows at this time, each short of the last column."""

    def title(self) -> str:
        """Return the title of the terminal."""


class Lines:
    """The output of a run: permanent lines; `LiveScreen` has a status area below them.

    Without `color` and `bell` the only control characters written are newline and tab. Output is
    not buffered. A closed reader raises BrokenPipeError.

    Args:
        stream: the output.
        color: color the lines.
        bell: ring the bell.
        is_terminal: whether the stream is a terminal, rather than a file or a pipe.
        errors: the output for errors; None for `stream`.
        error_color: color the lines on `errors`.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        color: bool,
        bell: bool = False,
        is_terminal: bool = False,
        errors: TextIO | None = None,
        error_color: bool = False,
    ) -> None:
        self.stream = stream
        self.color = color
        self.bell = bell
        self.is_terminal = is_terminal
        self.errors = errors
        self.error_color = error_color
        self._held: list[str] | None = None
        """The output that is written when a block of `at_once` is left."""
        self._is_unfinished = False
        """The last line has no newline yet."""

    @property
    def is_live(self) -> bool:
        """Return whether a status area is drawn."""
        return False

    def columns(self) -> int:
        """Return the current width; 80 if unknown."""
        return self._size().columns or _FALLBACK.columns

    def height(self) -> int:
        """Return the current height; 24 if unknown."""
        return self._size().lines or _FALLBACK.lines

    def _size(self) -> os.terminal_size:
        try:
            return os.get_terminal_size(self.stream.fileno())
        except (OSError, ValueError):
            return _FALLBACK

    def print(self, fragments: Iterable[Fragment], *, is_complaint: bool = False) -> None:
        """Print the fragments on a line of their own; a complaint goes to standard error."""
        self.end_line()
        if is_complaint and self.errors is not None:
            self.complain(fragments)
        else:
            self.write(paint(fragments, color=self.color, bell=self.bell) + "\n")

    def complains_on_stream(self) -> bool:
        """Return whether complaints appear where the lines do."""
        if self.errors is None:
            return True
        try:
            one, other = (os.fstat(stream.fileno()) for stream in (self.stream, self.errors))
        except (OSError, ValueError):
            return False
        return self.errors.isatty() and one.st_rdev == other.st_rdev

    def complain(self, fragments: Iterable[Fragment]) -> None:
        """Print the fragments on standard error."""
        errors = self.errors or self.stream
        text = paint(fragments, color=self.error_color, bell=self.bell)
        self._write(errors, f"{text}\n")

    def append(self, fragments: Iterable[Fragment]) -> None:
        """Append the fragments to the current line; call `end_line` at the end."""
        text = paint(fragments, color=self.color, bell=self.bell)
        if text:
            self.write(text)
            self._is_unfinished = bool(text.strip("\a")) and not text.endswith("\n")

    def end_line(self) -> None:
        if self._is_unfinished:
            self._is_unfinished = False
            self.write("\n")

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
                self.write("".join(held))

    def show(self, status: Status | None) -> None:
        """Show this status below the lines from now on, where there is room; None shows none."""

    def write(self, text: str) -> None:
        self._write(self.stream, text)

    def _write(self, stream: TextIO, text: str) -> None:
        if self._held is not None:
            if stream is self.stream:
                self._held.append(text)
                return
            held, self._held = self._held, None  # what comes first is written first
            self._write(self.stream, "".join(held))
            self._held = []
        if stream.closed:
            raise BrokenPipeError(errno.EPIPE, "the output is closed")
        try:
            stream.write(text)
        except UnicodeEncodeError as error:
            stream.write(text.encode(error.encoding, "replace").decode(error.encoding))
        stream.flush()


def standard_lines(color: ColorMode) -> Lines:
    """Return the lines on standard output; complaints go to standard error."""
    errors: TextIO | None = sys.stderr  # None when there is none
    return Lines(
        sys.stdout,
        color=choose_color(color, sys.stdout, os.environ),
        bell=choose_interactive(sys.stdout, os.environ),
        is_terminal=sys.stdout.isatty(),
        errors=errors,
        error_color=errors is not None and choose_color(color, errors, os.environ),
    )
