"""Text measured in the columns of a terminal, and cut or padded to them."""

from __future__ import annotations

import functools

from wcwidth import wcswidth


def width(text: str) -> int:
    """Return the columns of one line of inert text; unprintable characters count as zero."""
    if text.isascii() and text.isprintable():
        return len(text)
    return max(wcswidth(text), 0)


@functools.lru_cache(maxsize=1024)
def _char_width(char: str) -> int:
    """Return the columns of one character; 0 for an unprintable one."""
    return width(char)


def fit(text: str, columns: int) -> str:
    """Cut the line short of the last of `columns`, so that it never wraps."""
    taken = 0
    for place, char in enumerate(text):
        taken += _char_width(char)
        if taken >= columns:
            text = text[:place]
            break
    while text and width(text) >= columns:
        text = text[:-1]
    return text


def padded(text: str, columns: int) -> str:
    """Pad the text with spaces to a width."""
    return text + " " * (columns - width(text))


def cut(text: str, columns: int | None) -> str:
    """Cut the inert text short of the last of `columns`, with `...` at its end."""
    if columns is None or width(text) < columns:
        return text
    return fit(text, max(columns - 3, 1)) + "..."[: max(columns - 1, 0)]
