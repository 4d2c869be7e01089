"""The status of a project: its running work, and matters that wait for a person."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from cuggino.domain import item_name
from cuggino.errors import StorageError
from cuggino.events import (
    Event,
    LoopSpecIssue,
    PersonAnswers,
    QuotaUsed,
    RunEnded,
    RunStarted,
    WaitingStarted,
    shown_state,
)
from cuggino.runs.listing import RecordedRun, Runs, resume_command, working_process
from cuggino.runs.state import LASTING, RunState, RunStatus
from cuggino.runs.tails import first_entry, live_journals
from cuggino.storage import Backlog, LockOwner, Origins, Workspace
from cuggino.storage.journal import Entry, list_journals, skim

ProjectState: TypeAlias = Literal["running", "idle", "waiting"]
"""`running`: a run works. `waiting`: nothing works until a person acts. `idle`: nothing to do."""

ReadRun: TypeAlias = Callable[[Path], tuple[RunState, Entry, Entry]]
"""Return the state of a journal's run, and its first and its last entry."""

_RECENT = 80
"""The latest journals among which the watch of an item is searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A matter that waits for a person."""

    kind: Literal["login", "paused", "approval", "spec-issue", "finding", "parked"]
    name: str
    """The file of the issue or item, or ""."""
    title: str
    hint: str
    """Advice on resolving it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """The run or watch that worked last."""

    run_id: str
    state: RunStatus | Literal["unreadable"]
    """Its outcome; `killed` if it did not report an end."""
    checked: bool | None = None
    """For an approval: whether the check command decided (`LoopApproved`)."""
    at: datetime
    """The time of its last entry, or of its journal."""
    started: RunStarted | None = None
    """None if the journal cannot be read."""
    activity: RunState
    message: str = ""
    """The error that ended it, or the reason why it cannot be read."""
    resume: str | None = None
    """The command line that resumes it; None if it cannot be resumed."""

    @property
    def shown_state(self) -> str:
        """The state that views show, such as `unchecked` or `all_passed`."""
        return shown_state(self.state, self.checked, self.activity.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectStatus:
    """The current or last run of a project, and the matters that wait for a person."""

    folder: Path
    at: datetime
    """The time of this status."""
    owner: LockOwner | None = None
    """The process that works, if any."""
    activity: RunState | None = None
    """The activity of the working run or watch; None without one, or without a journal."""
    last: LastRun | None = None
    """The latest run or watch, if none works."""
    waiting: tuple[Waiting, ...] = ()
    issues: Mapping[str, str] = field(default_factory=dict)
    """The page of the issue from which each item of the run was imported."""
    problem: str = ""
    """The reason why the journal of the working run cannot be read."""

    @property
    def state(self) -> ProjectState:
        """`running`, `waiting` if no run works and something waits for a person, or `idle`."""
        activity = self.activity
        if self.owner is not None and (activity is None or _works(activity)):
            return "running"
        return "waiting" if self.waiting else "idle"


def _works(activity: RunState) -> bool:
    if activity.is_blocked or (activity.login and activity.wait is not None):
        return False
    if activity.wait is not None and activity.wait.reason == "person":
        return False
    return activity.state not in ("paused", "idle", "ended")


def project_status(
    project: str | os.PathLike[str], *, at: datetime, read: ReadRun | None = None
) -> ProjectStatus:
    """Return the status of a project from its workspace and journals, without writing.

    `read` folds a journal; default: from its beginning.

    Raises:
        StorageError: the folder of the journals cannot be read.
    """
    folder = Path(project).resolve()
    workspace = Workspace(folder)
    owner = working_process(workspace)
    read = read or read_run
    activity, last, problem = None, None, ""
    if owner is not None:
        try:
            activity = _activity(workspace, owner, read)
        except StorageError as error:
            problem = error.message
    else:
        last = _last(workspace, read)
    return ProjectStatus(
        folder=folder,
        at=at,
        owner=owner,
        activity=activity,
        last=last,
        waiting=tuple(_waiting(workspace, activity)),
        issues={} if activity is None else dict(_issues(workspace, activity)),
        problem=problem,
    )


def _activity(workspace: Workspace, owner: LockOwner, read: ReadRun) -> RunState | None:
    """Return the activity of the process, with the stage and tool of a watch's item."""
    live = live_journals(workspace, owner)
    found = [read(path) for path in live]
    if not found:
        return None
    (whole, _, _), *runs = found
    is_watch = whole.kind == "watch"
    for run, first, _ in runs:
        assert isinstance(first.event, RunStarted)  # by `read_run`
        if is_watch and first.event.has_runs:  # several attempts at an item
            whole = whole.with_items((*whole.items, *run.items))
        elif whole.items or (is_watch and whole.item):
            whole = whole.with_item(run, item_name(first.event.item))
    return whole


