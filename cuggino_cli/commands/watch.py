"""`cuggino watch`."""

from __future__ import annotations

from pathlib import Path

import click

from cuggino_cli.follow import OutputOptions, follow, output_options


@click.command("watch", epilog="Ctrl-C ends the agent and leaves; a second one leaves at once.")
@click.option("--slow", is_flag=True, help="Review after every task.")
@click.option("--agent", "-a", metavar="NAME", help="claude, or scripted:FILE.")
@output_options
def command(slow: bool, agent: str | None, output: OutputOptions) -> int:
    """Work off the backlog, item by item, for as long as it runs.

    Items are files in .cuggino/backlog, taken in the order of their names; see `cuggino backlog`.
    With "audit" in .cuggino.json an agent looks for contradictions in idle time.
    """
    from cuggino import Runtime
    from cuggino.notify import rings

    runtime = Runtime.live(cwd=Path.cwd(), agent=agent)
    return follow(runtime.watch(slow=slow), output, bell=rings(runtime.config))
