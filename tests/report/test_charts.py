"""Charts as numbers: bars, ticks and lines."""

from __future__ import annotations

from datetime import UTC, timedelta
from itertools import pairwise

import pytest

from cuggino.events import RunContinued, StageFinished, Usage, UsageUpdate
from cuggino.report import RunReport, build_report
from cuggino.report.charts import (
    LineChart,
    Span,
    Timeline,
    cost_chart,
    overview,
    timeline,
    token_chart,
)
from cuggino.report.times import Times
from tests.report.journals import START, after, begin, entries_of, report_of

ZONE = UTC


def times_of(report: RunReport) -> Times:
    """Return the times of a report in UTC."""
    return Times(ZONE, report.start, report.end)


def drawn(report: RunReport) -> Timeline:
    """Return the timeline of a report."""
    found = timeline(report, times_of(report))
    assert found is not None
    return found


def costs(report: RunReport) -> LineChart:
    """Return the chart of the costs of a report."""
    found = cost_chart(report, times_of(report))
    assert found is not None
    return found


def test_bars() -> None:
    """Each attempt at a stage is a bar of its duration in the lane of its kind."""
    report = report_of("resumed")
    chart = drawn(report)
    lanes = {lane.y - 12: lane.text for lane in chart.lanes}
    stages = [(n, stage) for n, stage in enumerate(report.stages) if stage.kind != "other"]
    assert [stage.kind for _, stage in stages] == [lanes[bar.y] for bar in chart.bars]
    assert [n for n, _ in stages] == [bar.target for bar in chart.bars]
    idle = 3600.0  # squeezed
    scale = (1000 - chart.left - 4 - 90) / ((report.end - report.start).total_seconds() - idle)
    for bar, (_, stage) in zip(chart.bars, stages, strict=True):
        assert bar.width == pytest.approx(max(stage.seconds * scale, 1.0), abs=0.06)
    (cut_off,) = (bar for bar in chart.bars if bar.is_cut_off)
    assert "cut off, done again later" in cut_off.title
    again = next(bar.title for bar in chart.bars if "try 2" in bar.title)
    assert "implementing#6, try 2" in again
    assert "$0.60, 31,800 tokens" in again
    assert "Done: Task 2" in again


def test_lanes() -> None:
    """Each kind with a stage has a lane, from the top in the order of an iteration."""
    names = ["planning", "implementing", "reviewing", "setup", "check", "commit", "push", "notices"]
    assert names == [lane.text for lane in drawn(report_of("resumed")).lanes]


def test_failed_command() -> None:
    """The bar of a failed check has the color of failures."""
    looks = [bar.look for bar in drawn(report_of("finished")).bars]
    assert 1 == looks.count("failed")


def test_gaps() -> None:
    """The time without a running process is shaded, and labeled if there is space."""
    (gap,) = drawn(report_of("resumed")).gaps
    assert gap.x < gap.y
    assert "stopped 1 h" == gap.text
    assert gap.y - gap.x == pytest.approx(90, abs=1)  # most of the time, but not of the width
    assert () == drawn(report_of("finished")).gaps
    stages = [begin(f"a#{n}") for n in range(50)]
    (short,) = drawn(build_report(entries_of(*stages, RunContinued(), begin("b#51")))).gaps
    assert "" == short.text


def test_idle_times_are_squeezed() -> None:
    """Two minutes of work around a night of waiting take most of the width."""
    night = 8 * 3600
    spans = [
        Span(0, START, after(60), "good", 1, "a"),
        Span(0, after(night), after(night + 60), "good", 2, "b"),
    ]
    end = after(night + 60)
    chart = overview(["a"], spans, START, end, Times(ZONE, START, end), title="")
    assert chart is not None
    (gap,) = chart.gaps
    assert "idle 7 h 59 m" == gap.text
    assert all(bar.width > 300 for bar in chart.bars)
    texts = [tick.text for tick in chart.ticks]
    assert {"21:00:30", "05:00:30"} <= {*texts}
    places = [tick.x for tick in chart.ticks]
    assert all(b - a >= 60 for a, b in pairwise(places))