def read_run(path: Path) -> tuple[RunState, Entry, Entry]:
    """Return the activity of a journal's run, and the first and the last entry."""
    activity = RunState()
    first = last = None
    for last in skim(path, LASTING, totals=("UsageUpdate",)):
        first = first or last
        activity = activity.add(last.event, at=last.at, stage=last.stage)
    assert first is not None and last is not None  # by `skim`
    if not isinstance(first.event, RunStarted):
        raise StorageError("read journal", f"{path}: a journal begins with RunStarted")
    return activity, first, last


def last_journal(workspace: Workspace) -> Path | None:
    """Return the journal written last; for the run of an item, its watch's journal."""
    paths = list_journals(workspace.journal)
    if not paths:
        return None
    latest = sorted(paths, key=_written, reverse=True)[:_RECENT]
    started = _started(latest[0])
    if started is not None and started.item is not None:
        watches = (path for path in latest[1:] if _is_whole(_started(path)))
        return next(watches, latest[0])
    return latest[0]


def _last(workspace: Workspace, read: ReadRun) -> LastRun | None:
    path = last_journal(workspace)
    return None if path is None else _last_run(Runs(workspace.root), path, read)


def _last_run(runs: Runs, path: Path, read: ReadRun) -> LastRun:
    try:
        activity, first, last = read(path)
    except StorageError as error:
        at = datetime.fromtimestamp(_written(path), UTC)
        return LastRun(
            run_id=path.stem, state="unreadable", at=at, activity=RunState(), message=error.message
        )
    assert isinstance(first.event, RunStarted)  # by `read_run`
    state: RunStatus = last.event.state if isinstance(last.event, RunEnded) else "killed"
    return LastRun(
        run_id=path.stem,
        state=state,
        checked=last.event.checked if isinstance(last.event, RunEnded) else None,
        at=last.at,
        started=first.event,
        activity=activity,
        message=activity.message,
        resume=resume_command(first.event, state, runs.short_id(path)),
    )


def _started(path: Path) -> RunStarted | None:
    first = first_entry(path)
    return first.event if first is not None and isinstance(first.event, RunStarted) else None


def _is_whole(started: RunStarted | None) -> bool:
    return started is not None and started.has_runs and started.item is None


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _waiting(workspace: Workspace, activity: RunState | None) -> Iterator[Waiting]:
    """Yield the matters that wait for a person, the most urgent first."""
    if activity is not None and activity.login:
        yield Waiting(kind="login", name="", title=activity.login, hint="log in")
    if activity is not None and activity.state == "paused":
        yield Waiting(kind="paused", name="", title="the run is paused", hint="cuggino continue")
    for issue in workspace.issues():
        is_question = issue.kind == "spec-issue"
        if issue.is_approval:
            hint = "cuggino approve"
            yield Waiting(kind="approval", name=issue.name, title=issue.title, hint=hint)
            continue
        yield Waiting(
            kind="spec-issue" if is_question else "finding",
            name=issue.name,
            title=issue.title,
            hint="cuggino issues",
        )
    for name, reason in Backlog(workspace).parked().items():
        yield Waiting(kind="parked", name=name, title=reason, hint=f"cuggino backlog retry {name}")


def waiting_runs(
    project: str | os.PathLike[str], runs: Iterable[RecordedRun]
) -> dict[str, Waiting]:
    """Map the ids of runs to what waits for a person because of them.

    `runs` are newest first, as those of `Runs.all`: only the latest run of a backlog item counts.
    """
    waiting = {one.name: one for one in _waiting(Workspace(Path(project)), None)}
    found: dict[str, Waiting] = {}
    seen: set[str] = set()
    for run in runs if waiting else ():
        item = item_name(run.started.item or "")
        if item and item in seen:
            continue
        seen.add(item)
        names = [item]
        is_open = run.state in ("spec_issue", "running") or run.resumable
        if is_open and not run.started.has_runs:
            asking = run.journal.entries.only(("LoopSpecIssue", "WaitingStarted"))
            names += [_issue_of(entry.event) for entry in asking]
        for name in waiting.keys() & names:
            found[run.id] = waiting[name]
    return found


def _issue_of(event: Event) -> str:
    """Return the file of the question that a run asked with this event, or ""."""
    match event:
        case LoopSpecIssue(filename=issue) | WaitingStarted(until=PersonAnswers(issue=issue)):
            return issue
        case _:
            return ""


def _issues(workspace: Workspace, activity: RunState) -> Iterator[tuple[str, str]]:
    origins = Origins(workspace)
    for name in (activity.item, *(item.item for item in activity.items)):
        if name and (page := origins.page(name)):
            yield name, page


