"""Recorded runs: the table of all runs, and the page about one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from cuggino.events import DeliverStatus, RunResumed, RunStarted
from cuggino.runs import (
    DeliverableCourse,
    DeliveredSession,
    Delivery,
    RecordedRun,
    StageTry,
    UnreadableRun,
    Waiting,
    cost_of,
    title_of,
)
from cuggino.runs.words import SESSION_ENDS, format_duration
from cuggino_cli.screen import tables
from cuggino_cli.screen.columns import cut, padded, width
from cuggino_cli.screen.fragments import Fragment, Label, joined
from cuggino_cli.screen.summary import passed_text
from cuggino_cli.screen.tables import GAP
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

_HEADS = ("ID", "STATE", "STARTED", "TIME", "ITER", "COST", "AGENT", "WAITS", "FOCUS")
_WAITS = {"spec-issue": "a question", "approval": "your approval"}
"""What waits for the user, where its kind is not the word for it."""
_LEAST_FOCUS = 10
"""Columns for the focus; with fewer, the table becomes a list."""
_LONGEST_AGENT = 20
_INDENT = 13


def runs_fragments(rows: Sequence[tables.Row], *, columns: int | None) -> list[Fragment]:
    """Return a table with a row for each run, or a list on a narrow terminal."""
    heads = [*_HEADS]
    if not any(row.cells[-1] for row in rows):  # nothing waits for the user
        heads.remove("WAITS")
        rows = [row._replace(cells=row.cells[:-1]) for row in rows]
    shown = tables.table(heads, rows, columns=columns, least=_LEAST_FOCUS)
    if shown is None and columns is not None:
        return joined(line for row in rows for line in _block(row, columns))
    return shown or []


def run_rows(
    runs: Sequence[RecordedRun | UnreadableRun], waits: Mapping[str, Waiting]
) -> list[tables.Row]:
    """Return the rows of runs, newest first; `waits` has what waits for the user by run id."""
    of_items: dict[str, list[str]] = {}
    for run in reversed(runs):
        if isinstance(run, RecordedRun) and run.started.item:
            of_items.setdefault(run.started.item, []).append(run.id)
    again = {
        run_id: f" (run {number} of {len(ids)})"
        for ids in of_items.values()
        if len(ids) > 1
        for number, run_id in enumerate(ids, 1)
    }
    return [_row(run, again.get(run.id, ""), waits.get(run.id)) for run in runs]


def _row(run: RecordedRun | UnreadableRun, again: str, waits: Waiting | None) -> tables.Row:
    """Return the row of a run: its facts, and its focus or the error of its journal."""
    if isinstance(run, UnreadableRun):
        label, word = STATES["unreadable"]
        unknown = [""] * (len(_HEADS) - 3)
        return tables.Row((flat(run.short_id), word, *unknown), label, flat(run.error.message))
    started, totals, delivery = run.started, run.totals, run.delivery
    focus = title_of(started.focus or "") or _item_name(started)
    if delivery is not None:
        focus = _delivery_focus(delivery, started)
    label, word = STATES[run.shown_state]
    cells = (
        flat(run.short_id),
        word,
        f"{run.digest.began.astimezone():%m-%d %H:%M}",
        format_duration(totals.duration),
        str(totals.rounds or ("" if started.has_runs else 0)),
        cost_of(totals),
        cut(flat(started.agent), _LONGEST_AGENT + 1),
        "" if waits is None else _WAITS.get(waits.kind, waits.kind),
    )
    text = f"{focus}{again}" if focus else f"({started.command}{_slots(started)})"
    return tables.Row(cells, label, flat(text))


def run_fragments(run: RecordedRun, *, columns: int | None) -> list[Fragment]:
    """Return the page about one run: its facts, its stages, how to resume it.

    Finished stages are shown if their outcome is an event; the others are internal steps. A
    delivery shows sessions and deliverables instead.
    """
    delivery, state = run.delivery, run.shown_state
    label, word = STATES[state]
    lines = [[Fragment("heading", f"Run {run.started.run_id} "), Fragment(label, word)]]
    for name, text in _facts(run):
        indented = inert(text.strip()).replace("\n", "\n" + " " * _INDENT)
        lines.append([Fragment("prose", f"  {name:<11}"), Fragment("plain", indented)])
    if delivery is not None:
        lines += _delivery_lines(delivery, is_running=state == "running", columns=columns)
    else:
        stages = [
            stage
            for stage in run.folded.stages.last_tries
            if stage.ending != "finished" or _is_event(stage.outcome)
        ]
        if stages:
            lines += [[], [Fragment("heading", "Stages")]]
        first = max((width(flat(stage.stage)) for stage in stages), default=0)
        lines += [_stage(stage, first, state, columns) for stage in stages]
    if hint := resume_hint(run):
        lines += [[], [Fragment("heading", f"{'Next':<{_INDENT}}"), Fragment("plain", hint)]]
    return joined(lines)


def resume_hint(run: RecordedRun) -> str | None:
    """Return how to resume the run, if it can be."""
    return f"resume it: {run.resume_command}" if run.resume_command else None


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


def _item_name(started: RunStarted) -> str:
    """Return the backlog item of the run without the digest of its content, or ""."""
    item = started.item or ""
    return item.rpartition(" ")[0] or item


def _slots(started: RunStarted) -> str:
    """Return `, 3 slots` for a watch with several, or ""."""
    slots = started.options.get("slots") if started.kind == "watch" else None
    return f", {slots} slots" if isinstance(slots, int) and slots > 1 else ""


def _block(row: tables.Row, columns: int) -> Iterator[list[Fragment]]:
    """Yield the lines of a run for a narrow terminal."""
    run_id, state, started, took, iterations, *rest = row.cells
    yield [Fragment("plain", f"{run_id}{GAP}"), Fragment(row.label, state)]
    if iterations:
        iterations += " iteration" + ("" if iterations == "1" else "s")
    words = (started, took, iterations, *rest)
    yield from tables.indented(words, columns, "plain", gap=GAP)
    if row.text:
        yield [Fragment("plain", GAP + cut(row.text, columns - len(GAP)))]


def _facts(run: RecordedRun) -> Iterator[tuple[str, str]]:
    started, totals = run.started, run.totals
    if run.message:
        yield "Problem", run.message
    yield "Command", f"{started.command}{_slots(started)}"
    if started.focus:
        yield "Focus", title_of(started.focus)
    if started.item:
        yield "Item", _item_name(started)
    yield "Agent", started.agent or "unknown"
    yield "Started", f"{run.digest.began.astimezone():%Y-%m-%d %H:%M:%S}"
    yield "Duration", format_duration(totals.duration)
    if started.kind == "watch":
        yield from _watch_counts(run)
    elif run.delivery is not None:
        yield from _delivery_counts(run.delivery)
    else:
        yield from _counts(totals)
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


def _watch_counts(run: RecordedRun) -> Iterator[tuple[str, str]]:
    """Yield the facts of a watch; iterations and commits are those of its items' own runs."""
    state = run.folded
    yield "Items", f"{state.done} completed" + (f", {state.parked} parked" if state.parked else "")
    landed, returns = len(state.landings), state.sent_back_count
    if landed or returns:
        yield "Landed", f"{landed}" + (f", {returns} sent back" if returns else "")
    if run.totals.rounds:  # in journals of older versions
        yield from _counts(run.totals)


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


