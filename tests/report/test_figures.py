"""Charts as data, and the rows of events."""

from __future__ import annotations

import json
from datetime import timezone
from typing import Any

import pytest

from cuggino.events import (
    AgentMessage,
    BudgetWarning,
    PingEvent,
    RunContinued,
    ToolCall,
    UnknownEvent,
    Usage,
    UsageUpdate,
    WatchBacklogWaiting,
    event_types,
)
from cuggino.report import RunReport, build_report, parse_numstat
from cuggino.report.events_table import CATEGORIES, category_of, events_table, shorten
from cuggino.report.model import FileChange
from cuggino.report.timeline import timeline
from cuggino.report.times import Times
from cuggino.report.wording import counted, duration, first_line, money, outcome
from tests.report.journals import begin, entries_of, report_of
from tests.vectors import each

ZONE = timezone.utc  # noqa: UP017


def figure_of(report: RunReport) -> dict[str, Any]:
    """Return the figure of the report's timeline."""
    figure = timeline(report, Times(ZONE, report.start, report.end))
    assert figure is not None
    return figure


def rows_of(report: RunReport, **options: Any) -> list[list[Any]]:
    """Return the rows of the report's events."""
    table = events_table(report, Times(ZONE, report.start, report.end), **options)
    rows: list[list[Any]] = json.loads(table.json)["rows"]
    return rows


def test_bars() -> None:
    """Each attempt of a stage is a bar of its duration in the lane of its kind."""
    report = report_of("resumed")
    bars = [t for t in figure_of(report)["data"] if t["type"] == "bar" and "notices" not in t["y"]]
    drawn = [(lane, ms) for bar in bars for lane, ms in zip(bar["y"], bar["x"], strict=True)]
    assert sorted((s.kind, s.seconds * 1000) for s in report.stages) == sorted(drawn)
    (hatched,) = (bar for bar in bars if "pattern" in bar["marker"])
    assert ["implementing"] == hatched["y"]
    assert "cut off, done again later" in hatched["customdata"][0]
    again = next(c for bar in bars for c in bar["customdata"] if "try 2" in c)
    assert "<b>implementing#6</b>, try 2" in again
    assert "Done: Task 2" in again
    assert "$0.6000, 31,800 tokens" in again


def test_lanes() -> None:
    """Each kind with a stage has a lane, from the top in the order of an iteration."""
    assert [
        "notices", "push", "commit", "check", "setup", "reviewing", "implementing", "planning",
    ] == figure_of(report_of("resumed"))["layout"]["yaxis"]["categoryarray"]  # fmt: skip


def test_gaps() -> None:
    """The time without a running process is shaded, and labeled if there is space."""
    layout = figure_of(report_of("resumed"))["layout"]
    (shade,) = layout["shapes"]
    assert shade["x0"] < shade["x1"]
    assert "stopped 1 h" in [note["text"] for note in layout["annotations"]]
    assert [] == figure_of(report_of("finished"))["layout"]["shapes"]


def test_short_gaps_have_no_label() -> None:
    """A gap that is too narrow for its label has none."""
    stages = [begin(f"a#{n}") for n in range(50)]
    layout = figure_of(build_report(entries_of(*stages, RunContinued(), begin("b#51"))))["layout"]
    assert 1 == len(layout["shapes"])
    assert [] == [note["text"] for note in layout["annotations"]]


def test_lines() -> None:
    """Cost and tokens are steps from zero at the start to their total at the end."""
    report = report_of("finished")
    lines = {t["name"]: t for t in figure_of(report)["data"] if t.get("mode") == "lines"}
    assert {"cost", "output", "input", "cache read"} == set(lines)
    assert 0 == lines["cost"]["y"][0]
    assert lines["cost"]["y"][-1] == pytest.approx(report.totals.cost_usd)
    assert {"hv"} == {line["line"]["shape"] for line in lines.values()}
    assert "legendonly" == lines["cache read"]["visible"]


def test_no_cost() -> None:
    """Without costs there is no cost line; without tokens too there are only bars."""
    used = ("a#1", UsageUpdate(usage=Usage(input_tokens=1)))
    lines = [t["name"] for t in figure_of(build_report(entries_of(begin("a#1"), used)))["data"][1:]]
    assert ["input"] == lines
    assert 1 == len(figure_of(build_report(entries_of(begin("a#1"))))["data"])


def test_points_are_limited() -> None:
    """A line is reduced to a limited number of points and keeps the last one."""
    many = [("a#1", UsageUpdate(usage=Usage(input_tokens=n))) for n in range(1, 9000)]
    report = build_report(entries_of(begin("a#1"), *many))
    line = figure_of(report)["data"][-1]
    assert len(line["y"]) <= 2002
    assert 8999 == line["y"][-2] == line["y"][-1]


def test_no_stage() -> None:
    """Without a stage there is no chart."""
    report = report_of("started")
    assert timeline(report, Times(ZONE, report.start, report.end)) is None


def test_every_event_has_a_category() -> None:
    """Each kind of event is in one category, and only unknown ones in the last."""
    found = {category_of(cls.model_construct()) for cls in event_types().values()}
    assert set(CATEGORIES) - {"other"} == found
    assert "other" == category_of(UnknownEvent(raw={"_tag": "New"}))


def test_counts_by_category() -> None:
    """The rows of each category are counted."""
    entries = entries_of(AgentMessage(text=""), PingEvent(timestamp=1), WatchBacklogWaiting())
    report = build_report(entries)
    table = events_table(report, Times(ZONE, report.start, report.end))
    assert {"agent": 1, "sign": 1, "watch": 1, "journal": 1} == table.counts
    assert (4, 0, 0) == (table.shown, table.left_out, table.cut)


