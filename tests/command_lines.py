"""Command lines in documents and help texts, parsed by the command itself but not run."""

from __future__ import annotations

import re
import shlex

import click

from cuggino_cli.main import cli


def parse_line(line: str) -> list[str]:
    """Return the names of the line's commands, such as `runs show`.

    Only the part of a pipeline or list that starts cuggino counts; redirections are ignored.

    Raises:
        click.UsageError: the command or one of its options does not exist.
    """
    words = shlex.split(re.sub(r"\s>{1,2}\s?\S+", "", line), comments=True)
    start = max(n for n, word in enumerate(words) if word in ("cuggino", "lopen"))
    words = words[start + 1 :]
    if (ends := [n for n, word in enumerate(words) if word in ("|", "&&", ";")]) != []:
        words = words[: ends[0]]
    names: list[str] = []
    with cli.make_context("cuggino", words) as context:
        _descend(context, names)
    return names


def _descend(context: click.Context, names: list[str]) -> None:
    group = context.command
    if not isinstance(group, click.Group) or not (words := context._protected_args + context.args):
        return
    name, command, rest = group.resolve_command(context, words)
    assert name is not None
    assert command is not None
    names.append(name)
    with command.make_context(name, rest, parent=context) as below:
        _descend(below, names)
