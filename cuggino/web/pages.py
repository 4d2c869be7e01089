"""The pages: the overview, a run, and the forms. Values in, HTML out."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from jinja2 import Environment

from cuggino.domain import cost_of, item_name, plan_in, unreset, without_options
from cuggino.errors import CugginoError
from cuggino.events import QuotaUsed
from cuggino.report import (
    Changed,
    CommitDiff,
    RunFold as ReportFold,
    RunReport,
    Transcript,
    View,
    environment,
    view as view_of,
    watch_of,
    without_title,
    worker_of,
    zone_at,
)
from cuggino.runs import RunState, resume_command, tool_target
from cuggino.runs.state import AGENT_KINDS
from cuggino.runs.words import counted, sent_back_text, short_number
from cuggino.storage.journal import Entry, list_journals, origin_of
from cuggino.web.board import (
    BULK,
    Asked,
    Board,
    BoardReader,
    Item,
    Question,
    Working,
)
from cuggino.web.fragment import Fragment
from cuggino.web.names import question_name
from cuggino.web.site import OVERVIEW, Place, Site

__all__ = [
    "BULK",
    "Overview",
    "RunFold",
    "load_overview",
    "message_page",
    "overview_fragments",
    "overview_page",
    "run_fragments",
    "run_page",
    "stage_fragment",
]

_AT_ONCE = ("plan", "jobs", "deliverables", "commits")
"""Parts of a run's page that are drawn with every change."""
_SLOWLY = (
    *(
        "slots",
        "landings",
        "timeline",
        "spending",
        "checks",
        "reviews",
        "notices",
        "sessions",
        "tools",
    ),
)
"""Parts that are drawn at most once a second."""
_OF_TOOLS = frozenset({"tools"})
"""Parts that change with every tool call, and that nothing else depends on."""
_REDRAWN = timedelta(seconds=10)
"""The time after which the bar of a running stage is drawn again."""
_MOST_STAGES = 300
_MOST_ITEMS = 200
_MOST_RUNS = 256
"""The newest runs among which those of a watch's items are found."""
_MOST_ROWS = 200
"""Rows of a running stage on a new page."""
_PAYLOAD = 3000
_MOST_PROSE = 128
"""Texts whose rendered Markdown is kept: most are drawn again with the next event."""


# The overview


@dataclass(frozen=True, slots=True)
class Overview:
    """The boards of all workspaces."""

    boards: tuple[tuple[Place, Board], ...]

    @property
    def waiting(self) -> int:
        """Return the number of questions for a person."""
        return sum(len(board.waiting) for _, board in self.boards)

    @property
    def namesakes(self) -> frozenset[str]:
        """Return the names that several projects have."""
        names = [place.name for place, _ in self.boards]
        return frozenset(name for name in names if names.count(name) > 1)

    @property
    def at_work(self) -> str:
        """Return what is at work, such as `1 watch with 3 items, 2 runs`; "" if nothing is."""
        watches = items = runs = 0
        for _, board in self.boards:
            if board.watch is not None and board.watch.hands:
                runs += 1
                continue
            of_watch = [run for run in board.working if run.activity.kind == "watch"]
            watches += bool(of_watch) or board.watch is not None
            items += sum(bool(run.activity.item) for run in of_watch)
            runs += len(board.working) - len(of_watch)
        watch = counted(watches, "watch", "watches") if watches else ""
        if watch and items:
            watch += f" with {counted(items, 'item')}"
        return ", ".join(filter(None, (watch, counted(runs, "run") if runs else "")))


_READERS: WeakKeyDictionary[Site, dict[str, BoardReader]] = WeakKeyDictionary()


def load_overview(site: Site) -> Overview:
    """Read the boards of all workspaces, reusing unchanged parts."""
    readers = _READERS.setdefault(site, {})
    now = datetime.now(UTC)
    return Overview(
        tuple(
            (place, readers.setdefault(place.key, BoardReader(place.workspace)).read(now=now))
            for place in site.places
        )
    )


