"""Lists of names, written as one text: they are long, and nothing but names."""

from __future__ import annotations


def words(text: str) -> tuple[str, ...]:
    """The words of the text."""
    return tuple(text.split())
