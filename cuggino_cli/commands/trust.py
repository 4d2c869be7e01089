"""`cuggino trust`: accepts the commands of a project."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from cuggino.errors import ConfigError
from cuggino.trust import check_acceptable, project_commands
from cuggino_cli.help.manual import manual
from cuggino_cli.options.naming import one_line
from cuggino_cli.options.project import project_folder
from cuggino_cli.options.trusting import show_commands, trust_store
from cuggino_cli.screen import console


@click.command(
    "trust",
    epilog=manual(
        ("cuggino trust", "Show what this project starts, and accept it after a question."),
        ("cuggino trust --yes", "Accept it without a question, for example in a container."),
        ("cuggino trust --list", "All folders with accepted commands."),
        ("cuggino trust --revoke ../project", "Forget what was accepted for a folder."),
        exits="0 done, 1 not accepted, 2 wrong usage.",
        see=("run", "doctor", "help safety"),
    ),
)
@click.argument("folder", metavar="[FOLDER]", required=False)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--list", "listing", is_flag=True, help="List the folders with accepted commands.")
@click.option("--revoke", is_flag=True, help="Forget the commands of the folder.")
def command(folder: str | None, yes: bool, listing: bool, revoke: bool) -> int:
    """Accept what a project starts or allows.

    These are the commands, agents, hooks, MCP servers, notifications, grants and prompts in its
    files, and the programs of its repository. Runs ask about those that are new; see `cuggino help
    safety`.
    """
    if yes + listing + revoke > 1 or (listing and folder is not None):
        raise click.UsageError("Give one of --yes, --list and --revoke, and no folder to --list.")
    store = trust_store()
    if store is None:
        raise ConfigError("you have no home folder to remember it in", hint="set HOME")
    project = Path(folder).resolve() if folder else project_folder()
    if listing:
        for trusted in store.projects():
            where, when = one_line(str(trusted.project)), trusted.since[:10]
            click.echo(f"{when}  {len(trusted.places)} accepted  {where}")
        return 0
    if revoke:
        done = store.revoke(project)
        click.echo("Forgotten." if done else "Nothing was accepted for this folder.")
        return 0
    if not project.is_dir():
        raise click.UsageError(f"There is no folder {one_line(str(folder))!r}.")
    commands = project_commands(project)
    unseen = store.unseen(project)
    if not unseen:
        accepted = f"All {len(commands)} are accepted." if commands else "It starts nothing."
        show_commands(commands)
        click.echo(accepted)
        return 0
    check_acceptable()
    show_commands(unseen)
    if not yes:
        if not console.on_terminal():
            raise click.UsageError("There is no terminal to ask on; pass --yes.")
        if not click.confirm("\nAccept these for this folder?", err=True):
            return 1
    store.accept(project, unseen, at=datetime.now(UTC))
    click.echo("Accepted.")
    return 0
