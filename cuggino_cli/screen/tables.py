"""Tables by the columns of the terminal: a row for each thing, or several lines on a narrow one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from cuggino_cli.screen.columns import cut, padded, width
from cuggino_cli.screen.fragments import Fragment, Label, joined

GAP = "  "
"""Between two cells, and before an indented line."""


class Row(NamedTuple):
    """A row of a table."""

    cells: Sequence[str]
    label: Label
    """That of the second cell; the others are plain."""
    text: str
    """The last cell, which takes the rest of the width."""


def table(
    heads: Sequence[str], rows: Sequence[Row], *, columns: int | None, least: int
) -> list[Fragment] | None:
    """Return the table below its heads, or None if fewer than `least` columns are left for texts.

    Nothing is wider than `columns`; None, for a file or a pipe, means no limit.
    """
    *names, last = heads
    lines = (names, *(row.cells for row in rows))
    widths = [max(width(line[at]) for line in lines) for at in range(len(names))]
    room = None if columns is None else columns - sum(widths) - len(GAP) * len(widths)
    if room is not None and room < least:
        return None

    def shown() -> Iterator[list[Fragment]]:
        yield [Fragment("prose", GAP.join((*map(padded, names, widths), last)))]
        for cells, label, text in rows:
            first, second, *rest = map(padded, cells, widths)
            tail = GAP + GAP.join((*rest, cut(text, room))).rstrip()
            yield [Fragment("plain", first + GAP), Fragment(label, second), Fragment("plain", tail)]

    return joined(shown())


def indented(
    words: Iterable[str], columns: int, label: Label, *, gap: str = " "
) -> Iterator[list[Fragment]]:
    """Wrap the words into indented lines; longer words are cut."""
    line = ""
    for word in filter(None, words):
        if line and width(f"{GAP}{line}{gap}{word}") >= columns:
            yield [Fragment(label, cut(GAP + line, columns))]
            line = ""
        line += gap + word if line else word
    if line:
        yield [Fragment(label, cut(GAP + line, columns))]
