"""`cuggino top`: all runs of this machine on one screen."""

from __future__ import annotations

import os
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from cuggino.errors import ConfigError
from cuggino.runs import follow_statuses, project_status
from cuggino.storage import known_projects
from cuggino_cli.follow.output import color_option, plain_lines
from cuggino_cli.help.manual import manual
from cuggino_cli.screen import console
from cuggino_cli.screen.fragments import Fragment, joined
from cuggino_cli.screen.terminal import ColorMode, choose_color, choose_live
from cuggino_cli.top.application import TopScreen
from cuggino_cli.top.rows import advice, rows

_PIPE = 120
"""Columns of the rows where the output is not a terminal and COLUMNS is not set."""


@click.command(
    "top",
    epilog=manual(
        ("cuggino top", "All projects that have had a run on this machine."),
        ("cuggino top shop ~/code/blog", "These projects."),
        ("cuggino top --once | grep asks", "Print the rows once, for a script."),
        exits="0 left with q, 2 no terminal; --once: 0 running, 3 idle, 4 waiting for a person.",
        see=("status", "follow", "serve", "help control"),
    ),
)
@click.argument("folders", metavar="[FOLDER]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--once", is_flag=True, help="Print the rows once and exit.")
@color_option
def command(folders: tuple[Path, ...], once: bool, color: ColorMode) -> int:
    """Show all runs of this machine on one screen, and act on them.

    FOLDER is a project; the default is every project that has had a run on this machine or is on a
    live page. Each run, and each item of a watch with slots, has a row, and so has each question
    that waits for you. Keys look in, steer, answer, pause and stop. The screen follows the journals
    and slows no run; leaving it stops nothing. See `cuggino help control` for the keys.
    """
    for folder in folders:
        if not folder.is_dir():
            raise ConfigError(f"{folder} is not a folder", hint="name the folder of a project")

    def projects() -> list[Path]:
        return list(folders) or known_projects()

    if once:
        return _print_once(projects(), color)
    if not (console.on_terminal() and choose_live(sys.stdout, os.environ)):
        raise ConfigError(
            "`cuggino top` needs a terminal that can move its cursor",
            hint="`cuggino top --once` prints the rows and exits",
        )
    color_on = choose_color(color, sys.stdout, os.environ)
    return TopScreen(follow_statuses(projects), color=color_on).run()


def _print_once(projects: list[Path], color: ColorMode) -> int:
    """Print the rows; return the exit code."""
    now = datetime.now(UTC)
    statuses = [project_status(project, at=now) for project in projects]
    lines = plain_lines(color)
    if statuses:
        columns = shutil.get_terminal_size((_PIPE, 24)).columns
        lines.print(joined(rows(statuses, now, columns)))
    if hint := advice(statuses):
        lines.print([Fragment("prose", hint)])
    states = {status.state for status in statuses}
    return 0 if "running" in states else 4 if "waiting" in states else 3
