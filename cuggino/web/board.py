"""The board of a workspace: what runs, what waits for a person, and the items with their outcomes.

`Board` is a value; `BoardReader` reads it from the workspace's files and journals only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Generic, Literal, NamedTuple, TypeAlias, TypedDict, TypeVar

from cuggino.config import load_config
from cuggino.domain import HasCost, item_name, options_of, title_of
from cuggino.errors import CugginoError, StorageError
from cuggino.events import LoopSpecIssue, RunStarted
from cuggino.report import OF_AGENTS, text_or_problem
from cuggino.runs import GrowingRun, ItemPlace, RecordedRun, Runs, RunState, working_process
from cuggino.runs.words import sent_back_text
from cuggino.storage import (
    Backlog,
    Entry,
    Issue,
    LockOwner,
    Origins,
    Workspace,
    Written,
    digest_of,
    file_title,
    iter_entries,
    list_journals,
    time_of,
)
from cuggino.web.refs import RefReader, SlotRef

BULK = OF_AGENTS
"""Tags of events that a long journal is shown without, except for the last ones."""

_MOST_DONE = 12
_MOST_RUNS = 40
_LONGEST_TEXT = 8000
_SHORT, _SHORT_LINES = 1200, 16
"""Characters and lines of a question that is shown as a whole."""
_ARCHIVED = re.compile(r"(?P<id>[0-9a-f-]{36})-(?P<outcome>approved|max-iterations)-(?P<name>.+)")

CardState: TypeAlias = Literal["backlog", "working", "landing", "asking", "parked", "done"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """An item on the board."""

    name: str
    """Its file, in the folder of its state."""
    title: str
    state: CardState
    note: str = ""
    """The reason why it is parked or held, the end of its run, or its problem."""
    slot: int = 0
    """The slot where it is at work; 0 in the project itself."""
    worker: str = ""
    """The worker of a cluster that works on it; "" on this machine."""
    pull_url: str = ""
    """The page of the pull request that it waits for."""
    issue_url: str = ""
    """The page of the issue that it was imported from."""
    run_id: str = ""
    """Its latest run."""
    cost_usd: float | None = None
    cost_estimated: bool = False
    seconds: float | None = None
    since: datetime | None = None
    """Start of the work at it, or its end."""
    may_move: bool = False
    """True if it can be moved: it has no unfinished run."""


class Cost(NamedTuple):
    """The cost of several runs."""

    cost_usd: float | None = None
    cost_estimated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A matter that waits for a person."""

    kind: Literal["spec-issue", "finding", "parked", "login", "paused"]
    name: str
    title: str
    text: str = ""
    item: str = ""
    """The title of the item that it is about, if known."""
    options: tuple[str, ...] = ()
    """The answers that it offers."""
    is_approval: bool = False
    """True if a person approves or rejects it."""

    @property
    def is_short(self) -> bool:
        """Return whether the text is short enough to be shown as a whole."""
        return len(self.text) <= _SHORT and self.text.count("\n") <= _SHORT_LINES


