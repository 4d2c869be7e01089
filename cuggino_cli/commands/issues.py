"""`cuggino issues`: what waits for a person's decision."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cuggino_cli.completing import issue_names
from cuggino_cli.manual import manual

if TYPE_CHECKING:
    from cuggino.storage import Issue, Workspace


@click.group(
    "issues",
    epilog=manual(
        ("cuggino issues list", "What waits, with numbers."),
        ("cuggino issues show 1", "Read one."),
        ("cuggino issues resolve 1", "The specs are clear now: go on."),
        ('cuggino issues dismiss 2 --reason "meant so"', "It is none, and is not to come back."),
        exits="0 done, 2 no such issue, or wrong usage.",
        see=("watch", "backlog"),
    ),
)
def command() -> None:
    """Look at and settle spec issues and findings of the audit.

    A NAME is a file name, its beginning, or its number in the list.
    """


@command.command("list", epilog=manual(("cuggino issues list", "Spec issues first.")))
def list_issues() -> int:
    """List spec issues, which hold the watch up, and findings to be discussed."""
    from cuggino_cli.naming import one_line

    issues = _workspace().issues()
    digits = len(str(len(issues)))
    for number, issue in enumerate(issues, start=1):
        kind, name = f"{issue.kind:<10}", one_line(issue.name)
        click.echo(f"{number:>{digits}}  {kind}  {name}  {one_line(issue.title)}")
    if not issues:
        click.echo("Nothing waits for a decision.")
    return 0


@command.command("show", epilog=manual(("cuggino issues show 1", "By its number in the list.")))
@click.argument("name", shell_complete=issue_names)
def show(name: str) -> int:
    """Print an issue."""
    from cuggino.errors import StorageError
    from cuggino_cli.output.sanitize import inert

    path = _find(name, _workspace()).path
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise StorageError("show issue", f"{path} cannot be read: {error.strerror}") from error
    click.echo(inert(text), nl=not text.endswith("\n"))
    return 0


@command.command("resolve", epilog=manual(("cuggino issues resolve 1", "A watch goes on then.")))
@click.argument("name", shell_complete=issue_names)
def resolve(name: str) -> int:
    """Settle an issue, once the specs say what was decided; it goes to .cuggino/archive."""
    workspace = _workspace()
    issue = _find(name, workspace)
    _tell("Resolved", issue, workspace.resolve(issue))
    return 0


@command.command(
    "dismiss",
    epilog=manual(
        ('cuggino issues dismiss 2 --reason "meant so"', "By its number in the list."),
    ),
)
@click.argument("name", shell_complete=issue_names)
@click.option("--reason", required=True, metavar="TEXT", help="Why it is none.")
def dismiss(name: str, reason: str) -> int:
    """Settle an issue that is none, and note the reason so that it is not raised again.

    The note is written to .cuggino/memory.md, which the audit agent reads.
    """
    from datetime import datetime

    if not reason.strip():
        raise click.UsageError("The reason is empty.")
    workspace = _workspace()
    issue = _find(name, workspace)
    _tell("Dismissed", issue, workspace.dismiss(issue, reason, at=datetime.now().astimezone()))
    return 0


def _workspace() -> Workspace:
    from cuggino.storage import Workspace

    return Workspace(Path.cwd())


def _find(wanted: str, workspace: Workspace) -> Issue:
    from cuggino_cli.naming import find

    issues = {issue.name: issue for issue in workspace.issues()}
    numbers = {name: number for number, name in enumerate(issues, start=1)}
    return issues[find(wanted, list(issues), what="issue", number_of=numbers.get)]


def _tell(deed: str, issue: Issue, archived: str) -> None:
    from cuggino_cli.naming import one_line

    click.echo(f"{deed}: {one_line(issue.title)}")
    click.echo(f"Moved to .cuggino/archive/{one_line(archived)}")
