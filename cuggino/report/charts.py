"""The charts of a report as plain numbers, which a template draws as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final, NamedTuple, get_args

from cuggino.domain import cost_of, money
from cuggino.report.model import RunReport, Spent
from cuggino.report.outcomes import LANDINGS, OUTCOMES
from cuggino.report.times import Times
from cuggino.report.wording import (
    UNKNOWN,
    all_tokens,
    duration,
    first_line,
    number,
    outcome,
)
from cuggino.runs.state import Process, SlotUse, StageKind, StageTry
from cuggino.runs.words import counted

WIDTH: Final = 1000
LANES: Final[tuple[StageKind, ...]] = get_args(StageKind)
"""From the top down; a lane without a stage is left out."""

_LEFT, _LANE, _BAR = 104, 24, 16
_NARROW = 1.5
_MOST_BARS = 300
"""Above this, neighbors of a lane that are too narrow to be seen are drawn as one."""
_MOST_MARKS = 200
_MOST_POINTS = 400
_STEPS = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400)
_MOST_TICKS = 8
_SQUEEZED = 90
"""The width of a long time without work."""
_MOSTLY = 0.6
"""The part of all time from which long times without work are squeezed."""
_MOST_GAPS = 12
_TICK = 66
"""The least distance between the labels of two moments."""


class Bar(NamedTuple):
    """A bar, which links to its stage."""

    x: float
    y: int
    width: float
    look: str
    """The class: a kind of stage, or a tone."""
    is_cut_off: bool
    target: int
    """The index of its stage, or the number of its item; 0 for one that is not shown."""
    title: str
    stands_for: int = 1
    """The number of stages or attempts."""


class Label(NamedTuple):
    """A text at a place."""

    x: float
    y: float
    text: str


class Mark(NamedTuple):
    """A notice: a wait with its width, or a moment."""

    x: float
    y: int
    width: float
    tone: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Bars in lanes over time."""

    left: int
    height: int
    title: str
    lanes: tuple[Label, ...]
    bars: tuple[Bar, ...]
    ticks: tuple[Label, ...]
    gaps: tuple[Label, ...] = ()
    """Times without a process or without work: `x` and `y` are the left and right ends."""
    marks: tuple[Mark, ...] = ()
    bar: int = _BAR


class Line(NamedTuple):
    """A line over time."""

    look: str
    name: str
    path: str
    total: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChart:
    """Lines of sums over time."""

    title: str
    height: int
    most: str
    """The label of the top."""
    lines: tuple[Line, ...]
    ticks: tuple[Label, ...]


