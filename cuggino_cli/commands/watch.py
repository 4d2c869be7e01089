"""`cuggino watch`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cuggino_cli.completing import agent_names
from cuggino_cli.follow import OutputOptions, follow, output_options
from cuggino_cli.manual import Sectioned, manual
from cuggino_cli.policies import (
    AGENT_HELP,
    CODING_ROLES,
    policy_options,
    warn_if_loose,
    with_policies,
)
from cuggino_cli.recording_options import recording_options


@click.command(
    "watch",
    cls=Sectioned,
    epilog=manual(
        (
            'cuggino backlog add "Login page" --text "as in .specs/login.md"',
            "Something to work on.",
        ),
        ("cuggino watch", "Work it off, and wait for more."),
        (
            "cuggino watch --wait-for-quota --budget 50",
            "Overnight: wait for usage limits, spend at most 50 dollars.",
        ),
        ("cuggino watch --json >> watch.jsonl", "Keep what is said, for another program."),
        exits="130 ended by Ctrl-C, 143 by SIGTERM, 13 budget, 1 failed, 2 wrong "
        "usage. A watch does not end by itself.",
        see=("backlog", "issues", "runs"),
    ),
)
@click.option("--slow", is_flag=True, help="Review after every task.")
@click.option("--agent", "-a", metavar="NAME", help=AGENT_HELP, shell_complete=agent_names)
@policy_options
@recording_options
@output_options
def command(
    slow: bool, agent: str | None, output: OutputOptions, recording: dict[str, Any], **policies: Any
) -> int:
    """Work off the backlog, item by item, for as long as it runs.

    Items are files in .cuggino/backlog, taken in the order of their names; see `cuggino backlog`.
    With "audit" in .cuggino.json an agent looks for contradictions in idle time. Ctrl-C ends the
    agent and leaves; a second one leaves at once.
    """
    from cuggino import Runtime, load_config
    from cuggino.notify import rings

    folder = Path.cwd()
    config = with_policies(load_config(folder), policies)
    runtime = Runtime.live(cwd=folder, config=config, agent=agent, **recording)
    roles = (*CODING_ROLES, "audit") if config.audit else CODING_ROLES
    warn_if_loose(config, runtime.agent, roles=roles)
    return follow(runtime.watch(slow=slow), output, bell=rings(config), journaled=config.journal)
