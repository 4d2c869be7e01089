"""Runs of earlier processes: which one to resume, and with which options."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from cuggino.errors import RunNotResumable
from cuggino.events import RunStarted
from cuggino.loops.frame.options import RunOptions
from cuggino.storage import (
    JournalFile,
    RunOrigin,
    Workspace,
    list_journals,
    origin_of,
    scan_journal,
)

Options = TypeVar("Options", bound=RunOptions)


def resumed_options(current: Options, started: RunStarted) -> Options:
    """Return the options of a resumed run: its own course with the current limits.

    Raises:
        RunNotResumable: the journal has options that this version does not understand.
    """
    kept = {name: started.options[name] for name in current.kept if name in started.options}
    kept |= {name: getattr(started, name) for name in current.kept_apart}
    try:
        return type(current).model_validate({**dict(current), **kept})
    except ValueError as error:
        raise RunNotResumable(
            f"the options of run {started.run_id} cannot be used by this version: {error}",
            hint="start the run anew",
        ) from error


def latest_run_of(workspace: Workspace, item: str, *, in_slot: bool = False) -> JournalFile | None:
    """Return the latest run of a backlog item; None if it worked elsewhere.

    That is in a slot, or in the project itself if `in_slot`.
    """
    latest = _latest(workspace, lambda origin: origin.item == item)
    if latest is None or (latest.started.options.get("slot") is not None) is not in_slot:
        return None
    return latest


def latest_watch(workspace: Workspace) -> JournalFile | None:
    """Return the latest watch; it is `unfinished` when its process was killed."""
    return _latest(workspace, lambda origin: origin.kind == "watch")


def _latest(workspace: Workspace, wanted: Callable[[RunOrigin], bool]) -> JournalFile | None:
    for path in list_journals(workspace.journal):
        origin = origin_of(path)
        if origin is not None and wanted(origin):
            return scan_journal(path)
    return None
