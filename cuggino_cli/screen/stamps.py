"""Time stamps before lines, and words wrapped after them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from datetime import datetime

from cuggino_cli.screen.columns import width
from cuggino_cli.screen.fragments import Fragment
from cuggino_cli.screen.text import inert

_LEAST = 20
"""Columns below which words are not wrapped: the terminal does it."""


class Stamps:
    """Time stamps: of the day on a terminal, with the date elsewhere.

    On a terminal, further lines of an event are indented. Elsewhere each line has the stamp and
    no line is empty, as in other log files; a line that is meant to be empty stays so.
    """

    def __init__(self, *, on_terminal: bool) -> None:
        self._on_terminal = on_terminal
        self._form = "%H:%M:%S " if on_terminal else "%Y-%m-%d %H:%M:%S "

    def text(self, at: datetime) -> str:
        """Return the stamp in local time, with a space."""
        return _formatted(self._form, int(at.timestamp()))

    def mark(self, at: datetime, *, is_first: bool) -> Fragment:
        """Return what precedes a line of a text: the first one or another one."""
        stamp = self.text(at)
        is_shown = is_first or not self._on_terminal
        return Fragment("prose", stamp if is_shown else " " * len(stamp))

    def stamped(
        self, fragments: Iterable[Fragment], at: datetime, *, columns: int | None = None
    ) -> list[Fragment]:
        """Return the fragments behind a stamp, wrapped at words to a number of columns."""
        return self.behind(self.text(at), fragments, columns=columns)

    def behind(
        self, stamp: str, fragments: Iterable[Fragment], *, columns: int | None = None
    ) -> list[Fragment]:
        """Return the fragments behind the text of a stamp, as `stamped`."""
        given = list(fragments)
        if not self._on_terminal and len(given) == 1 and "\n" not in given[0].text:
            return [Fragment("prose", stamp), *given] if given[0].text else given
        if not any(text.strip("\n") for _, text in given):
            return given
        if not self._on_terminal:
            return _logged(given, stamp)
        head: list[Fragment] = []
        while given and given[0].text == "\n" and given[0].label == "plain":
            head.append(given.pop(0))
        indent = "\n" + " " * width(stamp)
        room = None if columns is None else columns - width(stamp) - 1
        if room is not None and room >= _LEAST:
            given = list(_laid_out(_without_end(given), room))
        body = [Fragment(label, text.replace("\n", indent)) for label, text in _without_end(given)]
        return [*head, Fragment("prose", stamp), *body]


def _without_end(fragments: list[Fragment]) -> list[Fragment]:
    """Return the fragments without newlines at the end."""
    while fragments and fragments[-1].label != "bell":
        label, text = fragments[-1]
        kept = text.rstrip("\n")
        if kept == text:
            break
        fragments = fragments[:-1] + ([Fragment(label, kept)] if kept else [])
        if kept:
            break
    return fragments


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
