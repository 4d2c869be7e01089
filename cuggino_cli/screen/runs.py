"""Recorded runs: the table of all runs, and the page about one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import JsonValue

from cuggino.events import DeliverOutcome, DeliverStatus, RunResumed, RunStarted
from cuggino.runs import (
    DeliverableCourse,
    DeliveredSession,
    Delivery,
    RunState,
    StageTry,
    cost_of,
    title_of,
)
from cuggino.runs.words import format_duration
from cuggino_cli.screen.columns import cut, padded, width
from cuggino_cli.screen.fragments import Fragment, Label, joined
from cuggino_cli.screen.summary import passed_text
from cuggino_cli.screen.text import first_line, flat, inert

STATES: dict[str, tuple[Label, str]] = {
    "running": ("progress", "running"),
    "killed": ("warning", "killed"),
    "approved": ("success", "approved"),
    "unchecked": ("caution", "approved, unchecked"),
    "all_passed": ("success", "passed"),
    "all_verified": ("success", "verified"),
    "all_blocked": ("caution", "all blocked"),
    "spec_issue": ("problem", "spec issue"),
    "max_iterations": ("caution", "max iterations"),
    "stalled": ("caution", "stalled"),
    "ended": ("heading", "ended"),
    "failed": ("failure", "failed"),
    "quota": ("warning", "quota"),
    "budget": ("warning", "budget"),
    "interrupted": ("warning", "interrupted"),
    "unreadable": ("failure", "unreadable"),
}
"""Label and name of each state; those that begin with `all` belong to `deliver`."""

_GAP = "  "
_LEAST_FOCUS = 10
"""Columns for the focus; with fewer, the table becomes a list."""
_LONGEST_AGENT = 20
_INDENT = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run in the table; None means unknown."""

    id: str
    state: str
    started: datetime | None = None
    seconds: float | None = None
    iterations: int | None = None
    cost: str = ""
    agent: str = ""
    focus: str = ""
    """The title of what it works on; for an unreadable journal, the error."""
    waits: str = ""
    """What waits for the user because of it."""


def runs_fragments(rows: Sequence[Row], *, columns: int | None) -> list[Fragment]:
    """Return a table with a row for each run, or a list on a narrow terminal.

    Nothing is wider than `columns`; None, for a file or a pipe, means no limit.
    """
    cells = [_cells(row) for row in rows]
    heads: tuple[str, ...] = ("ID", "STATE", "STARTED", "TIME", "ITER", "COST", "AGENT", "WAITS")
    if not any(row.waits for row in rows):
        heads, cells = heads[:-1], [line[:-1] for line in cells]
    widths = [max(width(line[at]) for line in (heads, *cells)) for at in range(len(heads))]
    taken = sum(widths) + len(_GAP) * len(widths)
    if columns is not None and columns - taken < _LEAST_FOCUS:
        return joined(line for row in rows for line in _block(row, columns))
    room = None if columns is None else columns - taken
    lines = [[Fragment("prose", _GAP.join((*map(padded, heads, widths), "FOCUS")))]]
    for row, line in zip(rows, cells, strict=True):
        first, state, *rest = map(padded, line, widths)
        focus = cut(flat(row.focus), room)
        lines.append(
            [
                Fragment("plain", first + _GAP),
                Fragment(STATES[row.state][0], state),
                Fragment("plain", _GAP + _GAP.join((*rest, focus)).rstrip()),
            ]
        )
    return joined(lines)


def run_fragments(
    started: RunStarted,
    *,
    state: str,
    at: datetime,
    totals: RunResumed,
    run: RunState,
    message: str,
    hint: str | None,
    columns: int | None,
    delivery: Delivery | None = None,
) -> list[Fragment]:
    """Return the page about one run: its facts, its stages, how to resume it.

    `at` is its start, `message` its error, `run` its state. Finished stages are shown if their
    outcome is an event; the others are internal steps. A `delivery` shows sessions and deliverables
    instead.
    """
    label, word = STATES[state]
    lines = [[Fragment("heading", f"Run {started.run_id} "), Fragment(label, word)]]
    counts = _counts(totals) if delivery is None else delivery_counts(delivery)
    if started.kind == "watch":
        counts = watch_counts(run, totals)
    for name, text in _facts(started, at, totals, message, counts):
        indented = inert(text.strip()).replace("\n", "\n" + " " * _INDENT)
        lines.append([Fragment("prose", f"  {name:<11}"), Fragment("plain", indented)])
    listed = [
        stage
        for stage in run.stages.last_tries
        if stage.ending != "finished" or _is_event(stage.outcome)
    ]
    if delivery is not None:
        lines += delivery_lines(delivery, is_running=state == "running", columns=columns)
    elif listed:
        lines += [[], [Fragment("heading", "Stages")]]
        first = max(width(flat(stage.stage)) for stage in listed)
        lines += [_stage(stage, first, state, columns) for stage in listed]
    if hint:
        lines += [[], [Fragment("heading", f"{'Next':<{_INDENT}}"), Fragment("plain", hint)]]
    return joined(lines)