_STATUSES: Mapping[DeliverStatus, Label] = {
    "passed": "success",
    "blocked": "caution",
    "pending": "plain",
}


def _delivery_focus(delivery: Delivery, started: RunStarted) -> str:
    """Return the progress of the run for the focus column, or "" if unknown."""
    listed = delivery.listed
    if listed is None or not listed.deliverables:
        return ""
    total = len(listed.deliverables)
    if started.options.get("workflow") == "sync":
        return f"{listed.verified}/{total} deliverables verified"
    return f"{listed.passed}/{total} deliverables passed"


def _delivery_counts(delivery: Delivery) -> Iterator[tuple[str, str]]:
    """Yield the facts in the place of iterations, tasks and commits."""
    failed = f" ({delivery.failures} failed)" if delivery.failures else ""
    yield "Sessions", f"{len(delivery.sessions)}{failed}"
    yield "Passed", passed_text(delivery.listed)
    ended = delivery.ended
    if ended is not None and ended.verified is not None:
        yield "Verified", f"{ended.verified}/{ended.to_verify} deliverables"
    elif delivery.listed is not None and delivery.listed.verified:
        yield "Verified", f"{delivery.listed.verified} deliverables"


def _delivery_lines(
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
    label, word = SESSION_ENDS[session.ended.outcome]
    message = flat(first_line(session.ended.message))
    room = None if columns is None else max(columns - width(lead) - width(word), 1)
    text = cut((f": {message}" if message and message != word else "") + again, room)
    return [Fragment("plain", lead), Fragment(label, word), Fragment("plain", text)]
