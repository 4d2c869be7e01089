"""Stages, tools and costs of a run, from its journal."""

from __future__ import annotations

from array import array
from datetime import timezone

import pytest

from cuggino import events as ev
from cuggino.report import RunReport, build_report
from cuggino.report.model import ToolUse
from cuggino.report.rendering import render_part
from tests.report.journals import NAMES, after, begin, entries_of, report_of
from tests.vectors import each

ZONE = timezone.utc  # noqa: UP017


def tries(report: RunReport) -> list[tuple[str, str, int]]:
    """Return the attempts of stages, each with its outcome and attempt number."""
    return [(stage.stage, stage.ending, stage.attempt) for stage in report.stages]


def test_finished() -> None:
    """A finished stage has its outcome and lasts until it."""
    entries = entries_of(
        begin("planning#1"), ("planning#1", ev.StageFinished(outcome={"value": 1}))
    )
    (stage,) = build_report(entries).stages
    assert (after(1), after(2), 1.0) == (stage.start, stage.end, stage.seconds)
    assert ("finished", "planning", {"value": 1}) == (stage.ending, stage.kind, stage.outcome)


def test_resumed() -> None:
    """A repeated stage appears twice; the first attempt ended with its process."""
    report = report_of("resumed")
    assert [
        ("planning#1", "finished", 1),
        ("setup#2", "finished", 1),
        ("check#3", "finished", 1),
        ("implementing#4", "finished", 1),
        ("commit#5", "finished", 1),
        ("implementing#6", "repeated", 1),
        ("implementing#6", "finished", 2),
        ("commit#7", "finished", 1),
        ("push#8", "finished", 1),
        ("reviewing#9", "finished", 1),
    ] == tries(report)
    assert report.processes[0].end == report.stages[5].end


def test_cut_off() -> None:
    """A stage cut off by an error or a signal is unfinished."""
    entries = entries_of(begin("planning#1"), ev.RunEnded(state="interrupted"))
    assert [("planning#1", "unfinished", 1)] == tries(build_report(entries))
    assert "unfinished" == report_of("failed").stages[-1].ending


def test_not_repeated() -> None:
    """A stage that was cut off and not yet repeated is unfinished."""
    entries = entries_of(begin("planning#1"), ev.RunContinued())
    assert [("planning#1", "unfinished", 1)] == tries(build_report(entries))


def test_unknown_names() -> None:
    """A stage with another name belongs to the loop itself."""
    entries = entries_of(begin("head#1"), begin("audit#2"))
    assert ["other", "audit"] == [stage.kind for stage in build_report(entries).stages]


def test_cost_of_a_stage() -> None:
    """Each attempt has the cost of its sessions, including unfinished ones."""
    repeated, again = report_of("resumed").stages[5:7]
    assert (None, 400, 150) == (
        repeated.cost_usd,
        repeated.usage and repeated.usage.input_tokens,
        repeated.usage and repeated.usage.output_tokens,
    )
    assert (0.6, 1000) == (again.cost_usd, again.usage and again.usage.input_tokens)


@each("name", NAMES)
def test_last_point_is_the_total(name: str) -> None:
    """The lines of cost and tokens end at the totals of the run."""
    report = report_of(name)
    last = report.spent[-1] if report.spent else None
    assert (last and last.cost_usd) == pytest.approx(report.totals.cost_usd)
    assert (last and last.usage) == report.totals.usage


def test_lines_over_time() -> None:
    """A later value of a session replaces the earlier one; sessions add up."""
    entries = entries_of(
        begin("planning#1"),
        ("planning#1", ev.UsageUpdate(usage=ev.Usage(output_tokens=5))),
        ("planning#1", ev.UsageUpdate(usage=ev.Usage(output_tokens=8), cost_usd=0.125)),
        ("planning#1", ev.SessionEnded(outcome="completed", cost_usd=0.25)),
        ("planning#1", ev.StageFinished()),
        begin("audit#2"),
        ("audit#2", ev.UsageUpdate(usage=ev.Usage(output_tokens=2))),
        ev.RunContinued(),
        begin("audit#2"),
        (
            "audit#2",
            ev.SessionEnded(outcome="completed", cost_usd=0.5, usage=ev.Usage(output_tokens=1)),
        ),
    )
    assert [
        (after(2), None, 5),
        (after(3), 0.125, 8),
        (after(4), 0.25, 8),
        (after(7), 0.25, 10),
        (after(10), 0.75, 11),
    ] == [(p.at, p.cost_usd, p.usage.output_tokens) for p in build_report(entries).spent]


def test_snapshots() -> None:
    """A stage names the state before it."""
    ref = "refs/cuggino/snapshots/r1/planning-1"
    taken = ev.SnapshotTaken(stage="planning-1", ref=ref, commit="c")
    again = ev.SnapshotTaken(stage="planning-1", ref=f"{ref}-2", commit="d")
    ended = ev.StageFinished(outcome={"value": 1})
    entries = entries_of(
        begin("planning#1"),
        ("planning#1", taken),
        ("planning#1", again),
        ("planning#1", ev.AgentMessage(text="I plan.")),
        ("planning#1", ended),
        begin("check#2"),
        ("check#2", ended),
    )
    report = build_report(entries)
    assert ["r1/planning-1", ""] == [stage.snapshot for stage in report.stages]
    assert "<code>cuggino undo r1/planning-1</code>" in render_part("stages", report, zone=ZONE)
    without = build_report(entries_of(begin("check#1"), ("check#1", ended)))
    assert "Back to" not in render_part("stages", without, zone=ZONE)


def test_concurrent_stages() -> None:
    """The costs of two concurrent stages add up."""
    entries = entries_of(
        ("a#1", ev.UsageUpdate(usage=ev.Usage(output_tokens=5))),
        ("b#2", ev.UsageUpdate(usage=ev.Usage(output_tokens=2))),
        ("a#1", ev.UsageUpdate(usage=ev.Usage(output_tokens=7))),
    )
    assert [5, 7, 9] == [p.usage.output_tokens for p in build_report(entries).spent]


def test_tools() -> None:
    """A call and its result pair by id within a stage; a call may have no result."""
    entries = entries_of(
        ("a#1", ev.ToolCall(name="Bash", id="1")),
        ("a#1", ev.ToolCall(name="Read", id="2")),
        ("b#2", ev.ToolResult(name="1", output="of another stage")),
        ("a#1", ev.ToolResult(name="1", output="", is_error=True)),
        ("a#1", ev.ToolResult(name="unknown", output="")),
        ("b#2", ev.ToolCall(name="Bash")),
        ("b#2", ev.ToolCall(name="Bash", id="3")),
        ("b#2", ev.ToolResult(name="3", output="")),
        ("b#2", ev.Done(content="")),
    )
    assert (
        ToolUse(name="Bash", calls=3, errors=1, unanswered=1, seconds=array("d", [1.0, 3.0])),
        ToolUse(name="Read", calls=1, unanswered=1, seconds=array("d")),
    ) == build_report(entries).tools
