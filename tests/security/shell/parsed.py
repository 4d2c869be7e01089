"""Helpers for tests of the parser."""

from __future__ import annotations

from typing import Any

from cuggino.security.shell.parser import parse
from cuggino.security.shell.shfmt import find_shfmt
from cuggino.security.shell.tree import Command, Node, Refused, Script, Statement, Word

SHFMT = find_shfmt()


def script(text: str) -> Script:
    return parse(text, shfmt=SHFMT)


def statement(text: str) -> Statement:
    """The only statement of a text."""
    (only,) = script(text)
    return only


def node(text: str) -> Node:
    """The only node of a text."""
    only = statement(text).node
    assert only is not None
    return only


def command(text: str) -> Command:
    """The only command of a text."""
    only = node(text)
    assert isinstance(only, Command)
    return only


def words(text: str) -> tuple[Word, ...]:
    """The words behind the name of the only command of a text."""
    return command(text).words[1:]


def values(text: str) -> list[str | None]:
    """What the only command of a text gets."""
    return [word.value for word in words(text)]


def refusal(text: str) -> str:
    """Why a text is refused; nothing when it is not."""
    try:
        script(text)
    except Refused as refused:
        assert refused.__cause__ is None, repr(refused.__cause__)
        return refused.reason
    return ""


def commands(tree: Any) -> list[Command]:
    """All commands in a tree, outer ones first, in their order."""
    found = [tree] if isinstance(tree, Command) else []
    if isinstance(tree, tuple):
        for part in tree:
            found += commands(part)
    return found


def names(text: str) -> list[str | None]:
    """The first words of all commands in a text."""
    return [one.words[0].value for one in commands(script(text)) if one.words]
