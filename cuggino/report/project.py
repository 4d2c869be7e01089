"""The report of a run in a project: its journal, and the diffs of its commits."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from reactivex import operators as ops

from cuggino.domain import item_name
from cuggino.edges import run
from cuggino.errors import ConfigError, ProcessError, StorageError
from cuggino.events import RunStarted, WatchPlaced, WatchProcessingItem, WatchSlotPrepared
from cuggino.git import Git, looking_environment, slot_home
from cuggino.report.decisions import decisions_of
from cuggino.report.diffs import DIFF, DiffParser
from cuggino.report.fold import fold_entries
from cuggino.report.model import CommitDiff, Diffs, RunReport
from cuggino.report.night import NightReport, build_night
from cuggino.report.night_page import render_night
from cuggino.report.page import render_report
from cuggino.report.times import zone_at
from cuggino.report.transcript import MOST_KEPT
from cuggino.runs import RecordedRun, Runs, digest_of
from cuggino.storage.journal import (
    iter_entries,
    list_journals,
    origin_of,
    scan_journal,
)

_DAY: Final = timedelta(days=1)
_LEAST_KEPT: Final = 400_000
"""The characters that are kept of the transcripts of each of very many runs."""


@dataclass(frozen=True, slots=True)
class RunPage:
    """The report of one run."""

    run_id: str
    html: str
    """The whole page."""
    name: str = ""
    """The name of a file for it: its day, `night` or `run`, and its short id."""


def report_run(project: str | os.PathLike[str] = ".", run_id: str | None = None) -> RunPage:
    """Render the report of a run as one HTML page; see `load_report`.

    Raises:
        CugginoError: as `load_report`.
    """
    report = load_report(project, run_id)
    run = report.watch if isinstance(report, NightReport) else report
    zone = zone_at(run.start)
    if isinstance(report, NightReport):
        kind, html = "night", render_night(report, zone=zone)
    else:
        kind, html = "run", render_report(report, zone=zone)
    short = Runs(project).short_id(Path(f"{run.run_id}.jsonl"))
    return RunPage(run.run_id, html, f"{run.start.astimezone(zone):%Y-%m-%d}-{kind}-{short}")


def load_report(
    project: str | os.PathLike[str] = ".", run_id: str | None = None
) -> RunReport | NightReport:
    """Read the report of a run: that of the night, or the one whose id begins with `run_id`.

    A watch is reported with the runs of all its items. Without an id it is the latest watch with
    several items, if it worked within a day before the latest run; else the latest run, or the
    watch that it belongs to.

    Raises:
        RunNotFound: no run matches, or several do.
        StorageError: its journal cannot be read.
    """
    folder = Path(project)
    runs = Runs(folder)
    path = runs.path_of(run_id)
    if run_id is None:
        path = _night_before(path) or _outermost(path)
    found = runs.read(path)
    report = _report(folder, found)
    if not found.started.has_runs:
        stored = {finding.text for finding in report.findings}
        open_ones = decisions_of(folder, report, [report])
        decisions = tuple(one for one in open_ones if Path(one.path).name in stored)
        return replace(report, decisions=decisions)
    paths = _runs_of(report, path.parent)
    most = max(MOST_KEPT // max(len(paths), 1), _LEAST_KEPT)
    of_items = []
    for one in paths:
        with suppress(StorageError):  # the watch's own journal has the facts that are known
            of_items.append(_report(folder, runs.read(one), most=most))
    of_items.sort(key=lambda one: one.start)
    return build_night(report, of_items, decisions_of(folder, report, of_items))


def slot_of(journal: Path) -> Path | None:
    """Return the folder of the slot where a run works; None in the project itself.

    That of an item is known only by the journal of its watch. A run with several hands has the
    first slot.
    """
    origin = origin_of(journal)
    slot = origin.slot if origin is not None else 0
    watch = watch_of(journal) if slot else None
    folder = None
    with suppress(StorageError, ConfigError):
        if watch is None:
            return _of_hands(scan_journal(journal).started, journal.parents[2])
        for entry in iter_entries(watch, only=("WatchSlotPrepared",)):
            event = entry.event
            if isinstance(event, WatchSlotPrepared) and event.slot == slot:
                folder = None if event.worker else Path(event.folder)
    return folder


def _of_hands(started: RunStarted, project: Path) -> Path | None:
    """Return the clone where a run with several hands is planned and reviewed."""
    hands, slots = started.options.get("hands"), started.options.get("slot_folder")
    if started.kind != "run" or not isinstance(hands, int) or hands <= 1:
        return None
    return slot_home(project, slots if isinstance(slots, str) else None) / "slot-1"


def worker_of(journal: Path) -> str:
    """Return the worker of a cluster that worked on a run last; "" on this machine.

    Only the journal of its watch knows it.
    """
    origin = origin_of(journal)
    watch = watch_of(journal) if origin is not None and origin.slot else None
    if origin is None or watch is None:
        return ""
    item, worker = item_name(origin.item), ""
    with suppress(StorageError):
        for entry in iter_entries(watch, only=("WatchPlaced",)):
            if isinstance(entry.event, WatchPlaced) and entry.event.filename == item:
                worker = entry.event.worker
    return worker


def _report(folder: Path, found: RecordedRun, *, most: int = MOST_KEPT) -> RunReport:
    journal = scan_journal(found.path)
    fold = fold_entries(journal.entries, folder=folder.resolve(), most=most)
    report = fold.result(
        torn=journal.torn,
        running_at=datetime.now(UTC) if found.state == "running" else None,
        diffs=commit_diffs(folder, fold.commits, slot=slot_of(found.path)),
    )
    again = found.resume_command or ("cuggino watch" if report.kind == "watch" else "")
    again = "" if report.state == "running" else again
    return replace(report, worker=worker_of(found.path), again=again)


def watch_of(path: Path) -> Path | None:
    """Return the journal of the watch that a run belongs to: the latest that began before it.

    For an attempt, the journal of the run with all attempts.
    """
    origin = origin_of(path)
    whole = None
    if origin is None or origin.item is None:
        return None
    with suppress(StorageError):
        whole = scan_journal(path).started.attempt_of
    if whole is not None:
        return found if (found := path.with_name(f"{whole}.jsonl")).exists() else None
    before = (one for one in list_journals(path.parent) if one.name <= path.name)
    origins = ((one, origin_of(one)) for one in before)
    return next((one for one, known in origins if known and known.kind == "watch"), None)


def _outermost(path: Path) -> Path:
    """Return the journal of the watch, or of the run with attempts, around a run, else its own."""
    while (around := watch_of(path)) is not None:
        path = around
    return path


def _night_before(latest: Path) -> Path | None:
    """Return the journal of the latest watch with several items, of the day before a run."""
    for path in list_journals(latest.parent):
        origin = origin_of(path)
        if origin is not None and origin.kind == "watch" and len(_items_of(path)) > 1:
            is_recent = digest_of(latest).began - digest_of(path).last < _DAY
            return path if is_recent else None
    return None


def _items_of(watch: Path) -> set[str]:
    """Return the items that a watch worked on; their runs may have begun in an earlier one."""
    entries = iter_entries(watch, only=("WatchProcessingItem",))
    with suppress(StorageError):
        events = [entry.event for entry in entries]
        return {event.filename for event in events if isinstance(event, WatchProcessingItem)}
    return set()


def _runs_of(watch: RunReport, folder: Path) -> list[Path]:
    """Return the journals of the items that a watch worked on, while it did."""
    names = {item.name for item in watch.watched}
    found = []
    for path in list_journals(folder):
        origin = origin_of(path)
        if origin is None or origin.item is None:
            continue
        if item_name(origin.item) not in names:
            continue
        with suppress(StorageError):
            known = digest_of(path)
            if known.last >= watch.start and known.began <= watch.end:
                found.append(path)
    return found


def commit_diffs(folder: Path, commits: Iterable[str], *, slot: Path | None = None) -> Diffs:
    """Return the changes of these commits; None for one that is gone, empty without git.

    Only hashes are passed to git, no other text of a journal. `slot` is the folder of a slot whose
    commits may not have reached the repository yet: its objects are read, but not its settings,
    which agents may have changed.
    """
    hashes = dict.fromkeys(commits)
    asked = [name for name in hashes if re.fullmatch("[0-9a-f]{4,64}", name)]
    if not asked:
        return dict.fromkeys(hashes)

    env = looking_environment(folder)
    if slot is not None and (objects := _objects_of(slot)) is not None:
        others = os.environ.get(_ALTERNATES)
        env[_ALTERNATES] = os.pathsep.join(filter(None, (_quoted(objects), others)))

    def git(*args: str, lines: Iterable[str], to: Callable[[str], None]) -> None:
        stdin = "".join(f"{line}\n" for line in lines).encode()
        output = Git(cwd=folder).lines(*args, stdin=stdin, env=env)

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
            git(*DIFF, lines=known.values(), to=parser.add)
    except (ProcessError, ValueError):
        return {}
    changes = parser.result()
    empty = CommitDiff(())
    return {name: changes.get(known[name], empty) if name in known else None for name in hashes}


_ALTERNATES: Final = "GIT_ALTERNATE_OBJECT_DIRECTORIES"


def _objects_of(slot: Path) -> Path | None:
    """Return the objects folder of a slot's clone."""
    for folder in (slot, *slot.parents):  # the project may be a folder of its repository
        if (objects := folder / ".git" / "objects").is_dir():
            return objects
        if folder.name.startswith("slot-"):
            break
    return None


def _quoted(path: Path) -> str:
    """Quote a path for a list that git reads."""
    text = os.fspath(path)
    if os.pathsep not in text and not text.startswith('"'):
        return text
    return '"' + text.replace("\\", r"\\").replace('"', r"\"") + '"'
