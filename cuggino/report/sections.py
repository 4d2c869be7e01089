"""The upper sections of a report: header, stages, notices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from cuggino.events import DeliverExit
from cuggino.report.markup import Child, Html, join, tag, to_json
from cuggino.report.model import Process, ReportState, RunReport, StageTry, Tone
from cuggino.report.times import Times
from cuggino.report.wording import (
    all_tokens,
    counted,
    duration,
    first_line,
    money,
    number,
    outcome,
    standing,
)
from cuggino.storage.journal import Delivery

T = TypeVar("T")

_NO_FOCUS = {
    "run": "no focus",
    "watch": "a watch",
    "deliver": "no deliverables yet",
    "loop": "the jobs of the project",
}

MOST_ROWS: Final = 1000
"""Rows of a static table; the rest is in the table of events."""

_STATES: dict[ReportState, tuple[str, Tone]] = {
    "approved": ("approved", "good"),
    "ended": ("ended", "neutral"),
    "spec_issue": ("spec issue", "warning"),
    "max_iterations": ("rounds used up", "warning"),
    "stalled": ("stalled", "bad"),
    "failed": ("failed", "bad"),
    "quota": ("usage limit", "warning"),
    "budget": ("budget spent", "warning"),
    "interrupted": ("interrupted", "warning"),
    "running": ("running", "neutral"),
    "killed": ("killed", "bad"),
}

_REASONS: dict[tuple[ReportState, DeliverExit | None], tuple[str, Tone]] = {
    ("approved", "all_passed"): ("passed", "good"),
    ("approved", "all_verified"): ("verified", "good"),
    ("ended", "all_blocked"): ("all blocked", "warning"),
    ("max_iterations", "max_iterations"): ("sessions used up", "warning"),
}
"""Labels for reasons of the deliverables loop, shown instead of the state."""


def section(title: str, *children: Child, name: str, note: str | None = None) -> Html:
    """Render a section with a heading and a subdued sentence below it."""
    said = tag("p", note, class_="note") if note else None
    return tag("section", tag("h2", title), said, *children, id=name)


def table(heads: Sequence[str], rows: Iterable[Sequence[Child]], *, numeric: str = "") -> Html:
    """Render a table; in `numeric`, `n` marks right-aligned columns."""
    classes = ["num" if mark == "n" else None for mark in numeric.ljust(len(heads))]
    head = tag("tr", [tag("th", text, class_=c) for text, c in zip(heads, classes, strict=True)])
    body = [
        tag("tr", [tag("td", cell, class_=c) for cell, c in zip(row, classes, strict=True)])
        for row in rows
    ]
    return tag("div", tag("table", tag("thead", head), tag("tbody", body)), class_="scroll")


def first_rows(items: Sequence[T]) -> tuple[Sequence[T], Html | None]:
    """Return the first rows, and a note on how many are not shown."""
    left_out = len(items) - MOST_ROWS
    if left_out <= 0:
        return items, None
    words = f"{number(left_out)} more are left out here; the events below have them."
    return items[:MOST_ROWS], tag("p", words, class_="note")


def badge(text: str, tone: Tone) -> Html:
    """Render a short word in the color of its tone."""
    return tag("span", text, class_=f"badge {tone}")


def _state(process: Process) -> Html:
    return badge(*_REASONS.get((process.state, process.reason), _STATES[process.state]))


def header(report: RunReport, times: Times) -> Html:
    """Render the run's identity and totals."""
    focus = report.focus or report.item or standing(report) or _NO_FOCUS[report.kind]
    title = first_line(focus, 160)
    whole = None
    if title != focus.strip():
        whole = tag("details", tag("summary", "Whole focus"), tag("pre", focus))
    return tag(
        "header",
        tag("p", f"cuggino {report.kind} ", tag("code", report.run_id), class_="eyebrow"),
        tag("h1", title, " ", _state(report.processes[-1])),
        whole,
        tag("p", report.message, class_="message") if report.message else None,
        tag("dl", [_tile(*tile) for tile in _tiles(report, times)], class_="tiles"),
        _more(report, times),
    )


def _tile(name: str, value: str, detail: str = "") -> Html:
    more = tag("dd", detail, class_="detail") if detail else None
    return tag("div", tag("dt", name), tag("dd", value), more)


