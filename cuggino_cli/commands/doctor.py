"""`cuggino doctor`: tells whether a run could work here, and what to do if not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cuggino_cli.completing import agent_names
from cuggino_cli.manual import manual

if TYPE_CHECKING:
    from cuggino_cli.finding import Finding, Status
    from cuggino_cli.output.theme import Fragment, Label

_LABELS: dict[Status, Label] = {"ok": "success", "note": "caution", "problem": "problem"}
_STATUS_COLUMNS = 9


@click.command(
    "doctor",
    epilog=manual(
        ("cuggino doctor", "Look at this folder and the configured agents."),
        ("cuggino doctor --agent codex", "Look whether another agent could work here."),
        exits="0 no problem, 1 at least one.",
        see=("setup", "agents"),
    ),
)
@click.option(
    "--agent",
    "-a",
    metavar="NAME",
    help="Look at this agent, not the configured one.",
    shell_complete=agent_names,
)
def command(agent: str | None) -> int:
    """Look whether a run could work here, and say what to do if not."""
    import os
    import sys

    from cuggino_cli.checks import diagnose
    from cuggino_cli.output.terminal import Terminal, choose_color, columns_of
    from cuggino_cli.output.theme import Fragment

    terminal = Terminal(
        sys.stdout,
        color=choose_color("auto", sys.stdout, os.environ),
        interactive=False,
        columns=columns_of(sys.stdout),
    )
    problems = 0
    for finding in diagnose(Path.cwd(), agent=agent, env=os.environ, uid=os.getuid()):
        terminal.print(finding_fragments(finding))
        problems += finding.status == "problem"
    ending = f"{problems} problem{'s' * (problems != 1)}" if problems else "No problems"
    terminal.print([Fragment("plain", f"\n{ending}.")])
    return 1 if problems else 0


def finding_fragments(finding: Finding) -> list[Fragment]:
    """A finding as a line, and its hint as an indented second one; pure."""
    from cuggino_cli.output.theme import Fragment

    indent = "\n" + " " * _STATUS_COLUMNS
    fragments = [
        Fragment(_LABELS[finding.status], f"{finding.status:<{_STATUS_COLUMNS}}"),
        Fragment("plain", finding.what.replace("\n", indent)),
    ]
    if finding.hint:
        fragments.append(Fragment("prose", indent + finding.hint.replace("\n", indent)))
    return fragments
