"""`cuggino agents`: the agents that can be named, and what each can do."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cuggino_cli.manual import manual

if TYPE_CHECKING:
    from cuggino_cli.output.terminal import ColorMode


@click.command(
    "agents",
    epilog=manual(
        ("cuggino agents", "A table."),
        (
            "cuggino agents --json | jq -r 'select(.state == \"ready\") | .name'",
            "The names of those that could work.",
        ),
        see=("doctor", "help config"),
    )
    + """\n\n\b
GUARD    calls: each call of a tool is judged before it runs; files: commands
         cannot write what they may not; no: nothing holds the agent
COST     what is told of what a session took
SANDBOX  whether commands can run in a sandbox of the system
DELTAS   whether text is shown while it is being written
*        an agent of this project""",
)
@click.option("--json", "as_json", is_flag=True, help="Print an object a line, nothing else.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="When to use colours; NO_COLOR counts for auto.",
)
@click.option("--look", hidden=True, metavar="NAME")
@click.option("--path", hidden=True, metavar="FILE")
def command(as_json: bool, color: ColorMode, look: str | None, path: str | None) -> int:
    """List the agents that are installed, and what each can do.

    They are those of cuggino, and those of packages beside it. Each is asked for its version; one
    that is not installed says how to come by it.
    """
    from cuggino_cli.agent_look import answer_on_stdout, look_at_all

    if look is not None:
        return answer_on_stdout(look, folder=Path.cwd(), path=path)
    looks = look_at_all(Path.cwd())
    if as_json:
        for found in looks:
            click.echo(json.dumps(found.to_json()))
        return 0
    from cuggino_cli.follow import OutputOptions, stdout_terminal
    from cuggino_cli.output.agents import agents_fragments

    terminal = stdout_terminal(OutputOptions(verbose=False, quiet=False, json=False, color=color))
    columns = terminal.columns() if sys.stdout.isatty() else None
    terminal.print(agents_fragments(looks, columns=columns))
    return 0