class Ended(NamedTuple):
    """The last run of a workspace where nothing runs."""

    run_id: str
    title: str
    state: str
    at: datetime
    message: str
    command: str
    """The command line that starts it again; "" if it is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """A run in the list."""

    run_id: str
    title: str
    kind: str
    state: str
    began: datetime
    seconds: float
    cost_usd: float | None
    commits: int
    cost_estimated: bool = False
    item: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Working:
    """A run or watch at work."""

    run_id: str
    """The run whose page shows it: that of the item, in a watch."""
    title: str
    activity: RunState
    commits: int = 0
    slot: int = 0
    """The slot where it works; 0 in the project itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """The state of a workspace."""

    gone: bool = False
    """The project's folder is missing."""
    problem: str = ""
    """The reason why the journals cannot be read."""
    working: tuple[Working, ...] = ()
    watch: RunState | None = None
    """The watch at work, if it has several slots, or the run, if it has several hands."""
    command: str = ""
    """The command that holds the workspace, such as `cuggino watch`; "" if none does."""
    waiting: tuple[Question, ...] = ()
    cards: tuple[Card, ...] = ()
    done: int = 0
    """Items done; the board shows the last ones."""
    kept: tuple[SlotRef, ...] = ()
    """Work of slots that is kept under refs."""
    problems: tuple[tuple[str, str], ...] = ()
    """Files of the backlog that are no items, with the reason."""
    runs: tuple[RunLine, ...] = ()
    """The runs of the last 24 hours, newest first; those of items are not repeated as watches."""
    has_runs: bool = False
    last: Ended | None = None
    """The last run, if nothing runs."""
    specs: str = ""
    """The folder of the specifications, if there is neither an item nor a run yet."""
    cost_today: Cost = field(default_factory=Cost)
    """The cost of the runs since midnight."""
    cost_lately: Cost = field(default_factory=Cost)
    """The cost of the runs of the last 24 hours."""
    done_lately: int = 0
    commits_lately: int = 0

    def of(self, state: CardState) -> tuple[Card, ...]:
        return tuple(card for card in self.cards if card.state == state)


class Item(NamedTuple):
    """An item of the backlog, or a parked one, on the page for editing."""

    name: str
    title: str
    written: Written | None
    """None if it cannot be edited here."""
    problem: str = ""
    """The reason why it cannot be edited."""
    parked: str = ""
    """The reason why it is parked; "" for an item of the backlog."""
    at_work: bool = False


class Asked(NamedTuple):
    """A spec issue or finding on its page."""

    issue: Issue
    text: str
    specs: tuple[str, ...]
    options: tuple[str, ...] = ()
    """The answers that it offers."""


class Live(NamedTuple):
    """A run at work, as far as its journal is written."""

    path: Path
    activity: RunState
    first: Entry
    last: Entry

    @property
    def started(self) -> RunStarted:
        assert isinstance(self.first.event, RunStarted)  # by `GrowingRun.read`
        return self.first.event

    @property
    def item(self) -> str:
        """The file of the item that it works on; "" without one."""
        return item_name(self.started.item)

    @property
    def run_id(self) -> str:
        return self.activity.run_id or self.path.stem

    @property
    def commits(self) -> int:
        return len(self.activity.commits)


K = TypeVar("K")
V = TypeVar("V")