def test_rows() -> None:
    """A row has number, time, stage, kind and the serialized event."""
    report = build_report(entries_of(("a#1", AgentMessage(text="hello"))))
    table = json.loads(events_table(report, Times(ZONE, report.start, report.end)).json)
    seq, ms, stage, kind, event = table["rows"][1]
    assert (2, 1795208401000) == (seq, ms)
    assert "a#1" == table["stages"][stage]
    assert ["AgentMessage", "agent"] == table["kinds"][kind]
    assert {"_tag": "AgentMessage", "text": "hello"} == {
        key: value for key, value in event.items() if value is not None
    }


def test_long_texts_are_cut() -> None:
    """A text that is too long is cut in the middle, with the number of omitted characters."""
    report = build_report(entries_of(AgentMessage(text="a" * 30_000 + "end"), ToolCall(name="b")))
    table = events_table(report, Times(ZONE, report.start, report.end))
    text = json.loads(table.json)["rows"][1][-1]["text"]
    assert 1 == table.cut
    assert len(text) < 21_000
    assert "characters left out …" in text
    assert text.endswith("end")


def test_rows_are_limited() -> None:
    """Only the last events are kept, and the omitted ones are counted."""
    report = build_report(entries_of(*[AgentMessage(text="a")] * 9))
    table = events_table(report, Times(ZONE, report.start, report.end), most=4)
    assert (4, 6) == (table.shown, table.left_out)
    assert [7, 8, 9, 10] == [row[0] for row in rows_of(report, most=4)]


@pytest.mark.parametrize("count", [999, 1000, 1001, 2000])
def test_rows_in_parts(count: int) -> None:
    """All rows are there in order, however many parts they fill."""
    said = AgentMessage(text="</script><b> & …")
    report = build_report(entries_of(*[said] * (count - 1)))
    table = events_table(report, Times(ZONE, report.start, report.end))
    assert not any(char in b"".join(table.parts) for char in b"<>&")
    rows = json.loads(table.json)["rows"]
    assert [*range(1, count + 1)] == [row[0] for row in rows]
    assert {said.text} == {row[-1]["text"] for row in rows[1:]}


def test_nonfinite_numbers_are_text() -> None:
    """Numbers that JSON cannot represent are written as text."""
    event = BudgetWarning(budget="cost", spent=float("nan"), limit=float("inf"))
    table = rows_of(build_report(entries_of(event, AgentMessage(text="NaN"))))
    assert ("nan", "inf") == (table[1][-1]["spent"], table[1][-1]["limit"])
    assert "NaN" == table[2][-1]["text"]


def test_shorten() -> None:
    """Texts, lists and objects share the limit; omissions are counted."""
    assert {"a": "b", "c": [1, None]} == shorten({"a": "b", "c": [1, None]}, 100)
    assert ["x" * 10, "… 2 more left out"] == shorten(["x" * 10, "y", "z"], 10)
    assert {"k": "vvvv", "…": "1 more left out"} == shorten({"k": "vvvv", "l": 1}, 13)
    assert "aaaaaa … 92 characters left out … aa" == shorten("a" * 100, 8)


@each(
    "seconds, words",
    [
        (-1, "0 ms"),
        (0.04, "40 ms"),
        (0.9996, "1.0 s"),
        (2.44, "2.4 s"),
        (9.96, "10 s"),
        (59.6, "1 m"),
        (90, "1 m 30 s"),
        (3599.7, "1 h"),
        (7500, "2 h 5 m"),
        (86399, "1 d"),
        (273600, "3 d 4 h"),
        (float("inf"), "11574 d 2 h"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    """A duration has at most two units, rounded."""
    assert words == duration(seconds)


def test_words() -> None:
    """Money, counts and first lines are short."""
    assert ["–", "$0.00", "$0.0042", "$1,234.50"] == [money(x) for x in (None, 0, 0.0042, 1234.5)]
    assert ["1 file", "2,000 files", "2 processes"] == [
        counted(1, "file"),
        counted(2000, "file"),
        counted(2, "process", "processes"),
    ]
    assert ["two", "", "aa…"] == [
        first_line("\n two \nx"),
        first_line(" \n"),
        first_line("aaaa", 3),
    ]


@each(
    "value, words",
    [
        (None, ""),
        ({"value": None}, ""),
        ({"value": "0f1e"}, "0f1e"),
        ({"time": "2026-11-20T21:00:00Z"}, "2026-11-20T21:00:00Z"),
        ({"_tag": "Done", "content": "Task 2\nmore"}, "Done: Task 2"),
        ({"_tag": "CheckCommandOutput", "exit_code": 1}, "CheckCommandOutput: exit code 1"),
        ({"_tag": "WatchBacklogWaiting"}, "WatchBacklogWaiting"),
        ([1], "[1]"),
    ],
)
def test_outcomes(value: Any, words: str) -> None:
    """An outcome is one line."""
    assert words == outcome(value)


def test_numstat() -> None:
    """The changed files of each commit are parsed; a binary file has no lines."""
    lines = ["\x01aaa", "", "3\t1\ta b.py", "-\t-\tlogo.png", "noise", "x\ty\tz", "\x01bbb", ""]
    assert {
        "aaa": (FileChange("a b.py", 3, 1), FileChange("logo.png", None, None)),
        "bbb": (),
    } == parse_numstat(lines)
