"""Command lines of documents and help texts, read by the command's own parser; nothing is run."""

from __future__ import annotations

import re
import shlex

import click

from cuggino_cli.main import cli


def parse_line(line: str) -> list[str]:
    """The names of the commands of the line, such as `runs show`.

    Of a pipeline or a list the part that starts cuggino counts; what is redirected does not.

    Raises:
        click.UsageError: there is no such command, or it takes no such option.
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
