"""Time stamps before lines, and words wrapped after them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from datetime import datetime

from cuggino_cli.screen.columns import width
from cuggino_cli.screen.fragments import Fragment
from cuggino_cli.screen.terminal import Lines
from cuggino_cli.screen.text import inert

_LEAST = 20
"""Columns below which words are not wrapped: the terminal does it."""


class Stamps:
    """Time stamps: of the day on a terminal, with the date elsewhere.

    On a terminal, further lines of an event are indented. Elsewhere each line has the stamp and
    no line is empty, as in other log files; a line that is meant to be empty stays so.
    """

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._on_terminal = lines.is_terminal
        self._form = "%H:%M:%S " if self._on_terminal else "%Y-%m-%d %H:%M:%S "

    def _text(self, at: datetime) -> str:
        """Return the stamp in local time, with a space."""
        return _formatted(self._form, int(at.timestamp()))

    def mark(self, at: datetime, *, is_first: bool) -> Fragment:
        """Return what precedes a line of a text on a terminal: the first one or another one."""
        stamp = self._text(at)
        return Fragment("prose", stamp if is_first else " " * len(stamp))

    def stamped(
        self, fragments: Iterable[Fragment], at: datetime, slot: str = ""
    ) -> list[Fragment]:
        """Return the fragments behind a stamp and `slot`, on a terminal wrapped at words."""
        stamp = self._text(at) + slot
        given = list(fragments)
        if not any(text.strip("\n") for _, text in given):
            return given
        if not self._on_terminal:
            return _logged(given, stamp)
        head: list[Fragment] = []
        while given and given[0].text == "\n" and given[0].label == "plain":
            head.append(given.pop(0))
        indent = "\n" + " " * width(stamp)
        room = self._lines.columns() - width(stamp) - 1
        if room >= _LEAST:
            given = list(_laid_out(_without_end(given), room))
        body = [Fragment(label, text.replace("\n", indent)) for label, text in _without_end(given)]
        return [*head, Fragment("prose", stamp), *body]


def _without_end(fragments: list[Fragment]) -> list[Fragment]:
    kept = list(fragments)
    while kept and kept[-1].label != "bell":
        label, text = kept.pop()
        if text := text.rstrip("\n"):
            return [*kept, Fragment(label, text)]
    return kept


def _logged(given: list[Fragment], stamp: str) -> list[Fragment]:
    """Return the fragments with the stamp before each line that is not empty."""
    logged: list[Fragment] = []
    begins = True
    for label, text in given:
        for piece in text.splitlines(keepends=True) if "\n" in text else [text]:
            line = piece.rstrip("\n")
            if line:
                if begins:
                    newline = [Fragment("plain", "\n")] if logged else []
                    logged += [*newline, Fragment("prose", stamp)]
                logged.append(Fragment(label, line))
                begins = False
            elif label == "bell":
                logged.append(Fragment(label, text))
            begins = begins or piece.endswith("\n")
    return logged


@functools.lru_cache(maxsize=4)
def _formatted(form: str, second: int) -> str:
    return datetime.fromtimestamp(second).strftime(form)


def _laid_out(fragments: Iterable[Fragment], room: int) -> Iterator[Fragment]:
    """Yield the fragments, wrapped at words."""
    used = 0
    for label, text in fragments:
        lines: list[str] = []
        for line in inert(text).split("\n"):
            lines += wrapped(line, room, used=0 if lines else used)
        used = (0 if len(lines) > 1 else used) + width(lines[-1])
        yield Fragment(label, "\n".join(lines))


def wrapped(line: str, columns: int, *, used: int = 0) -> list[str]:
    """Wrap one line of inert text at its spaces; its indentation is repeated.

    `used` columns of the first line are taken by other text.
    """
    if used + width(line) <= columns:
        return [line]
    body = line.lstrip(" ")
    indent = line[: len(line) - len(body)]
    if used or len(indent) >= columns // 2:
        indent = ""
    lines: list[str] = []
    first, *words = line[len(indent) :].split(" ")
    current, taken = indent + first, used + len(indent) + width(first)
    for word in words:
        size = width(word)
        if taken + 1 + size > columns and taken > len(indent):
            lines.append(current)
            current, taken = indent + word, len(indent) + size
        else:
            current, taken = f"{current} {word}", taken + 1 + size
    return [*lines, current]
