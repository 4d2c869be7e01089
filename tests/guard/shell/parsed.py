"""Helpers for tests of the parser."""

from __future__ import annotations

from typing import Any

from cuggino.guard.shell.parser import parse
from cuggino.guard.shell.shfmt import find_shfmt
from cuggino.guard.shell.tree import Command, Node, Refused, Script, Statement, Word

SHFMT = find_shfmt()


def script(text: str) -> Script:
    return parse(text, shfmt=SHFMT)


def statement(text: str) -> Statement:
    """Return the only statement of a text."""
    (only,) = script(text)
    return only


def node(text: str) -> Node:
    """Return the only node of a text."""
    only = statement(text).node
    assert only is not None
    return only


def command(text: str) -> Command:
    """Return the only command of a text."""
    only = node(text)
    assert isinstance(only, Command)
    return only


def words(text: str) -> tuple[Word, ...]:
    """Return the arguments of the only command of a text."""
    return command(text).words[1:]


def values(text: str) -> list[str | None]:
    """Return the values of the only command's arguments."""
    return [word.value for word in words(text)]


def refusal(text: str) -> str:
    """Return why a text is refused, or ""."""
    try:
        script(text)
    except Refused as refused:
        assert refused.__cause__ is None, repr(refused.__cause__)
        return refused.reason
    return ""


def commands(tree: Any) -> list[Command]:
    """Return all commands in a tree in order, outer ones first."""
    found = [tree] if isinstance(tree, Command) else []
    if isinstance(tree, tuple):
        for part in tree:
            found += commands(part)
    return found


def names(text: str) -> list[str | None]:
    """Return the first words of all commands in a text."""
    return [one.words[0].value for one in commands(script(text)) if one.words]
