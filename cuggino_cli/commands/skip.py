"""`cuggino skip`: parks the item that a watch works on."""

from __future__ import annotations

import click

from cuggino.events import SkipAsked, TaskLeft, WatchItemParked
from cuggino_cli.help.manual import manual
from cuggino_cli.options.commanding import Sent, item_option
from cuggino_cli.options.naming import one_line


@click.command(
    "skip",
    epilog=manual(
        ("cuggino skip", "The item at work."),
        ("cuggino skip --item 002-login.md", "This one, at work or waiting to land."),
        exits="0 sent, 2 no such item is at work, or refused, 3 nothing runs here.",
        see=("backlog", "watch", "help control"),
    ),
)
@item_option
def command(item: str | None) -> int:
    """Park the item that the watch works on, or leave a task undone, at once.

    Its agent is terminated, its files stay as they are, and the watch takes the next item.
    `cuggino backlog retry` puts the item back. A run with several hands leaves the task undone, and
    those after it.
    """
    sent = Sent(SkipAsked(item=item))
    if sent.is_taken():
        ended = sent.leads_to(WatchItemParked, TaskLeft)
        match ended:
            case WatchItemParked(filename=name):
                click.echo(f"{one_line(name)} is parked.")
            case TaskLeft(filename=name):
                click.echo(f"{one_line(name)} is left undone.")
            case _:
                click.echo("The item is being parked.")
    return 0
