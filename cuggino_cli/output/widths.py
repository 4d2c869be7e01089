"""How many columns a text takes on a terminal."""

from __future__ import annotations

from wcwidth import wcswidth


def width(text: str) -> int:
    """Columns of one line of inert text; what cannot be shown counts as nothing."""
    return max(wcswidth(text), 0)


def fit(text: str, columns: int) -> str:
    """As much of the line as leaves the last of `columns` free, so that it never wraps."""
    while text and width(text) >= columns:
        text = text[:-1]
    return text
