"""`cuggino issues`: spec issues and findings that need a decision."""

from __future__ import annotations

import sys
from datetime import datetime

import click

from cuggino.storage import Issue, Workspace
from cuggino_cli.help.manual import manual
from cuggino_cli.options import commanding
from cuggino_cli.options.completing import issue_names
from cuggino_cli.options.naming import find, one_line, show_file
from cuggino_cli.options.project import project_folder


@click.group(
    "issues",
    epilog=manual(
        ("cuggino issues list", "Open issues, with numbers."),
        ("cuggino issues show 1", "Read one."),
        ('cuggino issues answer 1 "Both ways"', "Write the answer to the specs, and continue."),
        ("cuggino issues resolve 1", "The specs are clear now: continue."),
        ('cuggino issues dismiss 2 --reason "meant so"', "Not an issue; do not report it again."),
        exits="0 done, 2 no such issue, or wrong usage.",
        see=("watch", "backlog"),
    ),
)
def command() -> None:
    """List and settle spec issues and audit findings.

    A NAME is a file name, a prefix of one, or its number in the list.
    """


@command.command("list", epilog=manual(("cuggino issues list", "Spec issues first.")))
def list_issues() -> int:
    """List spec issues, which block the watch, and findings to discuss."""
    issues = _workspace().issues()
    digits = len(str(len(issues)))
    for number, issue in enumerate(issues, start=1):
        kind, name = f"{issue.kind:<10}", one_line(issue.name)
        click.echo(f"{number:>{digits}}  {kind}  {name}  {one_line(issue.title)}")
    if not issues:
        click.echo("There are no open issues.")
    return 0


@command.command("show", epilog=manual(("cuggino issues show 1", "By its number in the list.")))
@click.argument("name", shell_complete=issue_names)
def show(name: str) -> int:
    """Print an issue."""
    show_file(_find(name, _workspace()).path, what="issue")
    return 0


@command.command(
    "answer",
    epilog=manual(
        ('cuggino issues answer 1 "Invoices in PDF; the dependency is fine"', "In one sentence."),
        ("cat answer.md | cuggino issues answer 1 -", "With the text of a file."),
    ),
)
@click.argument("name", shell_complete=issue_names)
@click.argument("text")
def answer(name: str, text: str) -> int:
    """Answer a question; the watch then goes on with its item.

    Question and answer are added to decisions.md in the specifications, which all agents build by,
    and the issue is moved to .cuggino/archive. The answer to an agent that waits for it goes to
    that agent alone. TEXT `-` reads standard input.
    """
    if text == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not text.strip():
        raise click.UsageError("The answer is empty.")
    issue = _find(name, _workspace())
    archived, decisions = commanding.answer(project_folder(), issue, text)
    _report("Answered", issue, archived)
    if issue.is_approval:
        click.echo("The run goes on")
    elif issue.is_awaited:
        click.echo("The agent that asked is resumed with the answer")
    else:
        click.echo(f"The answer is in {decisions}")
    return 0


@command.command(
    "resolve", epilog=manual(("cuggino issues resolve 1", "The watch then continues."))
)
@click.argument("name", shell_complete=issue_names)
def resolve(name: str) -> int:
    """Settle an issue once the specs are clear; it is moved to .cuggino/archive."""
    workspace = _workspace()
    issue = _find(name, workspace)
    _report("Resolved", issue, workspace.resolve(issue))
    return 0


@command.command(
    "dismiss",
    epilog=manual(
        ('cuggino issues dismiss 2 --reason "meant so"', "By its number in the list."),
    ),
)
@click.argument("name", shell_complete=issue_names)
@click.option("--reason", required=True, metavar="TEXT", help="Why it is not an issue.")
def dismiss(name: str, reason: str) -> int:
    """Dismiss an issue, and record the reason so that it is not reported again.

    The note is written to .cuggino/memory.md, which the audit agent reads.
    """
    if not reason.strip():
        raise click.UsageError("The reason is empty.")
    workspace = _workspace()
    issue = _find(name, workspace)
    _report("Dismissed", issue, workspace.dismiss(issue, reason, at=datetime.now().astimezone()))
    return 0


def _workspace() -> Workspace:
    return Workspace(project_folder())


def _find(wanted: str, workspace: Workspace) -> Issue:
    issues = {issue.name: issue for issue in workspace.issues()}
    numbers = {name: number for number, name in enumerate(issues, start=1)}
    return issues[find(wanted, list(issues), what="issue", number_of=numbers.get)]


def _report(deed: str, issue: Issue, archived: str) -> None:
    click.echo(f"{deed}: {one_line(issue.title)}")
    click.echo(f"Moved to .cuggino/archive/{one_line(archived)}")