def overview_page(site: Site, overview: Overview, *, seq: int) -> str:
    """Return the overview."""
    return _render("overview.html", site, overview=overview, seq=seq, channel=OVERVIEW)


def overview_fragments(site: Site, overview: Overview) -> list[Fragment]:
    """Return the parts of the overview that change."""
    parts = [
        Fragment("title", "replace", _part("overview_title", site, overview)),
        Fragment("state", "replace", _part("overview_state", site, overview)),
    ]
    for place, board in overview.boards:
        parts += [
            Fragment(f"{name}-{place.key}", "replace", _part(name, site, place, board))
            for name in ("now", "acts", "waits", "board", "runs")
        ]
    return parts


# A run


class Changes(NamedTuple):
    """The changes to the page of a run."""

    parts: list[str]
    stages: list[int]
    """Stages whose lines have changed."""
    begun: list[int]
    """Those that are new."""
    rows: list[tuple[int, int]]
    """Stage and number of rows that are new, or have their results now."""
    appended: list[tuple[int, int]]
    """Those that are new."""


class Seen(NamedTuple):
    """The entries at which something appeared and last changed."""

    first: int
    last: int

    @classmethod
    def again(cls, known: Seen | None, seq: int) -> Seen:
        """Return the value after a change."""
        return cls(known.first if known else seq, seq)


_ALWAYS = 1 << 62
"""The number of an entry that comes after all others."""


class Redraws:
    """What has changed on the page of a run since it was drawn."""

    def __init__(self) -> None:
        self._parts: dict[str, int] = {}
        """Parts that have changed, each with the number of the entry."""
        self._stages: dict[int, Seen] = {}
        self._rows: dict[tuple[int, int], Seen] = {}
        self._known: dict[int, int] = {}
        """The stages that open pages have, each with its last row."""
        self._drawn: datetime | None = None
        """The time up to which the timeline was drawn."""

    def add(self, entry: Entry, changed: Changed) -> None:
        """Note what an entry has changed."""
        if self._drawn is None or entry.at - self._drawn >= _REDRAWN:
            self._drawn, self._parts["timeline"] = entry.at, entry.seq
            self._parts["slots"] = entry.seq
        for name in changed.parts:
            self._parts[name] = entry.seq
        if changed.stage is not None:
            if changed.row is not None:
                row = changed.stage, changed.row
                self._rows[row] = Seen.again(self._rows.get(row), entry.seq)
            if changed.row is None or changed.parts & {"stages", "timeline"}:
                known = self._stages.get(changed.stage)
                self._stages[changed.stage] = Seen.again(known, entry.seq)

    def since(self, seq: int, *, slow: bool) -> Changes:
        """Return and reset the changes after an entry; slow parts wait for `slow`."""
        rows = [row for row, seen in self._rows.items() if seen.last > seq]
        stages = [stage for stage, seen in self._stages.items() if seen.last > seq]
        begun = [
            stage
            for stage in stages
            if stage not in self._known and self._stages[stage].first > seq
        ]
        appended = [
            (stage, row)
            for stage, row in rows
            if row > self._known.get(stage, 0) and self._rows[stage, row].first > seq
        ]
        for stage in self._stages:
            self._known.setdefault(stage, 0)
        for stage, row in self._rows:
            self._known[stage] = max(self._known.get(stage, 0), row)
        self._rows.clear()
        self._stages.clear()
        names = [name for name in (*_AT_ONCE, *_SLOWLY) if self._parts.get(name, 0) > seq]
        now = [name for name in names if slow or name in _AT_ONCE]
        late = [name for name in names if name not in now]
        self._parts = dict.fromkeys(late, _ALWAYS)
        return Changes(parts=now, stages=stages, begun=begun, rows=rows, appended=appended)


