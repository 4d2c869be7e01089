"""`cuggino stop`: ends a run so that it can be resumed."""

from __future__ import annotations

import click

from cuggino.events import RunEnded, StopAsked
from cuggino_cli.help.manual import manual
from cuggino_cli.options.commanding import Sent


@click.command(
    "stop",
    epilog=manual(
        ("cuggino stop", "The running agent ends its work first."),
        ("cuggino stop --now", "End it at once, as Ctrl-C does."),
        exits="0 sent, 2 refused, 3 nothing runs here.",
        see=("pause", "run", "help control"),
    ),
)
@click.option("--now", is_flag=True, help="Terminate the running agent, as Ctrl-C does.")
def command(now: bool) -> int:
    """End the run after its current stage; it can be resumed.

    Its exit code is 130. `cuggino status` shows the command that resumes it.
    """
    sent = Sent(StopAsked(now=now))
    if sent.is_taken():
        has_ended = sent.leads_to(RunEnded) if now else sent.has_led_to(RunEnded)
        if has_ended:
            click.echo("The run has ended.")
        else:
            click.echo("The run is ending." if now else "The run stops after this stage.")
    return 0
