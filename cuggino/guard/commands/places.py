"""Rules for `cd`, `pushd` and `popd`: the folders after them."""

from __future__ import annotations

import os

from cuggino.guard.commands.base import UNKNOWN, Site
from cuggino.guard.shell.tree import Word

MOVERS = frozenset(("cd", "pushd", "popd"))


def mover(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the words from `cd`, `pushd` or `popd` on, or none of another command."""
    while words and words[0].value in ("builtin", "command"):
        words = words[1:]
        while words and words[0].value in ("-p", "--"):
            words = words[1:]
    return words if words and words[0].value in MOVERS else ()


def moved(
    words: tuple[Word, ...], site: Site, visited: frozenset[str]
) -> tuple[frozenset[str], bool]:
    """Return the possible folders after it, and whether it certainly succeeds."""
    name = words[0].value
    unknown = frozenset({UNKNOWN})
    args = list(words[1:])
    while args and args[0].value in ("-L", "-e", "--", "-n", "-@"):
        if args.pop(0).value == "--":
            break
    if name == "popd":
        return visited | site.cwds, False
    if len(args) != 1:
        return unknown, False
    word = args[0]
    start = word.value if word.value is not None else word.prefix
    if word.value is None or word.has_glob or word.has_tilde or start.startswith(("-", "+")):
        return unknown, False
    if not word.value:
        return site.cwds, False
    is_known = os.path.isabs(word.value) or bool(site.known)  # noqa: PTH117
    cwds = site.paths.enter(word.value, site.known)
    if not is_known or not cwds:
        return unknown, False
    is_sure = (
        not site.trail.is_shaken
        and not site.trail.is_swapped
        and all(os.path.isdir(place) for place in cwds)  # noqa: PTH112
    )
    return cwds, is_sure
