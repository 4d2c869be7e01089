"""`cuggino follow`: follows a run from another terminal."""

from __future__ import annotations

import click

from cuggino_cli.follow.journals import follow_journal
from cuggino_cli.follow.output import OutputOptions, output_options
from cuggino_cli.help.manual import Sectioned, manual
from cuggino_cli.options.completing import run_ids
from cuggino_cli.options.project import project_folder


@click.command(
    "follow",
    cls=Sectioned,
    epilog=manual(
        ("cuggino follow", "What runs here now, or ran last."),
        ("cuggino follow 0193b2c1 --verbose", "One run, by a prefix of its id, in detail."),
        ("cuggino follow --json | jq -r ._tag", "For another program."),
        exits="that of the run, when it ends; 1 if it was killed, 130 after Ctrl-C, 2 no such run.",
        see=("status", "runs", "help control"),
    ),
)
@click.argument("run_id", metavar="[ID]", required=False, shell_complete=run_ids)
@output_options
def command(run_id: str | None, output: OutputOptions) -> int:
    """Show a run from its beginning, then live, until it ends.

    ID is the id of a run, or a prefix of it; the default is the run or watch at work, or else the
    last one. If the run is killed, this waits until it is resumed. Of a watch, the runs of its
    items are shown too. Ctrl-C ends this and not the run.
    """
    return follow_journal(project_folder(), run_id, output)
