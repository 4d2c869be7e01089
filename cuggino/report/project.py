"""The report of a run in a project: its journal, and the diffs of its commits."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from reactivex import operators as ops

from cuggino.edges import run
from cuggino.errors import ProcessError
from cuggino.events import CommitPerformed
from cuggino.report.fold import build_report
from cuggino.report.model import DiffStats
from cuggino.report.numstat import NUMSTAT, parse_numstat
from cuggino.report.page import render_parts
from cuggino.report.times import zone_at
from cuggino.runs import Runs
from cuggino.sources import git_lines, looking_environment
from cuggino.storage.journal import JournalFile, scan_journal


@dataclass(frozen=True, slots=True)
class RunPage:
    """The report of one run."""

    run_id: str
    parts: tuple[bytes, ...]
    """The page in UTF-8; that of a long run is large, and best written part by part."""

    @property
    def html(self) -> str:
        """Return the whole page."""
        return b"".join(self.parts).decode()


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
        diffs=_diffs(folder, journal),
    )
    return RunPage(found.id, render_parts(report, zone=zone_at(report.start)))


def _diffs(folder: Path, journal: JournalFile) -> DiffStats:
    """Return the changed files of the run's commits; empty without git or a repository."""
    hashes = dict.fromkeys(
        entry.event.commit_hash
        for entry in journal.entries.only((CommitPerformed.__name__,))
        if isinstance(entry.event, CommitPerformed)
    )
    # Nothing but a hash is passed to git, whatever else the journal contains.
    asked = [name for name in hashes if re.fullmatch("[0-9a-f]{4,64}", name)]
    if not asked:
        return dict.fromkeys(hashes)

    env = looking_environment(folder)

    def git(*args: str, lines: list[str]) -> list[str]:
        stdin = "".join(f"{line}\n" for line in lines).encode()
        output = git_lines(*args, cwd=folder, stdin=stdin, env=env)
        printed = run(output.pipe(ops.to_list())) or []
        return [line.decode("utf-8", "replace") for line in printed]

    try:
        found = git("cat-file", "--batch-check", lines=[f"{name}^{{commit}}" for name in asked])
        known = {
            name: line.split()[0]
            for name, line in zip(asked, found, strict=True)
            if line.split()[1:2] == ["commit"]
        }
        quiet = ("-c", "core.quotePath=false")
        lines = list(known.values())
        changes = parse_numstat(git(*quiet, *NUMSTAT, lines=lines)) if known else {}
    except ProcessError:
        return {}
    return {name: changes.get(known[name], ()) if name in known else None for name in hashes}
