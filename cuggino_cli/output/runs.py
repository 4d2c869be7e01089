"""The words for recorded runs: the table of all of them, and the page about one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import JsonValue

from cuggino.events import RunResumed, RunStarted
from cuggino.storage.journal_delivery import Delivery
from cuggino_cli.output.cells import cut, first_line, flat, money, padded
from cuggino_cli.output.durations import format_duration
from cuggino_cli.output.runs_delivery import delivery_counts, delivery_lines
from cuggino_cli.output.sanitize import inert
from cuggino_cli.output.theme import Fragment, Label
from cuggino_cli.output.widths import width

STATES: dict[str, tuple[Label, str]] = {
    "running": ("progress", "running"),
    "killed": ("warning", "killed"),
    "approved": ("success", "approved"),
    "all_passed": ("success", "passed"),
    "all_verified": ("success", "verified"),
    "all_blocked": ("caution", "all blocked"),
    "spec_issue": ("problem", "spec issue"),
    "max_iterations": ("caution", "max iterations"),
    "stalled": ("caution", "stalled"),
    "ended": ("round", "ended"),
    "failed": ("failure", "failed"),
    "quota": ("warning", "quota"),
    "budget": ("warning", "budget"),
    "interrupted": ("warning", "interrupted"),
    "unreadable": ("failure", "unreadable"),
}
"""How each state looks, and its name; those that begin with `all` are of a delivery."""

_GAP = "  "
_LEAST_FOCUS = 10
"""Columns for the focus; with fewer the table becomes a list."""
_LONGEST_AGENT = 20
_INDENT = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What the table says of one run; None where it is not known."""

    id: str
    state: str
    started: datetime | None = None
    seconds: float | None = None
    iterations: int | None = None
    cost_usd: float | None = None
    agent: str = ""
    focus: str = ""
    """What it works on; of a journal that cannot be read, why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRow:
    """What the page says of one stage."""

    stage: str
    seconds: float | None = None
    """From the beginning of its last attempt to its end; None when it has no end."""
    attempts: int = 1
    outcome: JsonValue = None
    """As in the journal."""


def runs_fragments(rows: Sequence[Row], *, columns: int | None) -> list[Fragment]:
    """A line for each run, below a line of headings; on a narrow terminal some lines for each.

    Pure. Nothing is wider than `columns`; with None, for a file or a pipe, nothing is cut.
    """
    cells = [_cells(row) for row in rows]
    heads = ("ID", "STATE", "STARTED", "TIME", "ITER", "COST", "AGENT")
    widths = [max(width(line[at]) for line in (heads, *cells)) for at in range(len(heads))]
    taken = sum(widths) + len(_GAP) * len(widths)
    if columns is not None and columns - taken < _LEAST_FOCUS:
        return _joined(line for row in rows for line in _block(row, columns))
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
    return _joined(lines)


def run_fragments(
    started: RunStarted,
    *,
    state: str,
    at: datetime,
    totals: RunResumed,
    stages: Sequence[StageRow],
    message: str,
    hint: str | None,
    columns: int | None,
    delivery: Delivery | None = None,
) -> list[Fragment]:
    """The page about one run: what it was to do, what it came to, its stages, how to go on.

    Pure. `at` is when it began, `message` what went wrong. Of the stages that ended, those are
    shown whose outcome is an event; the others are small deeds of the loop itself. Of a `delivery`
    the sessions are shown in their place, and the deliverables.
    """
    label, word = STATES[state]
    lines = [[Fragment("round", f"Run {started.run_id} "), Fragment(label, word)]]
    counts = _counts(totals) if delivery is None else delivery_counts(delivery)
    for name, text in _facts(started, at, totals, message, counts):
        indented = inert(text.strip()).replace("\n", "\n" + " " * _INDENT)
        lines.append([Fragment("prose", f"  {name:<9}"), Fragment("plain", indented)])
    told = [stage for stage in stages if stage.seconds is None or _is_event(stage.outcome)]
    if delivery is not None:
        lines += delivery_lines(delivery, is_running=state == "running", columns=columns)
    elif told:
        lines += [[], [Fragment("round", "Stages")]]
        first = max(width(flat(stage.stage)) for stage in told)
        lines += [_stage(stage, first, state, columns) for stage in told]
    if hint:
        lines += [[], [Fragment("round", f"{'Next':<{_INDENT}}"), Fragment("plain", hint)]]
    return _joined(lines)


def outcome_text(outcome: JsonValue) -> str:
    """What a stage came to, as the journal says it, in a few words."""
    match outcome:
        case {"_tag": str(tag), "exit_code": code}:
            return f"{tag}: exit code {code}"
        case {"_tag": str(tag), "commit_hash": str(commit), "message": str(text)}:
            return f"{tag}: {commit} {first_line(text)}"
        case {"_tag": str(tag), "content": str(text)} | {"_tag": str(tag), "message": str(text)}:
            return f"{tag}: {first_line(text)}" if text.strip() else tag
        case {"_tag": str(said)} | {"time": str(said)} | {"value": str(said)}:
            return first_line(said)
        case {"value": None} | None:
            return ""
        case {"value": value}:
            return json.dumps(value, ensure_ascii=False)
        case _:
            return json.dumps(outcome, ensure_ascii=False)


def item_name(started: RunStarted) -> str:
    """The backlog item of the run, without the digest of its content; empty without one."""
    item = started.item or ""
    return item.rpartition(" ")[0] or item


def _cells(row: Row) -> tuple[str, ...]:
    return (
        flat(row.id),
        STATES[row.state][1],
        "" if row.started is None else f"{row.started.astimezone():%m-%d %H:%M}",
        "" if row.seconds is None else format_duration(row.seconds),
        "" if row.iterations is None else str(row.iterations),
        money(row.cost_usd),
        cut(flat(row.agent), _LONGEST_AGENT + 1),
    )


def _block(row: Row, columns: int) -> Iterator[list[Fragment]]:
    """The same for a narrow terminal."""
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
    yield "Command", started.command
    if started.focus:
        yield "Focus", started.focus
    if started.item:
        yield "Item", item_name(started)
    yield "Agent", started.agent or "unknown"
    yield "Started", f"{at.astimezone():%Y-%m-%d %H:%M:%S}"
    yield "Duration", format_duration(totals.duration)
    yield from counts
    if totals.cost_usd is not None:
        yield "Cost", money(totals.cost_usd)
    if totals.usage is not None:
        usage = totals.usage
        cached = usage.cache_read_tokens + usage.cache_creation_tokens
        yield "Tokens", f"{usage.input_tokens} in, {usage.output_tokens} out, {cached} cached"


def _counts(totals: RunResumed) -> Iterator[tuple[str, str]]:
    yield "Rounds", str(totals.rounds)
    yield "Tasks", str(totals.tasks)
    yield "Agents", str(totals.agents)
    yield "Commits", str(len(totals.commits))
    for commit, subject in totals.commits:
        yield "", f"{commit} {subject}"


def _stage(row: StageRow, first: int, state: str, columns: int | None) -> list[Fragment]:
    name = padded(flat(row.stage), first)
    again = f" ({row.attempts} attempts)" if row.attempts > 1 else ""
    if row.seconds is None:
        word = "running" if state == "running" else "unfinished"
        return [Fragment("plain", f"  {name}  "), Fragment(STATES["killed"][0], word + again)]
    told = f"  {name}  {format_duration(row.seconds):>7}  "
    room = None if columns is None else max(columns - width(told), 1)
    text = flat(outcome_text(row.outcome)) + again
    return [Fragment("plain", (told + cut(text, room)).rstrip())]


def _is_event(outcome: JsonValue) -> bool:
    return isinstance(outcome, dict) and "_tag" in outcome


def _joined(lines: Iterator[list[Fragment]] | Sequence[list[Fragment]]) -> list[Fragment]:
    fragments: list[Fragment] = []
    for number, line in enumerate(lines):
        fragments += [Fragment("plain", "\n"), *line] if number else line
    return fragments