class Kept(Generic[K, V]):
    """A cache that keeps only the values used in the last reading."""

    def __init__(self) -> None:
        self._old: dict[K, V] = {}
        self._new: dict[K, V] = {}

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of the key, making it if it is not cached."""
        if key not in self._new:
            self._new[key] = self._old[key] if key in self._old else make()
        return self._new[key]

    def turn(self) -> None:
        """Drop the values not used since the last turn."""
        self._old, self._new = self._new, {}


class BoardReader:
    """A reader of one workspace's board, which caches values of unchanged files."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._origins = Origins(workspace)
        self._backlog = Backlog(workspace)
        self._refs = RefReader(workspace.root)
        self._titles: Kept[tuple[str, int, int], str] = Kept()
        self._digests: Kept[tuple[str, int, int], str] = Kept()
        self._followed: Kept[Path, GrowingRun] = Kept()
        self._runs: Kept[tuple[Path, int, int], RecordedRun | str] = Kept()
        self._questions: Kept[tuple[Path, int, int], str] = Kept()

    def read(self, *, now: datetime) -> Board:
        """Return the board at this time; invalid files never raise."""
        if not self._workspace.root.is_dir():
            return Board(gone=True)
        problem = ""
        live: list[Live] = []
        recorded: list[RecordedRun] = []
        owner: LockOwner | None = None
        try:
            runs = Runs(self._workspace.root)
            owner = working_process(self._workspace)
            live, recorded = self._journals(runs, owner)
        except CugginoError as error:
            problem = error.message
        board = self._board(live, recorded, now)
        self._titles.turn()
        self._digests.turn()
        self._followed.turn()
        self._runs.turn()
        self._questions.turn()
        command = (owner.command or "cuggino") if owner else ""
        return replace(board, problem=problem, command=command)

    def _board(self, live: list[Live], recorded: list[RecordedRun], now: datetime) -> Board:
        several = (run for run in live if run.activity.kind == "watch" or run.activity.slots)
        watch = next(several, None)
        slots = watch.activity if watch is not None and watch.activity.slots else None
        if slots is not None:
            slots = slots.with_windows(chain.from_iterable(run.activity.windows for run in live))
        working = tuple(_working(live, watch))
        refs = self._refs.read()
        candidates = {ref.item for ref in refs if ref.kind == "candidate"}
        of_item = {run.started.item: run for run in reversed(recorded) if run.started.item}
        busy = {run.item for run in live}
        busy |= {run.activity.item for run in live if run.activity.item}
        if slots is not None:
            busy = {part.item for part in slots.at_work}
        unfinished = {
            item_name(run.started.item)
            for run in of_item.values()
            if run.resumable and run.started.item
        }
        asking = {run.activity.spec_issue_file or "": run.item for run in live}
        issues = self._workspace.issues()
        asking |= self._asked_by(recorded, issues)
        cards = [
            *self._open_cards(busy - {""}, unfinished, of_item, live, slots, candidates, now),
            *self._parked_cards(of_item),
        ]
        done = list(self._done_cards(of_item))
        titles = {card.name: card.title for card in cards}
        lines = [*map(live_line, live), *map(_run_line, recorded)]
        day_ago = now - timedelta(days=1)
        lately = [line for line in lines if _end(line) > day_ago]
        midnight = now.astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
        today = [line for line in lines if _end(line) >= midnight]
        is_new = not (cards or done or lines)
        watched = any(line.kind == "run" and line.item for line in lately)
        return Board(
            working=working,
            watch=slots,
            waiting=tuple(dict.fromkeys(_waiting(issues, asking, titles, cards, live, slots))),
            cards=(*cards, *done[:_MOST_DONE]),
            done=len(done),
            kept=tuple(ref for ref in refs if ref.kind == "kept"),
            problems=tuple(self._backlog.problems().items()),
            runs=tuple(one for one in lately if one.kind != "watch" or not watched)[:_MOST_RUNS],
            has_runs=bool(lines),
            last=None if live else _last(recorded),
            specs=self._specs() if is_new else "",
            cost_today=_cost(today),
            cost_lately=_cost(lately),
            done_lately=sum(card.since is not None and card.since > day_ago for card in done),
            commits_lately=sum(line.commits for line in lately if line.kind != "watch"),
        )

    def _journals(
        self, runs: Runs, owner: LockOwner | None
    ) -> tuple[list[Live], list[RecordedRun]]:
        """Return the runs at work, and the others; newest first."""
        live: list[Live] = []
        others: list[RecordedRun] = []
        since = owner.since if owner else None
        for path in list_journals(self._workspace.journal):
            try:
                found = path.stat()
            except OSError:
                continue
            # A file's time may be a little coarser than the clock's.
            if owner and (since is None or found.st_mtime >= since.timestamp() - 2):
                growing = self._followed.get(path, partial(GrowingRun, path))
                with suppress(StorageError):
                    run = Live(path, *growing.read())
                    if _is_at_work(run.activity, since):
                        live.append(run)
                        continue
            read = self._runs.get(
                (path, found.st_size, found.st_mtime_ns),
                partial(_recorded, runs, path),
            )
            if isinstance(read, RecordedRun):
                others.append(read)
        return live, others

    def _specs(self) -> str:
        with suppress(CugginoError):
            return str(load_config(self._workspace.root).specs_path)
        return ".specs"

    def _title(self, path: Path) -> str:
        try:
            found = path.stat()
        except OSError:
            return path.name
        key = (str(path), found.st_size, found.st_mtime_ns)
        return self._titles.get(key, lambda: file_title(path))

    def _titles_of(self, names: Iterable[str]) -> str:
        return ", ".join(self._title(self._workspace.backlog / name) for name in names)

    def _digest(self, folder: Path, name: str) -> str:
        path = folder / name
        try:
            found = path.stat()
        except OSError:
            return ""
        key = (str(path), found.st_size, found.st_mtime_ns)
        return self._digests.get(key, lambda: digest_of(path) or "")

    def _open_cards(
        self,
        busy: set[str],
        unfinished: set[str],
        of_item: dict[str, RecordedRun],
        live: list[Live],
        slots: RunState | None,
        candidates: set[str],
        now: datetime,
    ) -> Iterator[Card]:
        watch = slots or RunState()
        folder = self._workspace.backlog
        asking = {question.item: question.filename for question in watch.questions}
        names = self._backlog.items()
        order = self._backlog.order(names, now=now)
        held = {
            **{name: f"after {self._titles_of(after)}" for name, after in order.waiting.items()},
            **order.reasons,
            **dict(watch.held),
        }
        waiting = (*watch.queue, *watch.proposed)
        landing = [one.item for one in waiting if one.item in names]
        for name in (*landing, *(one for one in names if one not in landing)):
            part = watch.of_item(name)
            run = of_item.get(f"{name} {self._digest(folder, name)}")
            at_work = next((one for one in live if one.item == name), None)
            activity = at_work.activity if at_work else None
            asks = (run is not None and run.state == "spec_issue") or name in asking
            state: CardState = "working" if name in busy else "asking" if asks else "backlog"
            note = "" if name in busy or name not in unfinished else "unfinished"
            if slots is None and name in candidates and state == "backlog":
                note = "has a candidate"
            if part is not None:
                state, note = _PLACES[part.place or "slot"], _note_of(part)
            yield Card(
                name=name,
                title=self._title(folder / name),
                state=state,
                note=held.get(name, note) if state == "backlog" else note,
                slot=part.slot if part is not None and part.place == "slot" else 0,
                worker=part.worker if part is not None and part.place == "slot" else "",
                issue_url=self._origins.page(name),
                pull_url=part.pull_url if part is not None and part.place == "proposed" else "",
                run_id=activity.run_id if activity else run.id if run else "",
                **_paid(activity or (run.totals if run else None)),
                since=activity.began if activity else part.stage_began if part else None,
                may_move=part is None and name not in busy and name not in unfinished,
            )

    def _parked_cards(self, of_item: dict[str, RecordedRun]) -> Iterator[Card]:
        folder = self._workspace.parked
        for name, reason in self._backlog.parked().items():
            run = of_item.get(f"{name} {self._digest(folder, name)}")
            yield Card(
                name=name,
                title=self._title(folder / name),
                state="parked",
                note=reason,
                issue_url=self._origins.page(name),
                run_id=run.id if run else "",
                **_paid(run.totals if run else None),
                seconds=run.totals.duration if run else None,
            )

    def _done_cards(self, of_item: dict[str, RecordedRun]) -> Iterator[Card]:
        """Yield the archived items, newest first."""
        folder = self._workspace.archive
        with suppress(OSError):
            names = sorted((entry.name for entry in folder.iterdir()), reverse=True)
            for place, found in enumerate(filter(None, map(_ARCHIVED.fullmatch, names))):
                shown = place < _MOST_DONE
                digest = self._digest(folder, found[0]) if shown else ""
                run = of_item.get(f"{found['name']} {digest}")
                yield Card(
                    name=found[0],
                    title=self._title(folder / found[0]) if shown else "",
                    state="done",
                    issue_url=self._origins.page(found["name"]) if shown else "",
                    note=_note_of_done(found["outcome"], run),
                    run_id=run.id if run else "",
                    **_paid(run.totals if run else None),
                    seconds=run.totals.duration if run else None,
                    since=time_of(found["id"]),
                )

    def _asked_by(self, recorded: list[RecordedRun], issues: list[Issue]) -> dict[str, str]:
        """Map open spec issues to the items whose runs stored them."""
        names = {issue.name for issue in issues if issue.kind == "spec-issue"}
        asked: dict[str, str] = {}
        if not names:
            return asked
        for run in recorded:
            if run.state == "spec_issue" and run.started.item:
                key = (run.path, run.digest.size, run.digest.modified)
                issue = self._questions.get(key, partial(_issue_of, run.path))
                asked[issue] = item_name(run.started.item)
        return {issue: item for issue, item in asked.items() if issue in names}


