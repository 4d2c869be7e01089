"""How many columns, and how many rows, a text takes on a terminal."""

from __future__ import annotations

from wcwidth import wcswidth, wcwidth


def width(text: str) -> int:
    """Columns of one line of inert text; what cannot be shown counts as nothing."""
    return max(wcswidth(text), 0)


def fit(text: str, columns: int) -> str:
    """As much of the line as leaves the last of `columns` free, so that it never wraps."""
    taken = 0
    for place, char in enumerate(text):
        taken += max(wcwidth(char), 0)
        if taken >= columns:
            text = text[:place]
            break
    while text and width(text) >= columns:
        text = text[:-1]
    return text


def rows(text: str, columns: int) -> int:
    """Rows that one line takes on a terminal of so many columns, which wraps what is too long."""
    count, column = 1, 0
    for char in text:
        wide = max(wcwidth(char), 0)
        if column and column + wide > columns:
            count, column = count + 1, 0
        column += wide
    return count
