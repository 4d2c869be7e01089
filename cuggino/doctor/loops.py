"""Checks of what the loops keep: slots, deliverables, jobs and unfinished sessions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.util import find_spec

from cuggino.config import (
    AGENT_FILE,
    CONFIG_FILE,
    PLAN_BUILD_CONFIG_FILE,
    load_plan_build_config,
    missing_programs,
    read_agent_file,
)
from cuggino.doctor.result import NEVER_FAILS, CheckResult, Place, note, ok, problem
from cuggino.errors import StorageError, install_extra
from cuggino.gate import why_it_cannot_fail
from cuggino.runs import RecordedRun, Runs, read_pace
from cuggino.sandbox import home_of
from cuggino.storage import (
    BROKEN_HINT,
    SPEC_FILE,
    STATUS_FILE,
    DeliverableStore,
    JobStore,
    Workspace,
    has_ended,
)

_MOST_SLOTS = 64
"""The highest number of slots that can be set."""


def slots(place: Place) -> Iterator[CheckResult]:
    """Report how many slots are used, and how many would not wait for the check.

    Nothing is said of a project that cannot use slots, or uses none and has too few recorded items.
    """
    config = place.config
    if not config.commit or config.check_command is None:
        return
    pace = read_pace(place.folder)
    if pace is None:
        if config.slots > 1:
            yield ok(f"{config.slots}")
        return
    most = min(pace.useful_slots, _MOST_SLOTS)
    times = f"an item takes {_time(pace.item)}, the check of each landing {_time(pace.check)}"
    if config.slots > most:
        idle = f"{config.slots}, of which {config.slots - most} would wait for the check"
        hint = f'set "slots" to {most} in {CONFIG_FILE}, or make the check faster'
        yield note(f"{idle}: {times}", hint)
    elif most > 1:
        yield ok(f"{config.slots}; up to {most} would not wait for the check ({times})")


def _time(seconds: float) -> str:
    """Return `40 s`, `12 min` or `2.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 1 else "less than 1 s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def deliverables(place: Place) -> Iterator[CheckResult]:
    """Check specification, tools, status and settings, in a project of the deliver loop."""
    folder = place.folder
    has_spec = (folder / SPEC_FILE).is_file()
    if not has_spec and not (folder / ".autonoe").is_dir():
        return
    if not has_spec:
        hint = f"describe in {SPEC_FILE} what is to be delivered, for `cuggino deliver`"
        yield note(f"there is no {SPEC_FILE}", hint)
    if find_spec("mcp") is None:
        hint = f"{install_extra('deliver')}, for `cuggino deliver`"
        yield problem("the MCP library is not installed", hint)
    yield _status(DeliverableStore(folder))
    found = read_agent_file(folder)
    for warning in found.warnings:
        yield note(warning)
    for name, program in missing_programs(found.settings, str(folder)).items():
        hint = f'install it, or leave {name} out of "mcpServers" in {AGENT_FILE}'
        yield note(f"the MCP server {name} is left out: {program} is not installed", hint)


def _status(store: DeliverableStore) -> CheckResult:
    loaded = store.load(now=datetime.now(UTC))
    if loaded.broken is not None:
        return problem(loaded.broken, BROKEN_HINT)
    if loaded.warnings:
        return note("; ".join(loaded.warnings), f"see {STATUS_FILE}")
    if not store.exists():
        return ok("none yet")
    known = loaded.deliverables
    blocked = f", {known.count_blocked} blocked" if known.count_blocked else ""
    return ok(f"{known.count_passed}/{known.total} passed{blocked}")


def jobs(place: Place) -> Iterator[CheckResult]:
    """Check settings and jobs, in a project that uses the plan/build loop."""
    store = JobStore(place.folder)
    home = home_of(place.env)
    user = None if home is None else home / PLAN_BUILD_CONFIG_FILE
    config = load_plan_build_config(place.folder, user=user).config
    store.check()
    for key, command in (("build", config.verify_build), ("test", config.verify_test)):
        if command and (why := why_it_cannot_fail(command)):
            yield note(f"verify.{key}: {command} (it cannot fail: {why})", NEVER_FAILS)
    if not store.path.exists():
        return
    loaded = store.load()
    if loaded.warnings:
        yield note("; ".join(loaded.warnings), f"see {store.path}")
    else:
        yield ok(f"{loaded.jobs.count_done}/{len(loaded.jobs.items)} done")


def session_files(place: Place) -> Iterator[CheckResult]:
    """Report the files of each unfinished run, which resuming it needs, and then the others.

    The others belong to runs that ended, or whose journal is gone, and can be deleted.
    """
    workspace = Workspace(place.folder)
    try:
        names = [path.name for path in workspace.wip.iterdir() if path.is_file()]
    except OSError:
        names = []
    if not names:
        yield ok("none left over")
        return
    running = _running(workspace)
    if running is not None:
        yield ok(f"in use by process {running}")
        return
    journals = {
        session: journal
        for session in workspace.sessions()
        if not has_ended(journal := workspace.journal / f"{session}.jsonl")
    }
    for journal in journals.values():
        try:
            yield _resuming(Runs(place.folder).read(journal))
        except StorageError as error:
            yield note(error.message, error.hint)
    rest = [name for name in names if name.partition(".")[0] not in journals]
    if rest:
        ended = len({name.partition(".")[0] for name in rest})
        left = f"{_count(len(rest), 'file')} of {_count(ended, 'ended run')} left"
        # By name if there are other files, which must stay.
        named = f"safe to delete: {', '.join(sorted(rest))}"
        yield note(f"{left} in {workspace.wip}", named if journals else "they are safe to delete")


def _resuming(run: RecordedRun) -> CheckResult:
    if run.started.item is not None:
        what = f"of run {run.short_id}, which is unfinished"
        return note(what, "`cuggino watch` resumes it when it takes the item again")
    how = f"resume it: `cuggino {run.started.kind} --resume {run.short_id}`"
    return note(f"of run {run.short_id}, which can be resumed", how)


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
