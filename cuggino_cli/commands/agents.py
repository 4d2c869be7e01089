"""`cuggino agents`: the available agents and their capabilities."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cuggino_cli.follow.output import color_option, plain_lines, table_columns, write_json
from cuggino_cli.help.manual import manual

if TYPE_CHECKING:
    from cuggino_cli.screen.terminal import ColorMode


@click.command(
    "agents",
    epilog=manual(
        ("cuggino agents", "A table."),
        (
            "cuggino agents --json | jq -r 'select(.state == \"ready\") | .name'",
            "The names of the ready agents.",
        ),
        see=("doctor", "help config"),
    )
    + """\n\n\b
GUARD    calls: every tool call is checked before it runs; files: commands
         cannot write protected files; no: the agent is unguarded
COST     what a session reports about its cost
SANDBOX  whether commands can run in a sandbox of the system
DELTAS   whether text is shown while it is being written
*        an agent of this project""",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per line.")
@color_option
def command(as_json: bool, color: ColorMode) -> int:
    """List the installed agents and their capabilities.

    Agents come with cuggino and with other packages. The version of each is checked; for a missing
    one the install hint is shown.
    """
    from cuggino.doctor import inspect_agents
    from cuggino_cli.options.trusting import is_trusted

    reports = inspect_agents(Path.cwd(), trusted=is_trusted(Path.cwd()))
    if as_json:
        for report in reports:
            write_json(report.to_json())
        return 0
    from cuggino_cli.screen.agents import agents_fragments

    lines = plain_lines(color)
    lines.print(agents_fragments(reports, columns=table_columns(lines)))
    return 0
