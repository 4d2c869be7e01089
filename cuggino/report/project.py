"""The report of a run in a project: its journal, and the diffs of its commits."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from reactivex import operators as ops

from cuggino.edges import run
from cuggino.errors import ProcessError
from cuggino.events import CommitPerformed, CommitSeen
from cuggino.report.diffs import DIFF, DiffParser
from cuggino.report.fold import build_report
from cuggino.report.model import CommitDiff, Diffs
from cuggino.report.page import render_report
from cuggino.report.times import zone_at
from cuggino.runs import Runs
from cuggino.sources import git_lines, looking_environment
from cuggino.storage.journal import JournalFile, scan_journal


@dataclass(frozen=True, slots=True)
class RunPage:
    """The report of one run."""

    run_id: str
    html: str
    """The whole page."""


def report_run(project: str | os.PathLike[str] = ".", run_id: str | None = None) -> RunPage:
    """Render the report of a run: the latest, or the one whose id begins with `run_id`.

    Raises:
        RunNotFound: no run matches, or several do.
        StorageError: its journal cannot be read.
        ConfigError: the extra `report` is not installed.
    """
    folder = Path(project)
    found = Runs(folder).find(run_id)
    journal = scan_journal(found.path)
    report = build_report(
        journal.entries,
        torn=journal.torn,
        running_at=datetime.now(UTC) if found.state == "running" else None,
        diffs=commit_diffs(folder, _commits(journal)),
    )
    return RunPage(found.id, render_report(report, zone=zone_at(report.start)))


def _commits(journal: JournalFile) -> list[str]:
    """Return the hashes of the commits that a journal names."""
    return [
        entry.event.commit_hash
        for entry in journal.entries.only(("CommitPerformed", "CommitSeen"))
        if isinstance(entry.event, CommitPerformed | CommitSeen)
    ]


def commit_diffs(folder: Path, commits: Iterable[str]) -> Diffs:
    """Return the changes of these commits; None for one that is gone, empty without git.

    Nothing but a hash is passed to git, whatever a journal contains.
    """
    hashes = dict.fromkeys(commits)
    asked = [name for name in hashes if re.fullmatch("[0-9a-f]{4,64}", name)]
    if not asked:
        return dict.fromkeys(hashes)

    env = looking_environment(folder)

    def git(*args: str, lines: Iterable[str], to: Callable[[str], None]) -> None:
        stdin = "".join(f"{line}\n" for line in lines).encode()
        output = git_lines(*args, cwd=folder, stdin=stdin, env=env)

        def take(line: bytes) -> None:
            to(line.decode("utf-8", "replace"))

        run(output.pipe(ops.do_action(take)))

    found: list[str] = []
    parser = DiffParser()
    try:
        git(
            *("cat-file", "--batch-check"),
            lines=[f"{name}^{{commit}}" for name in asked],
            to=found.append,
        )
        known = {
            name: line.split()[0]
            for name, line in zip(asked, found, strict=True)
            if line.split()[1:2] == ["commit"]
        }
        if known:
            quiet = ("-c", "core.quotePath=false")
            git(*quiet, *DIFF, lines=known.values(), to=parser.add)
    except (ProcessError, ValueError):
        return {}
    changes = parser.result()
    empty = CommitDiff(())
    return {name: changes.get(known[name], empty) if name in known else None for name in hashes}
