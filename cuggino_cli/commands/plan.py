"""`cuggino plan`: talk with the project manager (CUG-092 to CUG-094)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cuggino_cli.manual import manual

if TYPE_CHECKING:
    from cuggino.config import Config
    from cuggino.storage import Workspace


@click.command(
    "plan",
    epilog=manual(
        ("cuggino plan", "Talk about what to build, in the folder of the project."),
        ("cuggino pm --agent claude", "The same, with a named agent."),
        exits="that of the agent's program; 2 if it cannot be started.",
        see=("backlog", "issues", "watch"),
    ),
)
@click.option(
    "--agent", "-a", metavar="NAME", help="An agent that can be talked to, such as claude."
)
def command(agent: str | None) -> int:
    """Talk with a project manager about specs and backlog (also: pm).

    It is an interactive session of the agent in this terminal, told to lead the project and to
    write no code. Bare `cuggino` starts it too, on a terminal in a project that is set up.
    """
    from cuggino.agents import InteractiveOptions, make_agent
    from cuggino.config import configured_policy, load_config
    from cuggino.storage import Workspace
    from cuggino_cli.handover import hand_over
    from cuggino_cli.main import complain

    folder = Path.cwd()
    config = load_config(folder)
    manager = make_agent(agent or config.agent, cwd=folder, path=config.agent_path)
    manager.check()
    workspace = Workspace(folder)
    options = InteractiveOptions(
        cwd=folder,
        system_prompt=system_prompt(folder, config, workspace),
        dangerously_skip_permissions=True,
        guard=configured_policy(config, "pm", project=folder),
    )
    workspace.open()
    code = hand_over(lambda: manager.interactive(options))
    if code < 0:
        complain(f"{manager.name} was ended by signal {-code}")
        return 128 - code
    if code:
        complain(f"{manager.name} exited with code {code}")
    return code


def system_prompt(folder: Path, config: Config, workspace: Workspace) -> str:
    """What the project manager is told, with paths relative to the project."""
    from cuggino.prompts import Prompts

    variables = {
        "specs_path": config.specs_path,
        "spec_issues_path": os.path.relpath(workspace.spec_issues, folder),
        "backlog_path": os.path.relpath(workspace.backlog, folder),
        "tbd_path": os.path.relpath(workspace.tbd, folder),
        "memory_path": os.path.relpath(workspace.memory, folder),
    }
    return Prompts(workspace.prompts).render("pm", variables)
