"""`cuggino continue`: ends a pause."""

from __future__ import annotations

import click

from cuggino.events import ContinueAsked
from cuggino_cli.help.manual import manual
from cuggino_cli.options.commanding import Sent


@click.command(
    "continue",
    epilog=manual(
        ("cuggino continue", "Take back a pause."),
        exits="0 sent, 2 nothing is paused, or refused, 3 nothing runs here.",
        see=("pause", "run", "help control"),
    ),
)
def command() -> int:
    """Continue a paused run.

    A run that has ended is continued by `cuggino run --resume`.
    """
    if Sent(ContinueAsked()).is_taken():
        click.echo("The run continues.")
    return 0