class Related:
    """The other runs that the page of a run names, as its workspace has them."""

    def __init__(self, journals: Path) -> None:
        self.watch = ""
        """The watch of a run in a slot."""
        self.worker = ""
        """The worker of a cluster where it works."""
        self.is_placed = False
        """True if `worker` is known for the latest process of the run."""
        self._journals = journals
        self._items: dict[Path, str] = {}
        """The items of the runs of the workspace, by their journals."""
        self._runs: dict[str, str] = {}
        """The latest run of each item."""

    def find_items(self) -> None:
        """Find the runs of the items of a watch."""
        paths = list_journals(self._journals)[:_MOST_RUNS]
        self._items = {
            path: self._items[path] if path in self._items else _item_of(path)
            for path in reversed(paths)
        }
        self._runs = {item: path.stem for path, item in self._items.items() if item}

    def find_watch(self, run_id: str) -> None:
        """Find the watch of a run in a slot, and its worker."""
        journal = self._journals / f"{run_id}.jsonl"
        if not self.watch and (watch := watch_of(journal)) is not None:
            self.watch = watch.stem
        if not self.is_placed:
            self.worker = worker_of(journal)
            self.is_placed = True

    def run_of(self, item: str) -> str:
        """Return the latest run of an item of a watch, or ""."""
        return self._runs.get(item, "")


@dataclass(slots=True)
class RunFold:
    """A run as shown on its page, and the changes since it was drawn."""

    place: Place
    run_id: str
    running: bool = False
    """True if a process is working on it now."""
    report: ReportFold = field(init=False)
    first: Entry | None = None
    redraws: Redraws = field(default_factory=Redraws)
    related: Related = field(init=False)
    _latest: RunReport | None = None
    """The report as it was drawn last, which most events leave as it is."""

    def __post_init__(self) -> None:
        self.report = ReportFold(folder=self.place.folder)
        self.related = Related(self.place.workspace.journal)

    @property
    def activity(self) -> RunState:
        return self.report.state

    def add(self, entry: Entry) -> None:
        self.first = self.first or entry
        if entry.event.tag == "RunContinued":  # perhaps on another worker
            self.related.is_placed = False
        changed = self.report.add(entry)
        if changed.parts - _OF_TOOLS:
            self._latest = None
        self.redraws.add(entry, changed)

    def find_runs(self) -> None:
        """Find the runs of the items of a watch, or the watch of a run in a slot."""
        if self.activity.kind == "watch":
            self.related.find_items()
        elif self.first is not None and self.report.started.options.get("slot"):
            self.related.find_watch(self.run_id)

    @property
    def again(self) -> str:
        """Return the command line that starts the run again; "" if it is done or at work."""
        state = self.result(again=False).state
        if self.running or self.first is None or state == "running":
            return ""
        if self.activity.kind == "watch":
            return "cuggino watch"
        return resume_command(self.report.started, state, self.run_id) or ""

    @property
    def working(self) -> tuple[Working, ...]:
        """Return the items in the slots of a watch, whose stages are in their own journals."""
        return tuple(
            Working(
                run_id=self.related.run_of(part.item),
                title=part.title,
                activity=replace(part, role=""),
                slot=part.slot,
            )
            for part in self.activity.at_work
        )

    def result(self, *, transcripts: Iterable[int] = (), again: bool = True) -> RunReport:
        """Return the report, with the transcripts of these stages.

        Without `again`, data that only slow parts show may be missing.
        """
        report = self._latest
        if report is None or again or (report.state == "running") != self.running:
            now = datetime.now(UTC) if self.running else None
            report = self._latest = self.report.result(running_at=now, transcripts=False)
        wanted = set(transcripts)
        if not wanted:
            return report
        known = (
            self.report.transcript(place) if place in wanted else Transcript()
            for place in range(len(report.stages))
        )
        return replace(report, transcripts=tuple(known))

    def view(self, *, transcripts: Iterable[int] = (), again: bool = True) -> View:
        report = self.result(transcripts=transcripts, again=again)
        zone = zone_at(report.start)
        return view_of(report, zone=zone, live=True, payload=_PAYLOAD, rows=_MOST_ROWS)


