"""Texts as cells of a table, and as pieces of one line."""

from __future__ import annotations

from cuggino_cli.output.sanitize import inert
from cuggino_cli.output.widths import fit, width


def money(usd: float | None) -> str:
    """`$1.2345`; nothing when it is not known."""
    return "" if usd is None else f"${usd:.4f}"


def first_line(text: str) -> str:
    """The first line that says something."""
    return text.strip().partition("\n")[0]


def flat(text: str) -> str:
    """Foreign text as a piece of one line."""
    return inert(" ".join(text.split()))


def padded(text: str, columns: int) -> str:
    """The text with spaces behind it, so that it takes so many columns."""
    return text + " " * (columns - width(text))


def cut(text: str, columns: int | None) -> str:
    """The inert text, with `...` at its end when it does not fit below `columns`."""
    if columns is None or width(text) < columns:
        return text
    return fit(text, max(columns - 3, 1)) + "..."[: max(columns - 1, 0)]
