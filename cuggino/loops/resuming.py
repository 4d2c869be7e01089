"""Going on with a run of an earlier process: which one, and with which options."""

from __future__ import annotations

from typing import TypeVar

from cuggino.errors import RunNotResumable
from cuggino.events import RunStarted
from cuggino.loops.options import (
    DeliverRunOptions,
    LoopRunOptions,
    PacedSettings,
    PlanBuildOptions,
)
from cuggino.storage import JournalFile, Workspace, list_journals, read_journal, started_of

_Options = TypeVar("_Options", bound=PacedSettings)

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
    return _validated(LoopRunOptions, values, started)


def _validated(model: type[_Options], values: dict[str, object], started: RunStarted) -> _Options:
    try:
        return model.model_validate(values)
    except ValueError as error:
        raise RunNotResumable(
            f"the options of run {started.run_id} cannot be used by this version: {error}",
            hint="start the run anew",
        ) from error


_FIXED_OF_DELIVERY = (
    "specs_path",
    "workflow",
    "max_sessions",
    "verify",
    "recheck",
    "session_pause",
    "max_retries",
    "progress_patience",
    "review_patience",
    "journal",
)
"""What decides which session follows which."""


def resumed_delivery(current: DeliverRunOptions, started: RunStarted) -> DeliverRunOptions:
    """The options of a deliverables run that goes on, as `resumed_options`.

    Raises:
        RunNotResumable: the journal has options that this version does not understand.
    """
    kept = {name: started.options[name] for name in _FIXED_OF_DELIVERY if name in started.options}
    values = {**dict(current), **kept, "command": started.command}
    return _validated(DeliverRunOptions, values, started)


_FIXED_OF_BUILDING = (
    "start",
    "plan_only",
    "plan_prompt",
    "build_prompt",
    "auto_commit",
    "verify_after_iteration",
    "verify_build",
    "verify_test",
    "max_sessions",
    "iteration_pause",
    "max_retries",
    "progress_patience",
    "fresh",
    "journal",
)
"""What decides which iteration follows which."""


def resumed_building(current: PlanBuildOptions, started: RunStarted) -> PlanBuildOptions:
    """The options of a plan/build run that goes on, as `resumed_options`.

    Raises:
        RunNotResumable: the journal has options that this version does not understand.
    """
    kept = {name: started.options[name] for name in _FIXED_OF_BUILDING if name in started.options}
    return _validated(PlanBuildOptions, {**dict(current), **kept}, started)


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
