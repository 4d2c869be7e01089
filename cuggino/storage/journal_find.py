"""Finding the journal of a run by what is known of it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from cuggino.errors import RunNotResumable, StorageError
from cuggino.events import RunStarted
from cuggino.storage.journal_reader import JournalFile, iter_entries, list_journals, read_journal


def find_run(
    folder: Path, run_id: str | None, *, kind: Literal["run", "deliver", "loop"] = "run"
) -> JournalFile:
    """The unfinished run whose id begins so, of the journals in `folder`; without an id the latest.

    `kind` is the loop that goes on with it.

    Raises:
        RunNotResumable: there is none, there are several, it has ended, or it is not for a person
            to go on with.
    """
    found = [path for path in list_journals(folder) if path.stem.startswith(run_id or "")]
    if run_id is None:
        for path in found:
            started = started_of(path)
            if started is None or started.kind != kind or started.item is not None:
                continue
            journal = read_journal(path)
            if journal.resumable:
                return journal
        raise RunNotResumable(
            "there is no unfinished run to go on with", hint="see `cuggino runs` for all runs"
        )
    if not found:
        raise RunNotResumable(f"there is no run {run_id}", hint="see `cuggino runs` for all runs")
    if len(found) > 1:
        raise RunNotResumable(
            f"{len(found)} runs begin with {run_id}", hint="give more of the id: see `cuggino runs`"
        )
    journal = read_journal(found[0])
    if journal.started.kind == "watch":
        raise RunNotResumable(
            f"{found[0].stem} is a watch", hint="start `cuggino watch`: it goes on by itself"
        )
    if journal.started.kind != kind:
        command = f"cuggino {journal.started.kind}"
        raise RunNotResumable(
            f"{found[0].stem} is a run of `{command}`",
            hint=f"go on with it by `{command} --resume {found[0].stem[:13]}`",
        )
    if journal.started.item is not None:
        item = journal.started.item.rpartition(" ")[0]
        raise RunNotResumable(
            f"run {found[0].stem} is for the backlog item {item}",
            hint="`cuggino watch` goes on with it when it takes the item again",
        )
    if not journal.resumable:
        raise RunNotResumable(
            f"run {found[0].stem} has ended ({journal.state.replace('_', ' ')})",
            hint="start a new one with "
            + ("`cuggino run --focus ...`" if kind == "run" else f"`cuggino {kind}`"),
        )
    return journal


def started_of(path: Path) -> RunStarted | None:
    """How the run of this journal began; None when the file does not say."""
    try:
        first = next(iter_entries(path), None)
    except StorageError:  # a run that ended before it began, or a file of somebody else
        return None
    return first.event if first and isinstance(first.event, RunStarted) else None
