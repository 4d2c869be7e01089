"""`cuggino undo`: restores the files as they were before a run or a stage."""

from __future__ import annotations

import click

from cuggino import run
from cuggino.runs import short_ids
from cuggino.stages import Undone, UndoPlan, find_snapshot, undo_plan, undo_stage
from cuggino.storage import Workspace
from cuggino_cli.commands.snapshots import line_of, snapshots_here
from cuggino_cli.help.manual import manual
from cuggino_cli.options.completing import run_ids
from cuggino_cli.options.naming import one_line
from cuggino_cli.options.project import project_folder
from cuggino_cli.options.questions import typed, yes_or_no
from cuggino_cli.screen import console

_SHOWN = 200
"""Maximum number of files listed."""


@click.command(
    "undo",
    epilog=manual(
        ("cuggino undo", "Back to before the latest run."),
        ("cuggino undo implementing-2", "Back to before its second implementing agent."),
        ("cuggino undo 0193b2c1/coding-3 --yes", "Of another run, without a question."),
        ("cuggino undo undo", "Take the latest undo back."),
        exits="0 done, or nothing to do, 1 not all files could be restored, or not confirmed, "
        "2 no such snapshot, a run is at work, or wrong usage.",
        see=("snapshots", "runs", "help safety"),
    ),
)
@click.argument("name", metavar="[RUN|STAGE]", required=False, shell_complete=run_ids)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def command(name: str | None, yes: bool) -> int:
    """Restore the files as they were before a run or a stage.

    What would change is shown first. The present state is kept too, so that an undo can be undone.
    Files that git ignores and .cuggino/ stay as they are. So do branches and git's index: commits
    that agents made are still there.
    """
    snapshots = snapshots_here()
    listed = run(snapshots.all()) or []
    snapshot = find_snapshot(listed, name)
    workspace = Workspace(project_folder())
    with workspace.lock(command="cuggino undo"):
        plan = run(undo_plan(snapshots, snapshot))
        assert plan is not None
        _show(plan, line_of(snapshot, short_ids(one.run for one in listed)))
        if not plan.changes:
            return 0
        if not yes and not _confirmed(len(plan.changes)):
            click.echo("Nothing was changed.")
            return 1
        undone = run(undo_stage(snapshots, plan))
    assert undone is not None
    return _report(undone)


def _show(plan: UndoPlan, line: str) -> None:
    click.echo(f"Snapshot: {line}")
    if not plan.changes:
        click.echo("The files are as they were.")
    for change in plan.changes[:_SHOWN]:
        click.echo(f"  {_VERBS[change.kind]}  {one_line(change.path)}")
    if len(plan.changes) > _SHOWN:
        click.echo(f"  and {len(plan.changes) - _SHOWN:,} more files")
    for path, why in plan.kept:
        click.echo(f"  {'keep':<7}  {one_line(path)}: {why}")
    if plan.changes and plan.moved and plan.snapshot.head:
        click.echo(
            "Another commit is checked out since; branches stay where they are. "
            f"To move yours back, too: git reset {plan.snapshot.head[:12]}"
        )


_VERBS = {"create": "restore", "change": "change ", "remove": "remove "}


def _confirmed(count: int) -> bool:
    """Ask on the terminal.

    Raises:
        click.UsageError: there is none.
    """
    files = "this file" if count == 1 else f"these {count:,} files"
    if not console.on_terminal():
        raise click.UsageError("No terminal to ask on: pass --yes.")
    while True:
        try:
            return yes_or_no(typed(f"Change {files}? (y/n): "))
        except ValueError as error:
            click.echo(error)
        except (KeyboardInterrupt, EOFError):
            return False


def _report(undone: Undone) -> int:
    for path, why in undone.failed:
        click.echo(f"Not restored: {one_line(path)}: {why}", err=True)
    done = len(undone.plan.changes) - len(undone.failed)
    click.echo(f"Changed {done:,} {'file' if done == 1 else 'files'}.")
    if undone.before is not None:
        click.echo(f"To undo it: cuggino undo {undone.before.name}")
    return 1 if undone.failed else 0