def run_page(site: Site, fold: RunFold, *, seq: int) -> str:
    """Return the page of a run; transcripts of finished stages are loaded when unfolded."""
    channel = site.channel(fold.place, fold.run_id)
    if fold.first is None:
        return message_page(site, title="Nothing yet", text="This run has not written anything.")
    fold.find_runs()
    report = fold.result()
    stages = report.stages
    first = max(len(stages) - _MOST_STAGES, 0)
    opened = [place for place, one in enumerate(stages) if one.ending == "running"]
    if not opened and report.state == "killed":
        opened = [place for place, one in enumerate(stages) if one.kind in AGENT_KINDS][-1:]
    view = fold.view(transcripts=opened)
    return _render(
        "run.html",
        site,
        place=fold.place,
        fold=fold,
        view=view,
        report=view.report,
        activity=fold.activity,
        first=first,
        opened=opened,
        parts=(*_AT_ONCE, *_SLOWLY),
        seq=seq,
        channel=channel,
    )


def run_fragments(site: Site, fold: RunFold, since: int, *, slow: bool) -> list[Fragment]:
    """Return the changes since the last call; charts and lists only if `slow`."""
    if fold.first is None:
        return []
    changes = fold.redraws.since(since, slow=slow)
    if slow:
        fold.find_runs()
    wanted = {stage for stage, _ in changes.rows} | set(changes.begun)
    view = fold.view(transcripts=wanted, again=bool(changes.stages or changes.parts))
    parts = [
        Fragment(name, "replace", _part(f"run_{name}", site, fold, view))
        for name in ("title", "head", "acts", "waits", "now")
    ]
    for place in changes.stages:
        if place not in changes.begun:
            parts.append(Fragment(f"line-{place}", "replace", _part("line", view, place)))
        elif html := _part("stage", site, fold, view, place, True):
            parts.append(Fragment("stages", "append", html))
    known = {(stage, row.n): row for stage in wanted for row in view.transcript(stage).rows}
    for stage, number in changes.rows:
        row = known.get((stage, number))
        if row is None or stage in changes.begun:
            continue
        html = _part("row", view, stage, row)
        if (stage, number) in changes.appended:
            parts.append(Fragment(f"s{stage}", "append", html))
        else:
            parts.append(Fragment(f"row-{stage}-{number}", "outer", html))
    if fold.activity.kind == "watch":
        parts.append(Fragment("p-items", "replace", _part("items", site, fold, view)))
    for name in changes.parts:
        own = name == "commits"
        html = _part("commits", site, fold, view) if own else _part("part", view, name)
        parts.append(Fragment(f"p-{name}", "replace", html))
    return parts


def stage_fragment(site: Site, fold: RunFold, stage: str, entries: Iterable[Entry]) -> str:
    """Return the transcript of a stage from its entries."""
    assert fold.first is not None  # a stage is only known from entries
    read = ReportFold(folder=fold.place.folder)
    read.add(fold.first)
    for entry in entries:
        read.add(entry)
    report = read.result()
    view = view_of(report, zone=zone_at(report.start), payload=_PAYLOAD)
    return "".join(_part("rows_of", view, place) for place in range(len(report.stages)))


def commit_fragment(diff: CommitDiff | None, message: str) -> str:
    """Return the changes of a commit; None stands for one that is gone from the repository."""
    return _part("commit", diff, message)


# Forms


def add_page(
    site: Site,
    place: Place,
    values: Mapping[str, str],
    error: CugginoError | None = None,
) -> str:
    """Return the form for a new item."""
    return _render("add.html", site, place=place, values=values, error=error)


def item_page(
    site: Site,
    place: Place,
    item: Item,
    text: str | None = None,
    error: CugginoError | None = None,
) -> str:
    """Return the form of an item; `text` is a person's text that could not be saved."""
    return _render("item.html", site, place=place, item=item, text=text, error=error)


