"""Names of workspace files on the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from cuggino.errors import StorageError
from cuggino_cli.screen.text import inert

_SHOWN = 5


def one_line(text: str) -> str:
    """Return text without control characters and line breaks, for the middle of a line."""
    return inert(text).replace("\n", "\N{SYMBOL FOR NEWLINE}")


def find(
    wanted: str, names: Sequence[str], *, what: str, number_of: Callable[[str], int | None]
) -> str:
    """Return the one name that matches: exactly, as a path, by its number, or by its prefix.

    Raises:
        click.UsageError: no name matches, or several do.
    """
    given = Path(wanted).name
    if given in names:
        return given
    found = [name for name in names if given.isdecimal() and number_of(name) == int(given)]
    found = found or [name for name in names if given and name.startswith(given)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise click.UsageError(f"There is no {what} {one_line(wanted)!r}.")
    shown = ", ".join(one_line(name) for name in found[:_SHOWN])
    more = ", ..." if len(found) > _SHOWN else ""
    raise click.UsageError(f"{one_line(wanted)!r} may be any of {shown}{more}.")


def show_file(path: Path, *, what: str) -> None:
    """Print the text of a file, without control characters.

    Raises:
        StorageError: it cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise StorageError(f"show {what}", f"{path} cannot be read: {error.strerror}") from error
    click.echo(inert(text), nl=not text.endswith("\n"))