def outcome_text(outcome: JsonValue) -> str:
    """Return the outcome of a stage from the journal in a few words."""
    match outcome:
        case {"_tag": str(tag), "exit_code": code}:
            return f"{tag}: exit code {code}"
        case {"_tag": str(tag), "commit_hash": str(commit), "message": str(text)}:
            return f"{tag}: {commit} {first_line(text)}"
        case {"_tag": str(tag), "content": str(text)} | {"_tag": str(tag), "message": str(text)}:
            return f"{tag}: {first_line(text)}" if text.strip() else tag
        case {"_tag": str(text)} | {"time": str(text)} | {"value": str(text)}:
            return first_line(text)
        case {"value": None} | None:
            return ""
        case {"value": value}:
            return json.dumps(value, ensure_ascii=False)
        case _:
            return json.dumps(outcome, ensure_ascii=False)


def item_name(started: RunStarted) -> str:
    """Return the backlog item of the run without the digest of its content, or ""."""
    item = started.item or ""
    return item.rpartition(" ")[0] or item


def slots_of(started: RunStarted) -> str:
    """Return `, 3 slots` for a watch with several, or ""."""
    slots = started.options.get("slots") if started.kind == "watch" else None
    return f", {slots} slots" if isinstance(slots, int) and slots > 1 else ""


def _cells(row: Row) -> tuple[str, ...]:
    return (
        flat(row.id),
        STATES[row.state][1],
        "" if row.started is None else f"{row.started.astimezone():%m-%d %H:%M}",
        "" if row.seconds is None else format_duration(row.seconds),
        "" if row.iterations is None else str(row.iterations),
        row.cost,
        cut(flat(row.agent), _LONGEST_AGENT + 1),
        row.waits,
    )


def _block(row: Row, columns: int) -> Iterator[list[Fragment]]:
    """Yield the lines of a run for a narrow terminal."""
    run_id, state, *rest = _cells(row)
    yield [Fragment("plain", f"{run_id}{_GAP}"), Fragment(STATES[row.state][0], state)]
    if row.iterations is not None:
        rest[2] += " iteration" + ("" if row.iterations == 1 else "s")
    line = ""
    for cell in filter(None, rest):
        if line and width(line + _GAP + cell) + len(_GAP) >= columns:
            yield [Fragment("plain", _GAP + line)]
            line = ""
        line += _GAP + cell if line else cell
    if line:
        yield [Fragment("plain", _GAP + cut(line, columns - len(_GAP)))]
    if row.focus:
        yield [Fragment("plain", _GAP + cut(flat(row.focus), columns - len(_GAP)))]


def _facts(
    started: RunStarted,
    at: datetime,
    totals: RunResumed,
    message: str,
    counts: Iterable[tuple[str, str]],
) -> Iterator[tuple[str, str]]:
    if message:
        yield "Problem", message
    yield "Command", f"{started.command}{slots_of(started)}"
    if started.focus:
        yield "Focus", title_of(started.focus)
    if started.item:
        yield "Item", item_name(started)
    yield "Agent", started.agent or "unknown"
    yield "Started", f"{at.astimezone():%Y-%m-%d %H:%M:%S}"
    yield "Duration", format_duration(totals.duration)
    yield from counts
    if totals.cost_usd is not None:
        yield "Cost", cost_of(totals)
    if totals.usage is not None:
        usage = totals.usage
        cached = usage.cache_read_tokens + usage.cache_creation_tokens
        yield "Tokens", f"{usage.input_tokens} in, {usage.output_tokens} out, {cached} cached"


def _counts(totals: RunResumed) -> Iterator[tuple[str, str]]:
    yield "Iterations", str(totals.rounds)
    yield "Tasks", str(totals.tasks)
    yield "Agents", str(totals.agents)
    yield "Commits", str(len(totals.commits))
    for commit, subject in totals.commits:
        yield "", f"{commit} {subject}"


def watch_counts(run: RunState, totals: RunResumed) -> Iterator[tuple[str, str]]:
    """Yield the facts of a watch; iterations and commits are those of its items' own runs."""
    yield "Items", f"{run.done} completed" + (f", {run.parked} parked" if run.parked else "")
    landed, returns = len(run.landings), run.sent_back_count
    if landed or returns:
        yield "Landed", f"{landed}" + (f", {returns} sent back" if returns else "")
    if totals.rounds:  # in journals of older versions
        yield from _counts(totals)