def _note_of_done(outcome: str, run: RecordedRun | None) -> str:
    """Return what is to be known about the approval of an archived item."""
    if outcome == "max-iterations":
        return "not approved"
    return "approved, unchecked" if run is not None and run.checked is False else ""


def _recorded(runs: Runs, path: Path) -> RecordedRun | str:
    try:
        return runs.read(path)
    except CugginoError as error:
        return error.message


def _issue_of(path: Path) -> str:
    name = ""
    with suppress(CugginoError, OSError):
        for entry in iter_entries(path, only=("LoopSpecIssue",)):
            if isinstance(entry.event, LoopSpecIssue):
                name = entry.event.filename
    return name


def _is_at_work(activity: RunState, since: datetime | None) -> bool:
    """Return whether the process that holds the workspace works on this run."""
    began = activity.began
    if activity.outcome or began is None:
        return False
    return since is None or began >= since - timedelta(seconds=2)


_PLACES: Mapping[ItemPlace, CardState] = MappingProxyType(
    {
        "slot": "working",
        "queue": "landing",
        "landing": "landing",
        "proposed": "landing",
        "sent-back": "backlog",
        "retry": "backlog",
    }
)
"""The column of an item by its place in a watch with several slots."""


def _note_of(item: RunState) -> str:
    """Return the note on an item's card in a watch with several slots."""
    if item.place == "landing":
        return "landing now"
    if item.place == "proposed":
        return f"pull request {item.pull_words}" + (f": {item.pull_note}" if item.pull_note else "")
    if item.place == "retry" and item.wait is not None:
        return f"failed, again at {item.wait.until.astimezone():%H:%M}"
    return sent_back_text(item.returns, item.return_reason) if item.returns else ""


