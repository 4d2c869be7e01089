"""`cuggino report`: a page about a run."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cuggino_cli.completing import run_ids
from cuggino_cli.manual import manual

if TYPE_CHECKING:
    from datetime import datetime

    from cuggino.report import DiffStats
    from cuggino.storage import Workspace
    from cuggino.storage.journal import JournalFile


@click.command(
    "report",
    epilog=manual(
        ("cuggino report", "The latest run, to cuggino-report-ID.html."),
        ("cuggino report 0193b2c1 -o login.html", "A run by the beginning of its id."),
        ("cuggino report -o - | gzip > report.html.gz", "To another program."),
        exits="0 written, 2 there is no such run, or it cannot be written there.",
        see=("runs",),
    ),
)
@click.argument("run_id", metavar="[ID]", required=False, shell_complete=run_ids)
@click.option(
    "--output",
    "-o",
    metavar="FILE.html",
    help="Where to write it; `-` for standard output. [default: cuggino-report-ID.html]",
)
def command(run_id: str | None, output: str | None) -> int:
    """Write a page about a run: stages, cost, commits, reviews and all events.

    ID is that of a run, or how it begins; the latest run without it. The run may still go on. The
    page is one file that needs no network (pip install 'cuggino[report]'). A file that is there is
    replaced only when it is a report.
    """
    from cuggino.report import build_report, render_report, zone_at
    from cuggino.storage import Workspace
    from cuggino.storage.journal import read_journal

    if output == "":
        raise click.UsageError("The name of the output file is empty.")
    folder = Path.cwd()
    workspace = Workspace(folder)
    path = _journal(run_id, workspace)
    journal = read_journal(path)
    report = build_report(
        journal.entries,
        torn=journal.torn,
        running_at=_running_at(journal, workspace),
        diffs=_diffs(folder, journal),
    )
    page = render_report(report, zone=zone_at(report.start))
    if output == "-":
        # Not through click: a page is UTF-8 whatever the terminal speaks.
        sys.stdout.flush()
        sys.stdout.buffer.write(page.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()
        return 0
    _write(Path(output or f"cuggino-report-{path.stem}.html"), page)
    return 0


def _journal(run_id: str | None, workspace: Workspace) -> Path:
    """The journal that is meant.

    Raises:
        ConfigError: there is none at all.
        click.UsageError: none is meant, or several are.
    """
    from cuggino.errors import ConfigError
    from cuggino.storage.journal import list_journals
    from cuggino_cli.naming import find

    journals = {path.stem: path for path in list_journals(workspace.journal)}
    if not journals:
        raise ConfigError(
            f"there is no journal of a run in {workspace.journal}",
            hint="`cuggino run` writes one, unless `journal` is false in the configuration",
        )
    if run_id is None:
        return next(iter(journals.values()))
    wanted = run_id.removesuffix(".jsonl")
    return journals[find(wanted, list(journals), what="run", number_of=lambda _: None)]


def _running_at(journal: JournalFile, workspace: Workspace) -> datetime | None:
    """The present time, when the process that holds the workspace is the run's last one."""
    from datetime import UTC, datetime

    from cuggino.events import RunContinued, RunStarted

    owner = workspace.owner()
    if journal.ended is not None or owner is None or owner.pid is None or owner.since is None:
        return None
    began = next(
        entry.at
        for entry in reversed(journal.entries)
        if isinstance(entry.event, RunStarted | RunContinued)
    )
    # The owner's time has whole seconds only.
    if began < owner.since or not _is_alive(owner.pid):
        return None
    return datetime.now(UTC)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _diffs(folder: Path, journal: JournalFile) -> DiffStats:
    """The changed files of the run's commits; nothing where git or the repository is missing."""
    from reactivex import operators as ops

    from cuggino import run
    from cuggino.errors import ProcessError
    from cuggino.events import CommitPerformed
    from cuggino.report import NUMSTAT, parse_numstat
    from cuggino.sources.git import git_lines

    hashes = dict.fromkeys(
        entry.event.commit_hash
        for entry in journal.entries
        if isinstance(entry.event, CommitPerformed)
    )
    # What is no hash is no name of a commit either, whatever git would take it for.
    asked = [name for name in hashes if re.fullmatch("[0-9a-f]{4,64}", name)]
    if not asked:
        return dict.fromkeys(hashes)

    def git(*args: str, lines: list[str]) -> list[str]:
        stdin = "".join(f"{line}\n" for line in lines).encode()
        output = git_lines(*args, cwd=folder, stdin=stdin, env={"GIT_NO_LAZY_FETCH": "1"})
        printed = run(output.pipe(ops.to_list())) or []
        return [line.decode("utf-8", "replace") for line in printed]

    try:
        found = git("cat-file", "--batch-check", lines=[f"{name}^{{commit}}" for name in asked])
        there = {
            name: line.split()[0]
            for name, line in zip(asked, found, strict=True)
            if line.split()[1:2] == ["commit"]
        }
        quiet = ("-c", "core.quotePath=false")
        changes = parse_numstat(git(*quiet, *NUMSTAT, lines=list(there.values()))) if there else {}
    except ProcessError:
        return {}
    return {name: changes.get(there[name], ()) if name in there else None for name in hashes}


def _write(path: Path, page: str) -> None:
    """Write the page in one piece; what is no report is not replaced.

    Raises:
        ConfigError: it cannot be written there.
    """
    from cuggino.errors import ConfigError
    from cuggino.storage.atomic import write_atomic
    from cuggino_cli.naming import one_line

    try:
        if path.is_file():
            if not _is_report(path):
                raise ConfigError(
                    f"{path} is there already, and is no report",
                    hint="name another file with --output",
                )
            write_atomic(path.resolve(), page)
        elif path.exists():
            with path.open("w", encoding="utf-8", errors="replace") as file:
                file.write(page)
        else:
            write_atomic(path.resolve(), page)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written: {error.strerror}", hint="name another file with --output"
        ) from error
    click.echo(f"Wrote {one_line(str(path))}")


def _is_report(path: Path) -> bool:
    from cuggino.report import GENERATOR

    with path.open("rb") as file:
        head = file.read(4096)
    return not head or f'content="{GENERATOR}"'.encode() in head