def _tiles(report: RunReport, times: Times) -> Iterable[tuple[str, str] | tuple[str, str, str]]:
    totals, usage = report.totals, report.totals.usage
    ended = "now" if report.state == "running" else times.short(report.end)
    date, _, time = times.full(report.start).partition(" ")
    yield "Started", time, f"{date}, to {ended}"
    whole = (report.end - report.start).total_seconds()
    gaps = len(report.processes) > 1
    yield "Worked", duration(report.worked), f"in {duration(whole)}" if gaps else ""
    yield "Agent", report.agent or "–", counted(totals.agents, "session")
    if report.kind == "watch":
        yield "Items", number(report.items)
    if report.delivery is not None:
        yield from _delivery_tiles(report.delivery)
    else:
        yield "Rounds", number(totals.rounds)
        yield "Tasks", number(totals.tasks)
        yield "Commits", number(len(report.commits))
    yield "Cost", money(totals.cost_usd)
    if usage is None:
        yield "Tokens", "–"
    else:
        cached = f"{number(usage.cache_read_tokens)} read from cache"
        yield "Tokens", number(all_tokens(usage)), cached if usage.cache_read_tokens else ""


def _delivery_tiles(delivery: Delivery) -> Iterable[tuple[str, str, str]]:
    failed = f"{number(delivery.failures)} failed" if delivery.failures else ""
    yield "Sessions", number(len(delivery.sessions)), failed
    listed = delivery.listed
    if listed is None:
        yield "Deliverables", "–", ""
        return
    parts = ((listed.blocked, "blocked"), (listed.verified, "verified"))
    more = [f"{number(count)} {word}" for count, word in parts if count]
    passed = f"{number(listed.passed)} of {number(len(listed.deliverables))}"
    yield "Deliverables", passed, ", ".join(("passed", *more))


def _more(report: RunReport, times: Times) -> Html:
    rows = [
        (
            times.full(process.start),
            duration(process.seconds),
            _state(process),
            join(
                tag("code", process.command),
                *([tag("br"), process.message] * bool(process.message)),
            ),
        )
        for process in report.processes
    ]
    options = [
        tag("li", tag("code", f"{name}: {to_json(value)}"))
        for name, value in report.options.items()
    ]
    return tag(
        "details",
        tag("summary", f"{counted(len(rows), 'process', 'processes')}, options"),
        table(["Started", "Worked", "Ended", "Command"], rows),
        tag("p", "Backlog item: ", tag("code", report.item)) if report.item else None,
        tag("ul", options, class_="plain") if options else None,
    )


def stages(report: RunReport, times: Times) -> Html | None:
    """Render the bars of the timeline as a table."""
    if not report.stages:
        return None
    shown, note = first_rows(report.stages)
    heads = ["Stage", "Started", "Took", "Cost", "Outcome"]
    has_snapshots = any(stage.snapshot for stage in report.stages)
    if has_snapshots:
        heads.append("Back to before it")
    rows = [
        (
            tag("span", tag("i", class_=f"dot {stage.kind}"), stage.title, class_="id"),
            tag("span", times.short(stage.start), class_="id"),
            duration(stage.seconds),
            money(stage.cost_usd),
            _ending(stage),
            *([_undo(stage)] if has_snapshots else []),
        )
        for stage in shown
    ]
    summary = tag("summary", f"The {counted(len(report.stages), 'bar')} as a table")
    return tag("details", summary, table(heads, rows, numeric="  nn"), note)


def _undo(stage: StageTry) -> Html | None:
    return tag("code", f"cuggino undo {stage.snapshot}") if stage.snapshot else None


def _ending(stage: StageTry) -> str:
    match stage.ending:
        case "finished":
            return outcome(stage.outcome)
        case "repeated":
            return "cut off, done again later"
        case "unfinished":
            return "cut off"
        case "running":
            return "running"


def notices(report: RunReport, times: Times) -> Html | None:
    """Render waits, retries, budgets, stalls and failures."""
    if not report.notices:
        return None
    shown, note = first_rows(report.notices)
    rows = [
        (
            tag("span", times.short(notice.at), class_="id"),
            badge(notice.kind, notice.tone),
            tag("span", notice.stage, class_="id") if notice.stage else None,
            notice.text,
        )
        for notice in shown
    ]
    heads = ["Time", "What", "Stage", "Details"]
    return section("Notices", table(heads, rows), note, name="notices")