def issue_page(
    site: Site,
    place: Place,
    question: Asked,
    values: Mapping[str, str] | None = None,
    error: CugginoError | None = None,
) -> str:
    """Return the form of a spec issue or finding."""
    return _render(
        "issue.html", site, place=place, question=question, values=values or {}, error=error
    )


def spec_page(
    site: Site,
    place: Place,
    name: str,
    written: Any,
    issue: str = "",
    text: str | None = None,
    error: CugginoError | None = None,
) -> str:
    """Return the form of a specification."""
    return _render(
        "spec.html",
        site,
        place=place,
        name=name,
        written=written,
        issue=issue,
        text=text,
        error=error,
    )


def unsaved_page(site: Site, place: Place, values: Mapping[str, str], error: CugginoError) -> str:
    """Return a page with the error and the text a person wrote, so that nothing is lost."""
    return _render("unsaved.html", site, place=place, values=values, error=error)


def confirm_page(site: Site, place: Place, values: Mapping[str, str], *, command: str) -> str:
    """Return the page that asks for a confirmation of an act that the page cannot take back."""
    return _render(
        "confirm.html",
        site,
        place=place,
        do=values["do"],
        run=values.get("run", ""),
        item=values.get("item", ""),
        name=values.get("item", "").removesuffix(".md"),
        command=command,
    )


def message_page(site: Site | None, *, title: str, text: str) -> str:
    """Return a page with a message; without a site it has no links."""
    return _render("message.html", site, title=title, text=text)


# Templates


def first_item(report: RunReport) -> int:
    """Return the number of the first item of a watch that its page shows."""
    return max(len(report.watched) - _MOST_ITEMS, 0) + 1


def _item_of(path: Path) -> str:
    origin = origin_of(path)
    return item_name(origin.item) if origin else ""


def load_templates() -> None:
    """Read and compile all templates, so that the package may be replaced under a server."""
    made = _environment()
    for name in made.list_templates():
        made.get_template(name)


@functools.cache
def _environment() -> Environment:
    made = environment(Path(__file__).with_name("templates"))
    made.filters |= {
        "markdown": functools.lru_cache(_MOST_PROSE)(made.filters["markdown"]),
        "clock": clock,
        "cents": cost_of,
        "short": short_number,
    }
    made.filters["current"] = current
    made.globals |= {
        "plan_in": plan_in,
        "first_item": first_item,
        "item_name": item_name,
        "most_items": _MOST_ITEMS,
        "sent_back_text": sent_back_text,
        "tool_target": tool_target,
        "name_of": name_of,
        "question_name": question_name,
        "question_text": question_text,
    }
    return made


def _render(template: str, site: Site | None, **values: Any) -> str:
    return _environment().get_template(template).render(site=site, **values)


@functools.cache
def _parts() -> Any:
    return _environment().get_template("parts.html").module


def _part(name: str, *values: Any) -> str:
    return str(getattr(_parts(), name)(*values)).strip()


def clock(at: datetime | None) -> str:
    """Return the local time, with the date if it is another day."""
    if at is None:
        return ""
    local, today = at.astimezone(), datetime.now().astimezone().date()
    return f"{local:%H:%M}" if local.date() == today else f"{local:%b} {local.day}, {local:%H:%M}"


def current(windows: Iterable[QuotaUsed]) -> tuple[QuotaUsed, ...]:
    """Return the usage windows that are not reset yet."""
    return unreset(windows, datetime.now(UTC))


def name_of(fold: RunFold, report: RunReport) -> str:
    """Return a short name for what a run is about."""
    return report.title or {"watch": "Watch"}.get(report.kind, fold.run_id[:8])


def question_text(question: Question) -> str:
    """Return the text of a question without its title and the options, which have buttons."""
    text = without_title(question.text, question.title)
    return without_options(text) if question.options else text
