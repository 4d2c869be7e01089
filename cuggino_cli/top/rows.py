"""The rows of `cuggino top`: a run or an item each, and the questions that wait for a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from cuggino.runs import LastRun, ProjectStatus, RunState, cost_of, money
from cuggino.runs.words import format_duration
from cuggino_cli.screen.columns import cut, padded, width
from cuggino_cli.screen.fragments import Fragment, Label
from cuggino_cli.screen.overview import when_text
from cuggino_cli.screen.runs import STATES
from cuggino_cli.screen.status import (
    Row,
    RunStatus,
    cut_row,
    doing_text,
    role_text,
    since_text,
    wait_text,
)
from cuggino_cli.screen.text import first_line, flat

Kind: TypeAlias = Literal["run", "item", "question", "parked", "last", "none"]

_SHORT = 60
"""Columns below which there is no room for what an agent does, and for costs."""
_GAP = "  "
_MOST_WAITING = 5
"""Rows of a project for what waits for a person."""
_ORDER = ("running", "waiting", "idle")
_ASKING = ("approval", "spec-issue", "login")
_QUESTIONS = {"approval": "approve", "spec-issue": "asks you"}
_MARK = "> "
"""Stands before the selected row."""


class Key(NamedTuple):
    """The identity of a row, which does not change with its place."""

    project: Path
    kind: Kind
    name: str = ""
    """The file of the item or question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The subject of a row."""

    key: Key
    project: str
    """The name of the project."""
    status: ProjectStatus
    title: str = ""
    state: RunState | None = None
    """The state of the run or item at work."""
    note: str = ""
    """Why the item is parked."""

    @property
    def is_approval(self) -> bool:
        """Return whether it waits for an approval."""
        return self.note == "approval"

    @property
    def is_at_work(self) -> bool:
        """Return whether a process works in the project, so that it takes commands."""
        return self.status.owner is not None


class _Cells(NamedTuple):
    project: str
    title: str
    label: Label
    stage: str
    doing: str
    time: str = ""
    cost: str = ""


def subjects(statuses: Sequence[ProjectStatus]) -> list[Subject]:
    """Return what the rows are about: projects at work first, then those that wait for a person."""
    names = Counter(status.folder.name for status in statuses)
    ordered = sorted(statuses, key=lambda status: _ORDER.index(status.state))
    return [
        subject
        for status in ordered
        for subject in _subjects(
            status,
            status.folder.name
            if names[status.folder.name] == 1
            else f"{status.folder.parent.name}/{status.folder.name}",
        )
    ]


def _subjects(status: ProjectStatus, name: str) -> Iterator[Subject]:
    state, last = status.activity, status.last

    def subject(
        kind: Kind, title: str, *, file: str = "", state: RunState | None = None, note: str = ""
    ) -> Subject:
        key = Key(status.folder, kind, file)
        return Subject(key=key, project=name, status=status, title=title, state=state, note=note)

    if status.owner is not None:
        yield subject("run", _title(status), state=state)
    elif last is not None:
        focus = last.started.focus if last.started is not None else ""
        yield subject("last", focus or f"cuggino {last.activity.kind or 'run'}")
    else:
        yield subject("none", "no run yet")
    if state is not None:
        for item in state.placed:
            yield subject("item", item.title or item.item, file=item.item, state=item)
    waiting = [one for one in status.waiting if one.name]
    for one in waiting[:_MOST_WAITING]:
        if one.kind == "parked":
            yield subject("parked", one.name, file=one.name, note=one.title)
        else:
            yield subject("question", one.title, file=one.name, note=one.kind)
    if (more := len(waiting) - _MOST_WAITING) > 0:
        yield subject("none", f"and {more} more", file="more", note="`cuggino status` lists them")


def _title(status: ProjectStatus) -> str:
    state, owner = status.activity, status.owner
    command = (owner.command if owner is not None else None) or "cuggino"
    if state is None:
        return command
    if state.kind == "watch" and not state.item:
        counts = ((state.done, "done"), (state.parked, "parked"), (state.queued, "waiting"))
        shown = ", ".join(f"{count} {word}" for count, word in counts if count)
        return f"watch: {shown}" if shown else "watch"
    return state.title or first_line(state.focus) or command


def summary(statuses: Sequence[ProjectStatus]) -> str:
    """Return how much is at work, what waits for a person, and the cost of what is at work."""
    working = [one for one in statuses if one.owner is not None]
    states = [one.activity for one in working if one.activity is not None]
    count = len(working) - len(states) + sum(_works(state) for state in states)
    waiting = sum(len(one.waiting) for one in statuses)
    cost = sum(state.cost_usd or 0.0 for state in states)
    estimated = "~" if any(state.cost_estimated for state in states) else ""
    facts = [f"{count} at work" if count else "nothing at work"]
    facts += [f"{waiting} {'waits' if waiting == 1 else 'wait'} for you"] if waiting else []
    facts += [f"{estimated}{money(cost)}"] if cost else []
    return " · ".join(facts)


def _works(state: RunState) -> int:
    return len(state.at_work) or int(state.state in ("working", "pausing", "stopping"))


def advice(statuses: Sequence[ProjectStatus]) -> str:
    """Return what to do next where nothing is at work, or ""."""
    if not statuses:
        return 'No project has run here yet. Begin in one: cuggino run "add a login page"'
    if any(status.owner is not None for status in statuses):
        return ""
    if any(status.waiting for status in statuses):
        return "Answer what waits, then begin in a project: cuggino watch"
    return 'Nothing runs. Begin in a project: cuggino run "add a login page", or cuggino watch'


def rows(
    statuses: Sequence[ProjectStatus], now: datetime, columns: int, selected: Key | None = None
) -> list[Row]:
    """Return a row for the names of the columns, and one for each of `subjects`.

    Each row ends short of the last column; the selected one begins with `>`.
    """
    about = subjects(statuses)
    cells = [_cells(subject, now, short=columns < _SHORT) for subject in about]
    lines = _laid_out([_HEAD, *_without_repeats(cells)], columns)
    head = [Fragment("prose", "".join(text for _, text in lines[0]))]
    marked = [_MARK if subject.key == selected else "  " for subject in about]
    return [
        cut_row([Fragment("plain", mark), *line], columns)
        for mark, line in zip(["  ", *marked], [head, *lines[1:]], strict=True)
    ]


_HEAD = _Cells("PROJECT", "RUN", "plain", "STAGE", "NOW", "TIME", "COST")


def _without_repeats(cells: Sequence[_Cells]) -> Iterator[_Cells]:
    """Yield the cells, with the name of a project in its first row only."""
    before = ""
    for row in cells:
        yield row._replace(project="" if row.project == before else row.project)
        before = row.project


def _laid_out(table: Sequence[_Cells], columns: int) -> list[Row]:
    """Return the rows of the table: those narrower than `_SHORT` have three columns and a time."""
    short = columns < _SHORT
    limits = (9, 9) if short else (14, 16)
    project, stage = (
        min(max(width(texts[place]) for texts in table), limit)
        for place, limit in zip((0, 3), limits, strict=True)
    )
    time, cost = (max(width(texts[place]) for texts in table) for place in (5, 6))
    gap = " " if short else _GAP
    fixed = (project, stage, time) if short else (project, stage, time, cost)
    room = max(columns - 1 - len(_MARK) - sum(fixed) - len(gap) * (len(fixed) + (not short)), 4)
    widest = max(width(texts.title) for texts in table)
    title = room if short else min(widest, room // 2)

    def fitted(text: str, most: int) -> str:
        return padded(cut(text, most + 1), most)

    lines: list[Row] = []
    for texts in table:
        line = [
            Fragment("heading", fitted(texts.project, project) + gap),
            Fragment("plain", fitted(texts.title, title) + gap),
            Fragment(texts.label, fitted(texts.stage, stage)),
        ]
        if not short:
            line.append(Fragment("tool", gap + fitted(texts.doing, room - title)))
        line.append(Fragment("plain", gap + texts.time.rjust(time)))
        if not short:
            line.append(Fragment("plain", gap + texts.cost.rjust(cost)))
        lines.append(line)
    return lines


def _cells(subject: Subject, now: datetime, *, short: bool) -> _Cells:
    name, title, state = flat(subject.project), flat(subject.title), subject.state
    match subject.key.kind:
        case "run" | "item" if state is not None:
            label, stage, doing = _at_work(subject, state, now, short=short)
            time = format_duration(state.elapsed(now)) if state.began is not None else ""
            return _Cells(name, title, label, stage, doing, time, cost_of(state))
        case "run":
            why = flat(subject.status.problem) or "it writes no journal"
            return _Cells(name, title, "progress", "works", why)
        case "last":
            assert subject.status.last is not None  # by `_subjects`
            return _last(name, title, subject.status.last, now)
        case "question":
            stage = _QUESTIONS.get(subject.note, "finding")
            how = "y approves it, a answers it" if subject.is_approval else "a answers it"
            return _Cells(name, f"? {title}", "caution", stage, how)
        case "parked":
            return _Cells(name, f"! {title}", "caution", "parked", flat(subject.note))
        case _:
            return _Cells(name, title, "plain", "", flat(subject.note or subject.status.problem))


def _at_work(
    subject: Subject, state: RunState, now: datetime, *, short: bool
) -> tuple[Label, str, str]:
    """Return label and text of the stage, and what is being done."""
    place = _place(state)
    if place and state.place != "landing":
        wait = state.wait
        doing = wait_text(wait, now, short=True) if wait is not None else state.pull_note
        return "prose", place, flat(doing)
    match state.state:
        case "stopping" | "pausing" as word:
            return "caution", word, _doing(subject, state, now)
        case "paused":
            return "caution", "paused", "p goes on"
        case "waiting" if state.wait is not None:
            return "warning", "waits", wait_text(state.wait, now, short=True)
        case "waiting" if not any(one.kind in _ASKING for one in subject.status.waiting):
            return "progress", "resumes soon" if not short else "resumes", ""
        case "waiting":
            return "caution", "waits for you" if not short else "waits", _calls(subject, state)
        case "idle":
            return "progress", "waits for work" if not short else "idle", ""
        case "ended":
            return "prose", "ends", flat(state.message)
        case _:
            pass
    if state.at_work:
        return "progress", f"{len(state.at_work)} at work", _calls(subject, state)
    lap = ""
    if state.iteration and not short:
        of = f"/{state.max_iterations}" if state.max_iterations else ""
        lap = f"{state.iteration}{of} "
    return "plain", place or f"{lap}{role_text(state)}", _doing(subject, state, now)


def _calls(subject: Subject, state: RunState) -> str:
    """Return what a person is asked for, but for questions that are answered."""
    is_open = any(one.kind in _QUESTIONS for one in subject.status.waiting)
    return "; ".join(map(flat, state.calls)) if is_open or state.login else ""


def _doing(subject: Subject, state: RunState, now: datetime) -> str:
    """Return the running tool with its time, or how long the agent is silent; "" of many agents."""
    if state.at_work:
        return ""
    status = RunStatus(activity=state, project=str(subject.key.project))
    since = since_text(state, now)
    return f"{since} {doing_text(status, state, now, short=False)}" if since else ""


def _place(state: RunState) -> str:
    match state.place:
        case "queue":
            return "to land"
        case "landing":
            return "lands"
        case "proposed":
            return flat(state.pull_words)
        case "sent-back":
            return "sent back"
        case "retry":
            return "retry"
        case _:
            return ""


def _last(name: str, title: str, last: LastRun, now: datetime) -> _Cells:
    state = last.shown_state
    label, word = STATES.get(state, ("plain", state))
    what = last.message or (f"resume it: {last.resume}" if last.resume is not None else "")
    doing = ": ".join(filter(None, (when_text(last.at, now), flat(what))))
    time = format_duration(last.activity.elapsed(last.at)) if last.activity.began else ""
    return _Cells(name, title, label, word, doing, time, cost_of(last.activity))