def _stage(row: StageTry, first: int, state: str, columns: int | None) -> list[Fragment]:
    name = padded(flat(row.stage), first)
    again = f" ({row.attempt} attempts)" if row.attempt > 1 else ""
    if row.ending != "finished":
        word = "running" if state == "running" else "unfinished"
        return [Fragment("plain", f"  {name}  "), Fragment(STATES["killed"][0], word + again)]
    lead = f"  {name}  {format_duration(row.seconds):>7}  "
    room = None if columns is None else max(columns - width(lead), 1)
    text = flat(outcome_text(row.outcome)) + again
    return [Fragment("plain", (lead + cut(text, room)).rstrip())]


def _is_event(outcome: JsonValue) -> bool:
    return isinstance(outcome, dict) and "_tag" in outcome


_OUTCOMES: Mapping[DeliverOutcome, tuple[Label, str]] = {
    "completed": ("success", "completed"),
    "execution_error": ("failure", "failed"),
    "error": ("failure", "failed"),
    "max_turns": ("caution", "turns used up"),
    "interrupted": ("warning", "interrupted"),
    "budget": ("warning", "budget spent"),
    "quota": ("warning", "usage limit"),
}
_STATUSES: Mapping[DeliverStatus, Label] = {
    "passed": "success",
    "blocked": "caution",
    "pending": "plain",
}


def delivery_state(state: str, delivery: Delivery | None) -> str:
    """Return the state to show: for `deliver` the reason of its end."""
    ended = delivery.ended if delivery is not None else None
    if ended is not None and state in ("approved", "ended") and ended.reason.startswith("all_"):
        return ended.reason
    return state


def delivery_focus(delivery: Delivery, started: RunStarted) -> str:
    """Return the progress of the run for the focus column, or "" if unknown."""
    listed = delivery.listed
    if listed is None or not listed.deliverables:
        return ""
    total = len(listed.deliverables)
    if started.options.get("workflow") == "sync":
        return f"{listed.verified}/{total} deliverables verified"
    return f"{listed.passed}/{total} deliverables passed"


def delivery_counts(delivery: Delivery) -> Iterator[tuple[str, str]]:
    """Yield the facts in the place of iterations, tasks and commits."""
    failed = f" ({delivery.failures} failed)" if delivery.failures else ""
    yield "Sessions", f"{len(delivery.sessions)}{failed}"
    yield "Passed", passed_text(delivery.listed)
    ended = delivery.ended
    if ended is not None and ended.verified is not None:
        yield "Verified", f"{ended.verified}/{ended.to_verify} deliverables"
    elif delivery.listed is not None and delivery.listed.verified:
        yield "Verified", f"{delivery.listed.verified} deliverables"


def delivery_lines(
    delivery: Delivery, *, is_running: bool, columns: int | None
) -> Iterator[list[Fragment]]:
    """Yield the deliverables and the sessions, a line each, below their headings."""
    if delivery.deliverables:
        yield from ([], [Fragment("heading", "Deliverables")])
        words = [_standing(item) for item in delivery.deliverables]
        first = max(map(width, words))
        for item, word in zip(delivery.deliverables, words, strict=True):
            yield _deliverable(item, padded(word, first), columns)
    if delivery.sessions:
        yield from ([], [Fragment("heading", "Sessions")])
        rows = [_session_cells(session) for session in delivery.sessions]
        widths = [max(width(row[at]) for row in rows) for at in range(4)]
        for session, row in zip(delivery.sessions, rows, strict=True):
            number, instruction, took, cost = map(padded, row, widths)
            lead = f"  {number}  {instruction}  {took.rstrip():>{widths[2]}}  {cost}  "
            yield _session(session, lead, is_running=is_running, columns=columns)


def _standing(item: DeliverableCourse) -> str:
    if not item.is_wanted:
        return "dropped"
    return f"{item.status}, verified" if item.verified else item.status


def _deliverable(item: DeliverableCourse, word: str, columns: int | None) -> list[Fragment]:
    room = None if columns is None else max(columns - width(word) - 4, 1)
    label = _STATUSES[item.status] if item.is_wanted else "plain"
    text = cut(flat(f"{item.description} ({item.id})"), room)
    return [Fragment(label, f"  {word}  "), Fragment("plain", text)]


def _session_cells(session: DeliveredSession) -> tuple[str, str, str, str]:
    ended = session.ended
    took = format_duration(ended.duration) if ended is not None else ""
    cost = cost_of(ended) if ended is not None else ""
    return str(session.session), session.instruction, took, cost


def _session(
    session: DeliveredSession, lead: str, *, is_running: bool, columns: int | None
) -> list[Fragment]:
    again = f" ({session.attempts} attempts)" if session.attempts > 1 else ""
    if session.ended is None:
        word = "running" if is_running else "unfinished"
        return [Fragment("plain", lead), Fragment("warning", word + again)]
    label, word = _OUTCOMES[session.ended.outcome]
    message = flat(first_line(session.ended.message))
    room = None if columns is None else max(columns - width(lead) - width(word), 1)
    text = cut((f": {message}" if message and message != word else "") + again, room)
    return [Fragment("plain", lead), Fragment(label, word), Fragment("plain", text)]
