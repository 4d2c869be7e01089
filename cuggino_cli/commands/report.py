"""`cuggino report`: writes a page about a run."""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path

import click

from cuggino.errors import ConfigError
from cuggino.files import write_atomic
from cuggino.report import GENERATOR, load_report, report_json, report_run
from cuggino.runs import Runs
from cuggino.storage import Workspace
from cuggino_cli.help.manual import manual
from cuggino_cli.options.completing import run_ids
from cuggino_cli.options.naming import one_line
from cuggino_cli.options.project import project_folder


@click.command(
    "report",
    epilog=manual(
        ("cuggino report", "The night, or else the latest run, to a file in .cuggino/reports."),
        ("cuggino report 0193b2c1 -o login.html", "A run, by a prefix of its id."),
        ("cuggino report -o - | gzip > report.html.gz", "To another program."),
        ("cuggino report --json | jq .decisions", "The facts, for a script."),
        exits="0 written, 1 the journal is broken, 2 there is no such run, or it cannot be written "
        "there.",
        see=("runs",),
    ),
)
@click.argument("run_id", metavar="[ID]", required=False, shell_complete=run_ids)
@click.option(
    "--output",
    "-o",
    metavar="FILE.html",
    help="Where to write it; `-` for standard output. [default: in .cuggino/reports]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON; write no page.")
def command(run_id: str | None, output: str | None, as_json: bool) -> int:
    """Write a page about a run or a night.

    The page answers in this order: what is done, with its commits and the check that proves it;
    what waits for you, each with the command to type; what was given up, and why; the cost beside
    the forecast; what was unusual. Below are the details of a run (plan, transcripts, diffs,
    checks, reviews), or of each run of a watch. ID is the id of a run, or a prefix of it; the
    default is the latest watch with several items, if it worked within the last day, else the
    latest run or watch, which may still be running. The page is one file without scripts and needs
    no network. Only you can read it, as it shows what agents wrote. An existing file is replaced
    only if it is a report.
    """
    if output == "":
        raise click.UsageError("The name of the output file is empty.")
    if as_json:
        if output is not None:
            raise click.UsageError("--json prints to standard output; leave out --output.")
        click.echo(json.dumps(report_json(load_report(project_folder(), run_id)), indent=2))
        return 0
    folder = project_folder()
    page = report_run(folder, run_id)
    if output == "-":
        # Not through click: the page is UTF-8 whatever the terminal's encoding is.
        sys.stdout.flush()
        sys.stdout.buffer.write(page.html.encode())
        sys.stdout.buffer.flush()
        return 0
    if output is not None:
        _write(Path(output), page.html)
        return 0
    reports = Workspace(folder).folder / "reports"
    _write(reports / f"{page.name}.html", page.html, make_folder=True)
    if run_id is None:
        latest = Runs(folder).find()
        if latest.id != page.run_id and latest.started.item is None:
            click.echo(f"A later run is not on it: cuggino report {latest.short_id}")
    return 0


def _write(path: Path, page: str, *, make_folder: bool = False) -> None:
    """Write the page atomically, for its user alone; replace an existing file only if a report.

    Raises:
        ConfigError: it cannot be written there.
    """
    try:
        if path.is_file():
            if not _is_report(path):
                raise ConfigError(
                    f"{path} exists and is not a report",
                    hint="name another file with --output",
                )
            write_atomic(path, page, follow_links=True, private=True)
        elif path.exists():
            with path.open("wb") as file:
                file.write(page.encode())
        else:
            if make_folder:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomic(path.parent / ".gitignore", "*\n")
            if not path.parent.is_dir():
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            write_atomic(path, page, follow_links=True, private=True)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written: {error.strerror}", hint="name another file with --output"
        ) from error
    shown = os.path.relpath(path) if make_folder else str(path)
    click.echo(f"Wrote {one_line(shown)}")


def _is_report(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(4096)
    return not head or f'content="{GENERATOR}"'.encode() in head
