"""`cuggino steer`: sends a message to an agent of a run."""

from __future__ import annotations

import sys

import click

from cuggino.events import SteerAsked, Steered
from cuggino_cli.help.manual import manual
from cuggino_cli.options.commanding import Sent, item_option

_TOLD = {
    "session": "The running agent has your message.",
    "prompt": "The next agent gets your message.",
}
_LATER = (
    "Message received. The running agent gets it in a moment if it accepts messages while it "
    "works, otherwise the next agent does."
)


@click.command(
    "steer",
    epilog=manual(
        ('cuggino steer "Use the form in forms.py"', "Say it to the agent at work."),
        ("cat hint.md | cuggino steer -", "With the text of a file."),
        exits="0 sent, 2 no such item is at work, or refused, 3 nothing runs here.",
        see=("pause", "watch", "help control"),
    ),
)
@click.argument("text")
@item_option
def command(text: str, item: str | None) -> int:
    """Send a message to the agent of the run.

    The running agent is told where it takes messages (see `cuggino agents`), otherwise the next
    one, in its prompt. The journal has the text, so that a resumed run keeps it. TEXT `-` reads
    standard input.
    """
    if text == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    sent = Sent(SteerAsked(text=text.strip(), item=item))
    if sent.is_taken():
        told = sent.leads_to(Steered)
        click.echo(_LATER if told is None else _TOLD[told.to])
    return 0
