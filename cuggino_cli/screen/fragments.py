"""Labeled text: verbosity levels, labels, and the one table of colors."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Literal, NamedTuple

from cuggino_cli.screen.text import inert


class Verbosity(IntEnum):
    """How much is shown; each level includes the ones below (CUG-136)."""

    QUIET = 0
    """Phases, outcomes and errors."""
    NORMAL = 1
    """Also tool calls, markers, commits, one line per setup or check command and per agent."""
    VERBOSE = 2
    """Also messages, thinking, tool results and command output."""


Label = Literal[
    "plain",
    "prose",
    "tool",
    "heading",
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
    """A piece of text with its meaning. A `bell` is a sound without text."""

    label: Label
    text: str


THEME: dict[Label, str] = {
    "plain": "",
    "prose": "\x1b[2m",
    "tool": "\x1b[2;36m",
    "heading": "\x1b[1m",
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
    return f"{opening}{text}{_RESET}" if opening else text


class Shown(NamedTuple):
    """The fragments of an event, and the lowest verbosity that shows them."""

    least: Verbosity
    fragments: list[Fragment]


def always(label: Label, text: str, *, above: bool = False) -> Shown:
    """Return a line that is always shown."""
    return Shown(Verbosity.QUIET, line_of(label, text, above=above))


def normal(label: Label, text: str, *, above: bool = False) -> Shown:
    """Return a line that `--quiet` hides."""
    return Shown(Verbosity.NORMAL, line_of(label, text, above=above))


def verbose(label: Label, text: str) -> Shown:
    """Return a line that only `--verbose` shows."""
    return Shown(Verbosity.VERBOSE, line_of(label, text))


def calling(text: str, label: Label = "watch") -> Shown:
    """Return a line that is always shown, with the bell: a person is needed."""
    return Shown(Verbosity.QUIET, [Fragment(label, text), Fragment("bell", "")])


def line_of(label: Label, text: str, *, above: bool = False) -> list[Fragment]:
    """Return the text as fragments, optionally below an empty line."""
    fragment = Fragment(label, text)
    return [Fragment("plain", "\n"), fragment] if above else [fragment]


def joined(lines: Iterable[Iterable[Fragment]]) -> list[Fragment]:
    """Join the lines with newlines."""
    fragments: list[Fragment] = []
    for number, line in enumerate(lines):
        fragments += [Fragment("plain", "\n"), *line] if number else line
    return fragments
