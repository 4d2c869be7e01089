"""Standard streams outside of a run: complaints, and whether a user can be asked."""

from __future__ import annotations

import sys

import click

from cuggino_cli.screen.standard_output import discard_output
from cuggino_cli.screen.text import inert

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


def complain(message: str, hint: str | None = None) -> None:
    """Print an error on standard error: one sentence, and what to do about it."""
    try:
        click.echo(f"cuggino: {inert(message)}", err=True)
        if hint:
            click.echo(f"  {inert(hint)}", err=True)
    except OSError:  # nobody can read it, and the exit code says enough
        discard_output(sys.stderr)


def on_terminal() -> bool:
    """Return whether standard input and output are both a terminal."""
    return all(
        stream is not None and not stream.closed and stream.isatty()
        for stream in (sys.stdin, sys.stdout)
    )