def test_notices_are_marks() -> None:
    """A notice is a mark, and a wait has its width."""
    marks = drawn(report_of("resumed")).marks
    assert len(report_of("resumed").notices) == len(marks)
    assert any(mark.width > 0 for mark in marks)


def test_narrow_neighbors_are_one_bar() -> None:
    """Thousands of stages are a bounded number of bars, which cover the same time."""
    many = [
        pair
        for n in range(4000)
        for pair in (begin(f"check#{n}"), (f"check#{n}", StageFinished(outcome={"value": n})))
    ]
    chart = drawn(build_report(entries_of(*many)))
    assert len(chart.bars) < 1000
    assert any("stages" in bar.title for bar in chart.bars)
    assert chart.bars[-1].x + chart.bars[-1].width == pytest.approx(996, abs=2)


@pytest.mark.parametrize(
    ("seconds", "label"),
    [(0.5, ""), (20, "21:00:05"), (1700, "21:05"), (30_000, "22:00"), (900_000, "11-22")],
)
def test_ticks(seconds: float, label: str) -> None:
    """There are at most nine ticks at round times."""
    report = build_report(entries_of(begin("a#1"), ("a#1", StageFinished()), every=seconds / 2))
    ticks = drawn(report).ticks
    assert len(ticks) <= 9
    assert not label or label in [tick.text for tick in ticks]


def test_lines() -> None:
    """Cost and tokens are steps from zero at the start to their total at the end."""
    report = report_of("finished")
    chart = costs(report)
    (line,) = chart.lines
    assert line.path.startswith("M104 110H")
    assert line.path.endswith("V6.0H996.0")
    assert "$1.65" == line.total
    tokens = token_chart(report, times_of(report))
    assert tokens is not None
    assert ["output", "input"] == [line.name for line in tokens.lines]


def test_cache_reads_alone() -> None:
    """Cache reads are drawn where they flatten nothing."""
    update = ("a#1", UsageUpdate(usage=Usage(input_tokens=1, cache_read_tokens=4)))
    report = build_report(entries_of(begin("a#1"), update))
    tokens = token_chart(report, times_of(report))
    assert tokens is not None
    assert ["input", "cache read"] == [line.name for line in tokens.lines]


def test_no_cost() -> None:
    """Without costs or stages, their charts are left out."""
    report = build_report(entries_of(begin("a#1")))
    assert cost_chart(report, times_of(report)) is None
    assert token_chart(report, times_of(report)) is None
    started = report_of("started")
    assert timeline(started, times_of(started)) is None


def test_points_are_limited() -> None:
    """A line is reduced to a limited number of points and keeps the last one."""
    many = [("a#1", UsageUpdate(usage=Usage(input_tokens=n), cost_usd=n)) for n in range(1, 9000)]
    chart = costs(build_report(entries_of(begin("a#1"), *many)))
    assert chart.lines[0].path.count("V") <= 401
    assert chart.lines[0].path.endswith("V6.0H996.0")
    assert "$8,999.00" == chart.most


def test_overview() -> None:
    """Work on items is bars in a lane for each item."""
    end = START + timedelta(hours=2)
    spans = [
        Span(0, START, after(3600), "good", 1, "Login: done"),
        Span(1, after(3600), end, "bad", 2, "Logout: parked", is_cut_off=True),
    ]
    chart = overview(["Login", "L" * 90], spans, START, end, Times(ZONE, START, end), title="2")
    assert chart is not None
    assert [220.0, 608.0] == [bar.x for bar in chart.bars]
    assert [388.0, 388.0] == [bar.width for bar in chart.bars]
    assert all(len(lane.text) <= 34 for lane in chart.lanes)
    assert overview([], [], START, end, Times(ZONE, START, end), title="") is None
