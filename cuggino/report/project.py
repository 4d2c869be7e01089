"""The report of a run in a project: its journal, and the diffs of its commits."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from reactivex import operators as ops

from cuggino.edges import run
from cuggino.errors import ProcessError, StorageError
from cuggino.report.decisions import decisions_of
from cuggino.report.diffs import DIFF, DiffParser
from cuggino.report.fold import fold_entries
from cuggino.report.model import CommitDiff, Diffs, RunReport
from cuggino.report.night import NightReport, build_night
from cuggino.report.night_page import render_night
from cuggino.report.page import render_report
from cuggino.report.times import zone_at
from cuggino.report.transcript import MOST_KEPT
from cuggino.runs import RecordedRun, Runs
from cuggino.sources import git_lines, looking_environment
from cuggino.storage.journal import (
    digest_of,
    list_journals,
    origin_of,
    scan_journal,
)

_LEAST_KEPT: Final = 400_000
"""The characters that are kept of the transcripts of each of very many runs."""


@dataclass(frozen=True, slots=True)
class RunPage:
    """The report of one run."""

    run_id: str
    html: str
    """The whole page."""


def report_run(project: str | os.PathLike[str] = ".", run_id: str | None = None) -> RunPage:
    """Render the report of a run as one HTML page; see `load_report`.

    Raises:
        ConfigError: the extra `report` is not installed.
        CugginoError: as `load_report`.
    """
    report = load_report(project, run_id)
    if isinstance(report, NightReport):
        html = render_night(report, zone=zone_at(report.watch.start))
        return RunPage(report.watch.run_id, html)
    return RunPage(report.run_id, render_report(report, zone=zone_at(report.start)))


def load_report(
    project: str | os.PathLike[str] = ".", run_id: str | None = None
) -> RunReport | NightReport:
    """Read the report of a run: the latest, or the one whose id begins with `run_id`.

    A watch is reported with the runs of all its items. Without an id, a run of a watch stands for
    its watch.

    Raises:
        RunNotFound: no run matches, or several do.
        StorageError: its journal cannot be read.
    """
    folder = Path(project)
    runs = Runs(folder)
    path = runs.path_of(run_id)
    if run_id is None:
        path = _watch_of(path) or path
    found = runs.read(path)
    report = _report(folder, found)
    if report.kind != "watch":
        return report
    paths = _runs_of(report, path.parent)
    most = max(MOST_KEPT // max(len(paths), 1), _LEAST_KEPT)
    of_items = []
    for one in paths:
        with suppress(StorageError):  # the watch's own journal says what is known of it
            of_items.append(_report(folder, runs.read(one), most=most))
    of_items.sort(key=lambda one: one.start)
    return build_night(report, of_items, decisions_of(folder, report, of_items))


def _report(folder: Path, found: RecordedRun, *, most: int = MOST_KEPT) -> RunReport:
    journal = scan_journal(found.path)
    fold = fold_entries(journal.entries, folder=folder.resolve(), most=most)
    return fold.result(
        torn=journal.torn,
        running_at=datetime.now(UTC) if found.state == "running" else None,
        diffs=commit_diffs(folder, fold.commits),
    )


def _watch_of(path: Path) -> Path | None:
    """Return the journal of the watch that a run belongs to: the latest that began before it."""
    origin = origin_of(path)
    if origin is None or origin.item is None:
        return None
    before = (one for one in list_journals(path.parent) if one.name <= path.name)
    origins = ((one, origin_of(one)) for one in before)
    return next((one for one, known in origins if known and known.kind == "watch"), None)


def _runs_of(watch: RunReport, folder: Path) -> list[Path]:
    """Return the journals of the items that a watch worked on, while it did."""
    names = {item.name for item in watch.watched}
    found = []
    for path in list_journals(folder):
        origin = origin_of(path)
        if origin is None or origin.item is None:
            continue
        if origin.item.rpartition(" ")[0] not in names:
            continue
        with suppress(StorageError):
            known = digest_of(path)
            if known.last >= watch.start and known.began <= watch.end:
                found.append(path)
    return found


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