def _working(live: list[Live], watch: Live | None) -> Iterator[Working]:
    """Yield the runs at work; a watch is shown by the runs of its items, if any."""
    if watch is not None and (watch.activity.at_work or watch.activity.queue):
        yield from _in_slots(live, watch)
        return
    has_slots = watch is not None and watch.activity.slots
    items = [run for run in live if run.item and not has_slots]
    for run in [*items, *(one for one in live if one not in items)]:
        if (run is watch and items) or (has_slots and run is not watch):
            continue
        activity, title = run.activity, title_of_run(run.started)
        if watch is not None and run is not watch and len(items) == 1:
            activity = watch.activity.with_item(run.activity)
        yield Working(
            run_id=run.run_id,
            title=title,
            activity=activity,
            commits=run.commits,
        )


def _in_slots(live: list[Live], watch: Live) -> Iterator[Working]:
    """Yield the items in slots, in the order of the slots."""
    runs = {run.item: run for run in reversed(live)}
    for part in watch.activity.at_work:
        run = runs.get(part.item)  # none while the slot is prepared
        joined = watch.activity.with_item(run.activity, part.item) if run else watch.activity
        yield Working(
            run_id=(run.activity.run_id if run else "") or watch.activity.run_id,
            title=part.title,
            activity=joined.of_item(part.item) or part,
            commits=run.commits if run else 0,
            slot=part.slot,
        )


def title_of_run(started: RunStarted) -> str:
    """Return a short name for what a run is about: the heading of its item, or its focus."""
    if started.kind == "watch":
        return "Watch"
    others = {"deliver": "Deliver", "loop": "Plan and build"}
    item = item_name(started.item).removesuffix(".md")
    title = title_of(started.focus[:_LONGEST_TEXT]) or item
    return title or others.get(started.kind, "Run")


