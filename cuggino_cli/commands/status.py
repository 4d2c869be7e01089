"""`cuggino status`: what runs here, and what waits for a person."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from cuggino.runs import project_status, status_json
from cuggino.storage import served_page
from cuggino_cli.follow.output import color_option, plain_lines, table_columns, write_json
from cuggino_cli.help.manual import manual
from cuggino_cli.options.project import project_folder
from cuggino_cli.screen.overview import status_fragments
from cuggino_cli.screen.terminal import ColorMode

_CODES = {"running": 0, "idle": 3, "waiting": 4}


@click.command(
    "status",
    epilog=manual(
        ("cuggino status", "This project."),
        ("cuggino status ../shop", "Another one."),
        ("cuggino status --json | jq -r .run.cost_usd", "For another program."),
        exits="0 running, 3 idle, 4 waiting for a person, 2 wrong usage.",
        see=("follow", "runs", "help control"),
    ),
)
@click.argument(
    "folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, nothing else.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing; the exit code says it.")
@color_option
def command(folder: Path | None, as_json: bool, quiet: bool, color: ColorMode) -> int:
    """Show what runs in a project, and what waits for you.

    FOLDER is the project; the default is that of the current folder. The status is read from the
    journals, so that no run is slowed. A working run counts as running even if something waits for
    you; while everything stands still until you act, the exit code is 4.
    """
    status = project_status(folder or project_folder(), at=datetime.now(UTC))
    page = served_page(status.folder)
    if as_json:
        write_json({**status_json(status), "page": page})
    elif not quiet:
        lines = plain_lines(color)
        lines.print(status_fragments(status, columns=table_columns(lines), page=page))
    return _CODES[status.state]
