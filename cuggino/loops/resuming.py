"""Going on with a run of an earlier process: which one, and with which options."""

from __future__ import annotations

from cuggino.errors import RunNotResumable
from cuggino.events import RunStarted
from cuggino.loops.options import LoopRunOptions
from cuggino.storage import JournalFile, Workspace, list_journals, read_journal, started_of

_FIXED = (
    "specs_path",
    "max_iterations",
    "max_tasks_per_plan",
    "setup_command",
    "check_command",
    "setup_strict",
    "gate",
    "commit",
    "push",
    "progress_patience",
    "review_patience",
    "slow",
    "review",
    "journal",
)
"""What decides which stage follows which: a run that goes on keeps it. Limits, the model and the
policies are those of the process that goes on, so that a larger budget is of use."""


def resumed_options(current: LoopRunOptions, started: RunStarted) -> LoopRunOptions:
    """The options of a run that goes on: its own, with the present limits and policies.

    Raises:
        RunNotResumable: the journal has options that this version does not understand.
    """
    kept = {name: started.options[name] for name in _FIXED if name in started.options}
    values = {**dict(current), **kept, "focus": started.focus, "item": started.item}
    try:
        return LoopRunOptions.model_validate(values)
    except ValueError as error:
        raise RunNotResumable(
            f"the options of run {started.run_id} cannot be used by this version: {error}",
            hint="start the run anew",
        ) from error


def latest_run_of(workspace: Workspace, item: str) -> JournalFile | None:
    """The latest run of this backlog item."""
    for path in list_journals(workspace.journal):
        started = started_of(path)
        if started is not None and started.item == item:
            return read_journal(path)
    return None


def latest_watch(workspace: Workspace) -> JournalFile | None:
    """The latest watch; it is `unfinished` when its process was killed, else it is over."""
    for path in list_journals(workspace.journal):
        started = started_of(path)
        if started is not None and started.kind == "watch":
            return read_journal(path)
    return None