class _Axis:
    """The place of each moment; long times without work are squeezed."""

    def __init__(
        self,
        start: datetime,
        end: datetime,
        left: int = _LEFT,
        *,
        busy: Iterable[tuple[datetime, datetime]] = (),
    ) -> None:
        self.start, self.left = start, left
        self.seconds = max((end - start).total_seconds(), 0.01)
        room = WIDTH - left - 4
        idle = _long_gaps(busy, start, end, self.seconds * 2 * _SQUEEZED / room)
        is_idle = sum((b - a).total_seconds() for a, b in idle) > self.seconds * _MOSTLY
        self.idle = idle if is_idle else []
        self._narrow = min(_SQUEEZED, room * 0.3 / max(len(self.idle), 1))
        without = self.seconds - sum((b - a).total_seconds() for a, b in self.idle)
        self._worked = max(without, 0.01)
        self.scale = (room - self._narrow * len(self.idle)) / self._worked

    def _at(self, at: datetime) -> float:
        seconds = min(max((at - self.start).total_seconds(), 0.0), self.seconds)
        squeezed = 0.0
        for begin, end in self.idle:
            whole = (end - begin).total_seconds()
            passed = min(max((at - begin).total_seconds(), 0.0), whole)
            seconds -= passed
            squeezed += self._narrow * passed / whole
        return seconds * self.scale + squeezed

    def x(self, at: datetime) -> float:
        return round(self.left + self._at(at), 1)

    def width(self, start: datetime, end: datetime) -> float:
        return round(max(self._at(end) - self._at(start), 0.0), 1)

    def ticks(self, times: Times, y: float) -> Iterator[Label]:
        step = next((n for n in _STEPS if self._worked / n <= _MOST_TICKS), 0)
        step = step or 86400 * (int(self._worked // (86400 * _MOST_TICKS)) + 1)
        form = "%m-%d" if step >= 86400 else "%H:%M" if step >= 60 else "%H:%M:%S"
        end = self.start + timedelta(seconds=self.seconds)
        begins = [self.start, *(b for _, b in self.idle)]
        ends = [*(a for a, _ in self.idle), end]
        last = -math.inf
        for begin, until in zip(begins, ends, strict=True):
            at = _next_step(times.local(begin), step)
            while at <= until:
                x = self.x(at.astimezone(UTC))
                if x - last >= _TICK:
                    yield Label(x, y, f"{at:{form}}")
                    last = x
                at += timedelta(seconds=step)


def _next_step(local: datetime, step: int) -> datetime:
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    passed = (local - midnight).total_seconds()
    return midnight + timedelta(seconds=(passed // step + 1) * step)


def _long_gaps(
    busy: Iterable[tuple[datetime, datetime]], start: datetime, end: datetime, seconds: float
) -> list[tuple[datetime, datetime]]:
    """Return the longer times without work, in order; none where nothing is known to work."""
    gaps: list[tuple[datetime, datetime]] = []
    work = sorted(busy)
    if not work:
        return gaps
    done = start
    for begin, finish in [*work, (end, end)]:
        if (begin - done).total_seconds() > seconds:
            gaps.append((done, begin))
        done = max(done, finish)
    return sorted(sorted(gaps, key=lambda gap: gap[0] - gap[1])[:_MOST_GAPS])


def timeline(report: RunReport, times: Times) -> Timeline | None:
    """Return the attempts at stages over time, or None without any."""
    if not report.stages:
        return None
    axis = _axis_of(report)
    there = {stage.kind for stage in report.stages} - {"other"}
    lanes: list[str] = [kind for kind in LANES if kind in there]
    rows = {kind: n * _LANE + 4 for n, kind in enumerate(lanes)}
    if report.notices:
        rows["notices"] = len(lanes) * _LANE + 4
        lanes.append("notices")
    bars = [
        Bar(
            axis.x(stage.start),
            rows[stage.kind],
            max(axis.width(stage.start, stage.end), 1.0),
            stage_look(stage),
            stage.ending in ("repeated", "unfinished"),
            place,
            stage_title(stage, times),
        )
        for place, stage in enumerate(report.stages)
        if stage.kind != "other"
    ]
    count = len(bars)
    if len(bars) > _MOST_BARS:
        bars = merged(bars)
    height = len(lanes) * _LANE
    cost = f", {cost_of(report.totals)}" if report.totals.cost_usd is not None else ""
    return Timeline(
        left=_LEFT,
        height=height,
        title=f"{number(count)} stages in {duration(report.worked)}{cost}",
        lanes=_lanes(lanes),
        bars=tuple(bars),
        ticks=tuple(axis.ticks(times, height + 14)),
        gaps=tuple(_gaps(report.processes, axis)),
        marks=tuple(_marks(report, times, axis, rows)) if report.notices else (),
    )


def _lanes(names: Iterable[str]) -> tuple[Label, ...]:
    return tuple(Label(0, n * _LANE + 16, name) for n, name in enumerate(names))


def stage_look(stage: StageTry) -> str:
    """Return the class of a stage's bar: its kind, or `failed` for a failed command."""
    match stage.outcome:
        case {"exit_code": int(code)} if code != 0:
            return "failed"
        case {"exit_code": None, "_tag": "CheckCommandOutput" | "SetupCommandOutput"}:
            return "failed"
        case _:
            return stage.kind


ENDINGS: Final = {
    "finished": "",
    "repeated": "cut off, done again later",
    "unfinished": "cut off",
    "running": "running",
}
"""The endings of attempts, in words."""


def stage_title(stage: StageTry, times: Times) -> str:
    """Return the name and outcome of a stage, for its bar."""
    attempt = f", try {stage.attempt}" if stage.attempt > 1 else ""
    lines = [f"{stage.title}{attempt}"]
    lines.append(f"{times.short(stage.start)}, {duration(stage.seconds)}")
    if ENDINGS[stage.ending]:
        lines.append(ENDINGS[stage.ending])
    if stage.cost_usd is not None or stage.usage is not None:
        tokens = f", {number(all_tokens(stage.usage))} tokens" if stage.usage else ""
        lines.append(f"{cost_of(stage) or UNKNOWN}{tokens}")
    said = outcome(stage.outcome)
    return "\n".join([*lines, said] if said else lines)


def merged(
    bars: Sequence[Bar], *, narrow: float = _NARROW, mixed: bool = False, noun: str = "stage"
) -> list[Bar]:
    """Return the bars, with narrow neighbors of a lane merged; `mixed` ones look different."""
    result: list[Bar] = []
    latest: dict[int, int] = {}
    for bar in bars:
        place = latest.get(bar.y)
        before = result[place] if place is not None else None
        if (
            place is not None
            and before is not None
            and bar.width <= narrow
            and (mixed or before.look == bar.look)
            and (before.stands_for > 1 or before.width <= narrow)
            and bar.x - (before.x + before.width) <= narrow
        ):
            count = before.stands_for + bar.stands_for
            result[place] = before._replace(
                width=round(max(bar.x + bar.width - before.x, before.width), 1),
                title=counted(count, noun),
                look=before.look if before.look == bar.look else "other",
                is_cut_off=before.is_cut_off and bar.is_cut_off,
                stands_for=count,
            )
        else:
            latest[bar.y] = len(result)
            result.append(bar)
    return result


def _axis_of(report: RunReport) -> _Axis:
    return _Axis(report.start, report.end, busy=((one.start, one.end) for one in report.stages))


def _gaps(processes: Sequence[Process], axis: _Axis) -> Iterator[Label]:
    """Yield the times without a process, and the squeezed ones without work."""
    stopped = [(one.end, after.start) for one, after in pairwise(processes)]
    for begin, end in axis.idle:
        word = "stopped" if any(begin <= a and b <= end for a, b in stopped) else "idle"
        yield _gap(word, begin, end, axis)
    for begin, end in stopped:
        if end > begin and not any(a <= begin and end <= b for a, b in axis.idle):
            yield _gap("stopped", begin, end, axis)


def _gap(word: str, begin: datetime, end: datetime, axis: _Axis) -> Label:
    x, until = axis.x(begin), axis.x(end)
    text = f"{word} {duration((end - begin).total_seconds())}"
    return Label(x, until, text if until - x >= _SQUEEZED * 0.9 else "")


def _marks(report: RunReport, times: Times, axis: _Axis, rows: dict[str, int]) -> Iterator[Mark]:
    step = -(-len(report.notices) // _MOST_MARKS)
    for notice in report.notices[::step]:
        width = axis.width(notice.at, notice.until) if notice.until else 0.0
        said = f"{notice.kind}, {times.short(notice.at)}\n{first_line(notice.text, 200)}"
        yield Mark(axis.x(notice.at), rows["notices"], width, notice.tone, said)


class Span(NamedTuple):
    """A bar of an overview: the work on an item."""

    lane: int
    start: datetime
    end: datetime
    look: str
    target: int
    title: str
    is_cut_off: bool = False


def slots(report: RunReport, times: Times, *, first: int, listed: int) -> Timeline | None:
    """Return the attempts in each slot and the landings over time, or None without slots.

    Bars link to `listed` items by number, from the `first` one.
    """
    known = report.slots
    if known is None:
        return None
    shown = range(first, first + listed)
    numbers = {item.name: n for n, item in enumerate(report.watched, start=1) if n in shown}
    titles = {item.name: item.title or item.name for item in report.watched}
    spans = [
        Span(
            use.slot - 1,
            use.start,
            use.end,
            _LOOKS.get(use.state) or OUTCOMES[use.state][1],
            numbers.get(use.item, 0),
            f"{titles.get(use.item, use.item)}{f' on {use.worker}' if use.worker else ''}\n"
            f"{_ending(use)}, {duration((use.end - use.start).total_seconds())}",
            use.state == "interrupted",
        )
        for use in known.uses
    ]
    spans += [
        Span(
            known.count,
            one.start,
            one.end,
            LANDINGS[one.ending][1],
            numbers.get(one.item, 0),
            f"{titles.get(one.item, one.item)}\n{LANDINGS[one.ending][0]}, {duration(one.seconds)}",
            one.ending == "cut off",
        )
        for one in known.landings
    ]
    names = [*(f"slot {n}" for n in range(1, known.count + 1)), "landing"]
    title = f"{counted(known.count, 'slot')}, {counted(known.landed, 'landing')}"
    return overview(names, spans, report.start, report.end, times, title=title, left=_LEFT)


_LOOKS: Final = dict.fromkeys(
    ("working", "queued", "approved", "landing", "landed"), "implementing"
)
"""The looks of successful attempts."""

_ENDS: Final = {"queued": "candidate", "sent_back": "candidate"}


def _ending(use: SlotUse) -> str:
    if use.is_lost:
        return "worker lost"
    return _ENDS.get(use.state) or OUTCOMES[use.state][0]


def overview(
    names: Sequence[str],
    spans: Iterable[Span],
    start: datetime,
    end: datetime,
    times: Times,
    *,
    title: str,
    left: int = 220,
) -> Timeline | None:
    """Return bars of work on several items over time, or None without any."""
    spans = list(spans)
    axis = _Axis(start, end, left, busy=((span.start, span.end) for span in spans))
    bars = [
        Bar(
            axis.x(span.start),
            span.lane * _LANE + 4,
            max(axis.width(span.start, span.end), 1.0),
            span.look,
            span.is_cut_off,
            span.target,
            span.title,
        )
        for span in spans
    ]
    if not bars:
        return None
    for narrow in (_NARROW, 3.0, 6.0, 12.0, 24.0, 48.0):
        if len(bars) > _MOST_BARS:
            bars = merged(bars, narrow=narrow, mixed=narrow > _NARROW, noun="bar")
    height = len(names) * _LANE
    return Timeline(
        left=left,
        height=height,
        title=title,
        lanes=_lanes(first_line(name.replace("`", ""), 28) for name in names),
        bars=tuple(bars),
        ticks=tuple(axis.ticks(times, height + 14)),
        gaps=tuple(_gaps((), axis)),
    )


_TOKENS = (
    ("implementing", "output", "output_tokens"),
    ("planning", "input", "input_tokens"),
    ("check", "cache written", "cache_creation_tokens"),
    ("other", "cache read", "cache_read_tokens"),
)
_HEIGHT = 110


def cost_chart(report: RunReport, times: Times) -> LineChart | None:
    """Return the cost over time, or None if none is known."""
    if report.totals.cost_usd is None:
        return None
    points = _thinned(report.spent)
    axis = _axis_of(report)
    values = [(point.at, point.cost_usd or 0.0) for point in points]
    top = max((value for _, value in values), default=0.0) or 1.0
    line = Line("cost", "cost", _path(values, report.end, top, axis), cost_of(report.totals))
    return LineChart(
        title=f"Cost over time: {cost_of(report.totals)}",
        height=_HEIGHT,
        most=money(top, estimated=report.totals.cost_estimated),
        lines=(line,),
        ticks=tuple(axis.ticks(times, _HEIGHT + 14)),
    )


def token_chart(report: RunReport, times: Times) -> LineChart | None:
    """Return the tokens over time, or None without any.

    Cache reads are left out where they would flatten the other lines.
    """
    points = _thinned(report.spent)
    if not points:
        return None
    last = points[-1].usage
    totals = {name: getattr(last, name) for _, _, name in _TOKENS}
    others = max(count for name, count in totals.items() if name != "cache_read_tokens")
    drawn = [
        one
        for one in _TOKENS
        if totals[one[2]]
        and not (one[2] == "cache_read_tokens" and totals[one[2]] > 5 * others > 0)
    ]
    if not drawn:
        return None
    axis = _axis_of(report)
    top = max(totals[name] for _, _, name in drawn)
    lines = tuple(
        Line(
            look,
            label,
            _path([(p.at, getattr(p.usage, name)) for p in points], report.end, top, axis),
            number(totals[name]),
        )
        for look, label, name in drawn
    )
    return LineChart(
        title=f"Tokens over time: {number(all_tokens(last))}",
        height=_HEIGHT,
        most=number(top),
        lines=lines,
        ticks=tuple(axis.ticks(times, _HEIGHT + 14)),
    )


def _thinned(points: Sequence[Spent]) -> list[Spent]:
    """Return at most `_MOST_POINTS` points, including the last."""
    step = -(-len(points) // _MOST_POINTS) or 1
    return list(points[::-1][::step][::-1])


def _path(values: Sequence[tuple[datetime, float]], end: datetime, top: float, axis: _Axis) -> str:
    """Return a line of steps from zero at the start to the last value at the end."""

    def y(value: float) -> float:
        return round(_HEIGHT - value / top * (_HEIGHT - 6), 1)

    steps = [f"M{axis.left} {_HEIGHT}"]
    steps += [f"H{axis.x(at)}V{y(value)}" for at, value in values]
    return "".join([*steps, f"H{axis.x(end)}"])
