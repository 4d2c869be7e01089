"""Check for session files that no process is using."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from cuggino.doctor.result import CheckResult
from cuggino.errors import StorageError
from cuggino.runs import RecordedRun, Runs
from cuggino.storage import Workspace, has_ended

_ALL = "they are safe to delete"


def session_files(folder: Path) -> Iterator[CheckResult]:
    """Report the files of each unfinished run, which resuming it needs, and then the others.

    The others belong to runs that ended, or whose journal is gone, and can be deleted.
    """
    workspace = Workspace(folder)
    try:
        names = [path.name for path in workspace.wip.iterdir() if path.is_file()]
    except OSError:
        names = []
    if not names:
        yield CheckResult("ok", "session files: none left over")
        return
    running = _running(workspace)
    if running is not None:
        yield CheckResult("ok", f"session files: in use by process {running}")
        return
    journals = {
        session: journal
        for session in workspace.sessions()
        if not has_ended(journal := workspace.journal / f"{session}.jsonl")
    }
    if journals:
        yield from _unfinished(folder, journals)
    rest = [name for name in names if name.partition(".")[0] not in journals]
    if rest:
        ended = len({name.partition(".")[0] for name in rest})
        left = f"{_count(len(rest), 'file')} of {_count(ended, 'ended run')} left"
        # By name if there are other files, which must stay.
        which = f"safe to delete: {', '.join(sorted(rest))}" if journals else _ALL
        yield CheckResult("note", f"session files: {left} in {workspace.wip}", which)


def _unfinished(folder: Path, journals: dict[str, Path]) -> Iterator[CheckResult]:
    """Report how to resume each run."""
    try:
        runs = Runs(folder)
    except StorageError as error:
        yield CheckResult("note", f"session files: {error.message}", error.hint)
        return
    for journal in journals.values():
        try:
            yield _resuming(runs.read(journal))
        except StorageError as error:
            yield CheckResult("note", f"session files: {error.message}", error.hint)


def _resuming(run: RecordedRun) -> CheckResult:
    if run.started.item is not None:
        return CheckResult(
            "note",
            f"session files: of run {run.short_id}, which is unfinished",
            "`cuggino watch` resumes it when it takes the item again",
        )
    command = run.started.kind
    return CheckResult(
        "note",
        f"session files: of run {run.short_id}, which can be resumed",
        f"resume it: `cuggino {command} --resume {run.short_id}`",
    )


def _running(workspace: Workspace) -> int | None:
    """Return the process id of the lock's owner, if it is alive."""
    owner = workspace.owner()
    if owner is None or owner.pid is None:
        return None
    try:
        os.kill(owner.pid, 0)
    except PermissionError:
        return owner.pid
    except (OSError, OverflowError):
        return None
    return owner.pid


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
