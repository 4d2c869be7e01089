"""`cuggino skip`: parks the item that a watch works on."""

from __future__ import annotations

import click

from cuggino.events import SkipAsked, WatchItemParked
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
    """Park the item that the watch works on, at once.

    Its agent is terminated, its files stay as they are, and the watch takes the next item.
    `cuggino backlog retry` puts the item back.
    """
    sent = Sent(SkipAsked(item=item))
    if sent.is_taken():
        parked = sent.leads_to(WatchItemParked)
        name = one_line(parked.filename) if parked is not None else ""
        click.echo(f"{name} is parked." if name else "The item is being parked.")
    return 0
