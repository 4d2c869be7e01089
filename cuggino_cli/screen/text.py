"""Text for a terminal: made inert, in one line, cut."""

from __future__ import annotations

from cuggino.inert import inert

__all__ = ["clip", "first_line", "flat", "inert"]


def first_line(text: str) -> str:
    """Return the first line that is not blank."""
    return text.strip().partition("\n")[0]


def flat(text: str) -> str:
    """Return the text on one line, inert."""
    return inert(" ".join(text.split()))


def clip(text: str, limit: int) -> str:
    """Return the text, inert, cut after `limit` characters."""
    shown = inert(text)
    return f"{shown[:limit]}..." if len(shown) > limit else shown
