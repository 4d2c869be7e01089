"""`cuggino pause`: lets a run stand still after its stage."""

from __future__ import annotations

import click

from cuggino.events import PauseAsked, RunPaused
from cuggino_cli.help.manual import manual
from cuggino_cli.options.commanding import Sent, is_pending


@click.command(
    "pause",
    epilog=manual(
        ("cuggino pause", "The running agent ends its work first."),
        exits="0 sent, 2 refused, 3 nothing runs here.",
        see=("continue", "stop", "help control"),
    ),
)
def command() -> int:
    """Pause the run after its current stage.

    It waits for `cuggino continue`, also if it is killed and resumed in between.
    """
    if is_pending(PauseAsked()):
        click.echo("A pause was asked for already; `cuggino continue` ends it.")
        return 0
    sent = Sent(PauseAsked())
    if sent.is_taken():
        stands = sent.has_led_to(RunPaused)
        click.echo("The run is paused." if stands else "The run pauses after this stage.")
    return 0
