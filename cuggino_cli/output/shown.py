"""What an event shows, and from which verbosity on: the parts that formatters are made of."""

from __future__ import annotations

from typing import NamedTuple

from cuggino_cli.output.theme import Fragment, Label
from cuggino_cli.output.verbosity import Verbosity


class Shown(NamedTuple):
    """What an event shows, and the least verbosity that shows it."""

    least: Verbosity
    fragments: list[Fragment]


def always(label: Label, text: str, *, above: bool = False) -> Shown:
    """Shown whatever is asked for."""
    return Shown(Verbosity.QUIET, line_of(label, text, above=above))


def normal(label: Label, text: str, *, above: bool = False) -> Shown:
    """Shown unless `--quiet` is asked for."""
    return Shown(Verbosity.NORMAL, line_of(label, text, above=above))


def verbose(label: Label, text: str) -> Shown:
    """Shown when `--verbose` is asked for."""
    return Shown(Verbosity.VERBOSE, line_of(label, text))


def calling(text: str, label: Label = "watch") -> Shown:
    """A line that calls for a person."""
    return Shown(Verbosity.QUIET, [Fragment(label, text), Fragment("bell", "")])


def line_of(label: Label, text: str, *, above: bool = False) -> list[Fragment]:
    """The text, with an empty line above it when asked for."""
    fragment = Fragment(label, text)
    return [Fragment("plain", "\n"), fragment] if above else [fragment]