def status_json(status: ProjectStatus) -> dict[str, Any]:
    """Return the status as JSON."""
    owner, activity, last = status.owner, status.activity, status.last
    return {
        "folder": str(status.folder),
        "state": status.state,
        "process": None if owner is None else _owner_json(owner),
        "run": None if activity is None else _activity_json(activity, status),
        "last": None if last is None else _last_json(last, status.at),
        "waiting": [
            {"kind": one.kind, "name": one.name, "title": one.title, "hint": one.hint}
            for one in status.waiting
        ],
        "problem": status.problem,
    }


def _owner_json(owner: LockOwner) -> dict[str, Any]:
    return {"pid": owner.pid, "since": _time(owner.since), "command": owner.command}


def _activity_json(activity: RunState, status: ProjectStatus) -> dict[str, Any]:
    return {
        "run_id": activity.run_id,
        "kind": activity.kind,
        "state": activity.state,
        "focus": activity.focus,
        "agent": activity.agent,
        "model": activity.model,
        **_item_json(activity, status),
        "total": activity.total,
        "done": activity.done,
        "parked": activity.parked,
        **_stage_json(activity),
        "goals_met": activity.goals_met,
        "goals": activity.goals,
        "since": _time(activity.began),
        "seconds": round(activity.elapsed(status.at), 3),
        "forecast": None if activity.forecast is None else activity.forecast.model_dump(),
        "usual_end": _time(activity.usual_end),
        "changed": _time(activity.last),
        **_spent_json(activity),
        "windows": windows_json(activity.windows_at(status.at)),
        "slots": activity.slots,
        "active_slots": activity.active_slots,
        "workers": None
        if activity.workers is None
        else [{**worker.model_dump(), "free": worker.free} for worker in activity.workers],
        "dashboard": activity.dashboard or None,
        "items": [
            {
                "state": item.state,
                **_item_json(item, status),
                "slot": item.slot or None,
                "worker": item.worker or None,
                "lost_workers": list(item.lost),
                "place": item.place,
                "agent": item.agent,
                "model": item.model,
                **_stage_json(item),
                "usual_end": _time(item.usual_end),
                "returns": item.returns,
                "return_reason": item.return_reason or None,
                "commit": item.commit or None,
                "pull_request": _pull_json(item),
                "cost_usd": item.cost_usd,
                "cost_estimated": item.cost_estimated,
                "tokens": item.spent.tokens(activity.count_tokens),
            }
            for item in activity.placed
        ],
        "held": [{"item": name, "reason": reason} for name, reason in activity.held],
        "follow_delayed": activity.follow_delayed or None,
    }


def _spent_json(activity: RunState) -> dict[str, Any]:
    return {
        "cost_usd": activity.cost_usd,
        "cost_estimated": activity.cost_estimated,
        "tokens": activity.tokens,
        "count_tokens": activity.count_tokens,
        "budget": activity.budget,
        "max_tokens": activity.max_tokens,
    }


def windows_json(windows: Iterable[QuotaUsed]) -> list[dict[str, Any]]:
    """Return the usage windows as JSON."""
    return [
        {
            "agent": one.agent,
            "window": one.window,
            "used": one.used,
            "resets_at": _time(one.resets_at),
        }
        for one in windows
    ]


def _pull_json(item: RunState) -> dict[str, Any] | None:
    if not item.pull_request:
        return None
    state, note = item.pull_state or None, item.pull_note or None
    return {"number": item.pull_request, "url": item.pull_url, "state": state, "note": note}


def _item_json(activity: RunState, status: ProjectStatus) -> dict[str, Any]:
    return {
        "item": activity.item or None,
        "title": activity.title or None,
        "issue": status.issues.get(activity.item),
        "position": activity.position,
    }


def _stage_json(activity: RunState) -> dict[str, Any]:
    tool, wait = activity.tool, activity.wait
    return {
        "iteration": activity.iteration,
        "max_iterations": activity.max_iterations,
        "stage": activity.role or None,
        "stage_since": _time(activity.stage_began),
        "task": activity.task,
        "tasks": len(activity.tasks),
        "task_title": activity.task_title or None,
        "tool": None
        if tool is None
        else {"name": tool.name, "target": tool.target, "since": _time(tool.since)},
        "words": activity.words or None,
        "paused_since": _time(activity.paused_since),
        "wait": None
        if wait is None
        else {
            "reason": wait.reason,
            "until": _time(wait.until) if wait.has_end else None,
            "target": wait.target or None,
        },
        "steering": list(activity.steering),
    }


def _last_json(last: LastRun, now: datetime) -> dict[str, Any]:
    return {
        "run_id": last.run_id,
        "kind": last.started.kind if last.started else None,
        "state": last.state,
        "checked": last.checked,
        "focus": last.started.focus if last.started else None,
        "message": last.message or None,
        "since": _time(last.activity.began),
        "at": _time(last.at),
        "seconds": round(last.activity.elapsed(last.at), 3),
        **_spent_json(last.activity),
        "windows": windows_json(last.activity.windows_at(now)),
        "resume": last.resume,
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
