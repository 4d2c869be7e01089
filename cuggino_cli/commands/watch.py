"""`cuggino watch`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cuggino_cli.follow import OutputOptions, follow, output_options
from cuggino_cli.policies import (
    AGENT_HELP,
    CODING_ROLES,
    policy_options,
    warn_if_loose,
    with_policies,
)
from cuggino_cli.recording_options import recording_options


@click.command("watch", epilog="Ctrl-C ends the agent and leaves; a second one leaves at once.")
@click.option("--slow", is_flag=True, help="Review after every task.")
@click.option("--agent", "-a", metavar="NAME", help=AGENT_HELP)
@policy_options
@recording_options
@output_options
def command(
    slow: bool, agent: str | None, output: OutputOptions, recording: dict[str, Any], **policies: Any
) -> int:
    """Work off the backlog, item by item, for as long as it runs.

    Items are files in .cuggino/backlog, taken in the order of their names; see `cuggino backlog`.
    With "audit" in .cuggino.json an agent looks for contradictions in idle time.
    """
    from cuggino import Runtime, load_config
    from cuggino.notify import rings

    folder = Path.cwd()
    config = with_policies(load_config(folder), policies)
    runtime = Runtime.live(cwd=folder, config=config, agent=agent, **recording)
    roles = (*CODING_ROLES, "audit") if config.audit else CODING_ROLES
    warn_if_loose(config, runtime.agent, roles=roles)
    return follow(runtime.watch(slow=slow), output, bell=rings(config), journaled=config.journal)
