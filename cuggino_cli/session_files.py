"""The session files that no process works on: of runs that can be resumed, and left-overs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from cuggino.errors import StorageError
from cuggino.storage import Workspace, has_ended
from cuggino_cli.finding import Finding
from cuggino_cli.recorded import RecordedRun, Runs

_ALL = "they are safe to delete"


def session_files(folder: Path) -> Iterator[Finding]:
    """Whose files are in the wip folder: a finding for each run that is not over, one for the rest.

    The rest are files of runs that ended for good, or whose journal is gone: they can be deleted,
    while the others are needed to go on with the run.
    """
    workspace = Workspace(folder)
    try:
        names = [path.name for path in workspace.wip.iterdir() if path.is_file()]
    except OSError:
        names = []
    if not names:
        yield Finding("ok", "session files: none left over")
        return
    running = _running(workspace)
    if running is not None:
        yield Finding("ok", f"session files: in use by process {running}")
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
        # By name when there are others beside them, which must stay.
        which = f"safe to delete: {', '.join(sorted(rest))}" if journals else _ALL
        yield Finding("note", f"session files: {left} in {workspace.wip}", which)


def _unfinished(folder: Path, journals: dict[str, Path]) -> Iterator[Finding]:
    """How each of these runs is gone on with."""
    try:
        runs = Runs(folder)
    except StorageError as error:
        yield Finding("note", f"session files: {error.message}", error.hint)
        return
    short = runs.short_ids()
    for session, journal in journals.items():
        try:
            yield _going_on(runs.read(journal), short.get(session, session))
        except StorageError as error:
            yield Finding("note", f"session files: {error.message}", error.hint)


def _going_on(run: RecordedRun, short: str) -> Finding:
    if run.journal.started.item is not None:
        return Finding(
            "note",
            f"session files: of run {short}, which is unfinished",
            "`cuggino watch` goes on with it when it takes the item again",
        )
    command = run.journal.started.kind
    return Finding(
        "note",
        f"session files: of run {short}, which can be resumed",
        f"go on with it: `cuggino {command} --resume {short}`",
    )


def _running(workspace: Workspace) -> int | None:
    """The process that works in the folder, by the word of the lock's owner file."""
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
