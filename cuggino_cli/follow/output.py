"""The output options of a command: how much of a stream is printed, and how."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import click

from cuggino.events import Event, MessageDelta, dump_event
from cuggino_cli.screen.fragments import Verbosity
from cuggino_cli.screen.terminal import ColorMode, Lines, standard_lines

Command: TypeAlias = Callable[..., int]

color_option = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="When to use colors; auto honors NO_COLOR.",
)


class OutputOptions(NamedTuple):
    """The output options of one command."""

    verbose: bool
    quiet: bool
    json: bool
    color: ColorMode

    @property
    def verbosity(self) -> Verbosity:
        if self.quiet:
            return Verbosity.QUIET
        return Verbosity.VERBOSE if self.verbose else Verbosity.NORMAL

    def write_json(self, event: Event) -> None:
        """Print the event as a line of JSON; a delta only with `--verbose`."""
        if self.verbose or not isinstance(event, MessageDelta):
            sys.stdout.write(dump_event(event) + "\n")
            sys.stdout.flush()


def output_options(command: Command) -> Command:
    """Add `--verbose`, `--quiet`, `--json` and `--color`, given as one `output` argument."""

    @functools.wraps(command)
    def collected(**kwargs: Any) -> int:
        names = ("verbose", "quiet", "json", "color")
        output = OutputOptions(**{name: kwargs.pop(name) for name in names})
        if output.verbose and output.quiet:
            raise click.UsageError("--verbose and --quiet exclude each other.")
        return command(output=output, **kwargs)

    decorated: Command = collected
    for option in (
        click.option(
            "--verbose",
            is_flag=True,
            help="Show agent texts as they come, thinking, and tool results too.",
        ),
        click.option("--quiet", is_flag=True, help="Show phases and endings only."),
        click.option(
            "--json",
            is_flag=True,
            help="Print one event per line, nothing else; deltas only with --verbose.",
        ),
        color_option,
    ):
        decorated = option(decorated)
    return decorated


def plain_lines(color: ColorMode = "auto") -> Lines:
    """Return the lines on standard output; complaints go to standard error."""
    return standard_lines(color)


def table_columns(lines: Lines) -> int | None:
    """Return the maximum width of a table; None if the output is not a terminal."""
    return lines.columns() if lines.is_terminal else None


def write_json(value: dict[str, Any]) -> None:
    """Print the object as a line of JSON."""
    click.echo(json.dumps(value))
