"""Labeled text: verbosity levels, labels, and the one table of colors."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Literal, NamedTuple, TypeAlias

from cuggino.runs.words import Tone
from cuggino_cli.screen.text import inert


class Verbosity(IntEnum):
    """How much is shown; each level includes the ones below (CUG-136)."""

    QUIET = 0
    """Phases, outcomes and errors."""
    NORMAL = 1
    """Also tool calls, markers, commits, one line per setup or check command and per agent."""
    VERBOSE = 2
    """Also messages, thinking, tool results and command output."""


Label: TypeAlias = "Tone | Literal['prose', 'debug', 'bell']"
"""The tone of a sentence, or a meaning of the view's own: secondary text, debugging, a sound."""


class Fragment(NamedTuple):
    """A piece of text with its meaning. A `bell` is a sound without text."""

    label: Label
    text: str


THEME: dict[Label, str] = {
    "plain": "",
    "quiet": "\x1b[2m",
    "prose": "\x1b[2m",
    "tool": "\x1b[2;36m",
    "heading": "\x1b[1m",
    "info": "\x1b[36m",
    "progress": "\x1b[1m\x1b[34m",
    "discussion": "\x1b[1m\x1b[35m",
    "commit": "\x1b[1;35m",
    "success": "\x1b[1m\x1b[32m",
    "caution": "\x1b[1m\x1b[33m",
    "warning": "\x1b[33m",
    "failure": "\x1b[1;31m",
    "problem": "\x1b[1m\x1b[31m",
    "error": "\x1b[31m",
    "debug": "\x1b[90m",
    "bell": "",
}
"""The escape sequence that opens each label, or "" (CUG-131 to CUG-133, AUT-251)."""

_RESET = "\x1b[0m"
_BELL = "\x07"


def paint(fragments: Iterable[Fragment], *, color: bool, bell: bool | None = None) -> str:
    """Join the fragments into one text, each inert.

    Args:
        fragments: the fragments, in order.
        color: add the theme's escape sequences.
        bell: let `bell` fragments sound; default: as `color`.
    """
    sound = _BELL if (color if bell is None else bell) else ""
    if not color:
        return "".join([sound if label == "bell" else inert(text) for label, text in fragments])
    return "".join([sound if f.label == "bell" else _painted(f) for f in fragments])


def _painted(fragment: Fragment) -> str:
    text = inert(fragment.text)
    opening = THEME[fragment.label]
    return f"{opening}{text}{_RESET}" if opening and text else text


def joined(lines: Iterable[Iterable[Fragment]]) -> list[Fragment]:
    """Join the lines with newlines."""
    fragments: list[Fragment] = []
    for number, line in enumerate(lines):
        fragments += [Fragment("plain", "\n"), *line] if number else line
    return fragments