def title_at(journal: Path) -> str:
    """Return a short name for what the run of a journal is about; "" if it cannot be read."""
    with suppress(CugginoError, OSError, StopIteration):
        started = next(iter_entries(journal)).event
        if isinstance(started, RunStarted):
            return title_of_run(started)
    return ""


def _waiting(
    issues: Iterable[Issue],
    asking: dict[str, str],
    titles: dict[str, str],
    cards: Iterable[Card],
    live: Iterable[Live],
    slots: RunState | None,
) -> Iterator[Question]:
    """Yield the questions for a person, the most urgent first."""
    for run in live:
        activity = run.activity
        if activity.login:
            yield Question(kind="login", name=activity.agent, title=activity.login)
        if activity.paused_since is not None and (activity.kind == "watch") is (slots is not None):
            yield Question(kind="paused", name=activity.run_id, title=title_of_run(run.started))
    for issue in issues:
        item, text = asking.get(issue.name, ""), text_or_problem(issue.path, _LONGEST_TEXT)
        yield Question(
            kind="spec-issue" if issue.kind == "spec-issue" else "finding",
            name=issue.name,
            title=issue.title,
            text=text,
            item=titles.get(item, item),
            options=() if issue.is_approval else options_of(text),
            is_approval=issue.is_approval,
        )
    for card in cards:
        if card.state == "parked":
            yield Question(kind="parked", name=card.name, title=card.title, text=card.note)


def _last(recorded: Iterable[RecordedRun]) -> Ended | None:
    """Return the run that ended last; of a watch and its last item, the watch."""
    run = max(recorded, key=lambda one: one.digest.last, default=None)
    if run is None:
        return None
    again = "cuggino watch" if run.started.kind == "watch" else run.resume_command or ""
    return Ended(
        run_id=run.id,
        title=title_of_run(run.started),
        state=run.shown_state,
        at=run.digest.last,
        message=run.message,
        command=again,
    )


def live_line(run: Live) -> RunLine:
    """Return the line of a run at work."""
    activity = run.activity
    return RunLine(
        run_id=run.run_id,
        title=title_of_run(run.started),
        kind=activity.kind,
        state="running",
        began=activity.began or run.last.at,
        seconds=activity.elapsed(run.last.at),
        cost_usd=activity.cost_usd,
        cost_estimated=activity.cost_estimated,
        commits=run.commits,
        item=run.item,
    )


def _run_line(run: RecordedRun) -> RunLine:
    totals = run.totals
    return RunLine(
        run_id=run.id,
        title=title_of_run(run.started),
        kind=run.started.kind,
        state=run.shown_state,
        began=run.digest.began,
        seconds=totals.duration,
        cost_usd=totals.cost_usd,
        cost_estimated=totals.cost_estimated,
        commits=len(totals.commits),
        item=item_name(run.started.item),
    )


def _end(line: RunLine) -> datetime:
    return line.began + timedelta(seconds=line.seconds)


class _Paid(TypedDict):
    cost_usd: float | None
    cost_estimated: bool


def _paid(paid: HasCost | None) -> _Paid:
    if paid is None:
        return {"cost_usd": None, "cost_estimated": False}
    return {"cost_usd": paid.cost_usd, "cost_estimated": paid.cost_estimated}


def _cost(lines: Iterable[RunLine]) -> Cost:
    """Return the total cost of the runs; a watch counts the cost of its items and audits."""
    lines = tuple(lines)
    total: float | None = None
    for line in lines:
        cost = line.cost_usd
        if line.kind == "watch":
            of_items = sum(
                one.cost_usd or 0.0
                for one in lines
                if one.item and line.began <= one.began <= _end(line)
            )
            cost = None if cost is None else max(cost - of_items, 0.0)
        if cost is not None:
            total = (total or 0.0) + cost
    return Cost(total, any(line.cost_estimated for line in lines))
