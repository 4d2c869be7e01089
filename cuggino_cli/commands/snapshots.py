"""`cuggino snapshots`: lists the states of the project that can be restored."""

from __future__ import annotations

import click

from cuggino import run
from cuggino.config import Config, load_config
from cuggino.errors import ConfigError
from cuggino.runs import short_ids
from cuggino.sandbox import views_of
from cuggino.stages import GitSnapshots, Snapshot
from cuggino.storage import Workspace
from cuggino_cli.follow.output import write_json
from cuggino_cli.help.manual import manual
from cuggino_cli.options.naming import one_line
from cuggino_cli.options.project import project_folder


@click.command(
    "snapshots",
    epilog=manual(
        ("cuggino snapshots", "List them, the oldest first."),
        ("cuggino snapshots --json | jq -r .ref", "References, for git."),
        exits="0 listed, 1 git failed.",
        see=("undo", "runs", "help safety"),
    ),
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
def command(as_json: bool) -> int:
    """List the states of the project that `cuggino undo` can restore.

    Before each agent the files of the project are kept as a commit of git, which no branch holds:
    all that are tracked or not ignored. Those of ended runs are removed after snapshotDays.
    """
    snapshots = run(snapshots_here().all()) or []
    names = short_ids(snapshot.run for snapshot in snapshots)
    for snapshot in snapshots:
        if as_json:
            write_json(_as_json(snapshot))
        else:
            click.echo(line_of(snapshot, names))
    if not snapshots and not as_json:
        click.echo("There are no snapshots.")
    return 0


def snapshots_here() -> GitSnapshots:
    """Return the snapshots of the project in the current folder."""
    folder = project_folder()
    try:
        config = load_config(folder)
    except ConfigError:  # which an agent may have broken
        config = Config()
    limit = round(config.snapshot_max_file * 1e6)
    return GitSnapshots(folder, Workspace(folder).snapshots, max_file=limit, views=views_of(config))


def line_of(snapshot: Snapshot, names: dict[str, str]) -> str:
    """Return the time and the name of a snapshot, and the omitted paths with reasons."""
    at = snapshot.at.astimezone()
    left_out = ", ".join(f"{path} ({why})" for path, why in snapshot.left_out.items())
    without = f"  without {left_out}" if left_out else ""
    return one_line(f"{at:%Y-%m-%d %H:%M:%S}  {names[snapshot.run]}/{snapshot.stage}{without}")


def _as_json(snapshot: Snapshot) -> dict[str, object]:
    return {
        "run_id": snapshot.run,
        "stage": snapshot.stage,
        "ref": snapshot.ref,
        "commit": snapshot.commit,
        "at": snapshot.at.isoformat(),
        "head": snapshot.head,
        "left_out": dict(snapshot.left_out),
    }
