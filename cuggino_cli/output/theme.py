"""Labels and their look: the one table of colours.

A formatter labels text by its meaning; the look is decided here alone, and plain output ignores
the labels.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from cuggino_cli.output.sanitize import inert

Label = Literal[
    "plain",
    "prose",
    "tool",
    "round",
    "phase",
    "command",
    "commit",
    "failure",
    "warning",
    "success",
    "problem",
    "caution",
    "progress",
    "discussion",
    "watch",
    "audit",
    "finding",
    "info",
    "error",
    "debug",
    "bell",
]


class Fragment(NamedTuple):
    """A piece of text and what it means. A `bell` is a sound and shows no text."""

    label: Label
    text: str


THEME: dict[Label, str] = {
    "plain": "",
    "prose": "\x1b[2m",
    "tool": "\x1b[2;36m",
    "round": "\x1b[1m",
    "phase": "\x1b[2m",
    "command": "\x1b[2m",
    "commit": "\x1b[1;35m",
    "failure": "\x1b[1;31m",
    "warning": "\x1b[33m",
    "success": "\x1b[1m\x1b[32m",
    "problem": "\x1b[1m\x1b[31m",
    "caution": "\x1b[1m\x1b[33m",
    "progress": "\x1b[1m\x1b[34m",
    "discussion": "\x1b[1m\x1b[35m",
    "watch": "\x1b[2m",
    "audit": "\x1b[36m",
    "finding": "\x1b[1;35m",
    "info": "\x1b[36m",
    "error": "\x1b[31m",
    "debug": "\x1b[90m",
    "bell": "",
}
"""The escape sequence that opens each label (CUG-131, CUG-132, CUG-133,
AUT-251); empty for no colour."""

_RESET = "\x1b[0m"
_BELL = "\x07"


def paint(fragments: Iterable[Fragment], *, color: bool, bell: bool | None = None) -> str:
    """The fragments as one text, each inert whatever its source.

    Args:
        fragments: what to show, in order.
        color: with the theme's escape sequences, or without any.
        bell: whether `bell` fragments sound; as `color` when not given.
    """
    sound = _BELL if (color if bell is None else bell) else ""
    return "".join(sound if f.label == "bell" else _paint(f, color=color) for f in fragments)


def _paint(fragment: Fragment, *, color: bool) -> str:
    text = inert(fragment.text)
    opening = THEME[fragment.label] if color else ""
    return f"{opening}{text}{_RESET}" if opening else text
