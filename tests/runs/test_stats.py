"""Statistics over a handful of recorded runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cuggino import events as ev
from cuggino.runs import Runs, RunStats, StatsRow, run_stats, stats_json
from cuggino.storage.journal import Journal

AT = datetime(2026, 11, 22, 9, tzinfo=UTC)


def record(
    project: Path,
    number: int,
    state: str | None,
    *,
    planning: float | None = None,
    implementing: float | None = None,
    iterations: int = 1,
    seconds: float = 100,
    **started: Any,
) -> None:
    """Record a run with the cost of its sessions; without a state it was killed."""
    first = ev.RunStarted.model_validate(
        {
            "run_id": f"0193-{number}",
            "kind": "run",
            "command": "c",
            "agent": "claude",
            "prompts": "aaaaaaaa",
            **started,
        }
    )
    journal = Journal.create(project / ".cuggino/journal", first, at=AT, sync=False)
    for iteration in range(1, iterations + 1):
        journal.append(ev.IterationStart(iteration=iteration, max_iterations=9), at=AT)
    for start, cost in ((ev.PlanningStart, planning), (ev.ImplementingStart, implementing)):
        journal.append(start(iteration=1), at=AT)
        ended = ev.SessionEnded(outcome="completed", cost_usd=cost, duration=10)
        journal.append(ended, at=AT)
    end = AT + timedelta(seconds=seconds)
    last = ev.RunEnded.model_validate({"state": state}) if state else ev.PingEvent(timestamp=0)
    journal.append(last, at=end)
    journal.close()


def stats_of(project: Path) -> RunStats:
    return run_stats(Runs(project).all())


def row(name: str, runs: int, finished: int, approved: int, *figures: float | None) -> StatsRow:
    """Return a row with median iterations, median cost, total cost and median duration."""
    iterations, cost, total, duration = figures
    return StatsRow(
        name=name,
        runs=runs,
        finished=finished,
        approved=approved,
        iterations=iterations,
        cost_usd=cost,
        total_cost_usd=total,
        duration=duration,
    )


def test_by_each_group(tmp_path: Path) -> None:
    """Medians are those of finished runs, totals of all; roles count their own sessions."""
    codex: dict[str, Any] = {
        "agents": {"planning": ("claude", "opus"), "implementing": ("codex", None)}
    }
    record(tmp_path, 1, "approved", planning=1, implementing=2, iterations=1, seconds=100)
    record(tmp_path, 2, "failed", planning=3, iterations=3, seconds=300, **codex)
    record(tmp_path, 3, "interrupted", planning=5, implementing=5, seconds=5)
    record(tmp_path, 4, None, implementing=7, seconds=7, prompts="")
    record(tmp_path, 5, "approved", item="a.md 1", planning=10, implementing=1, prompts="bbbbbbbb")
    record(tmp_path, 6, "ended", kind="watch", planning=11)
    record(tmp_path, 7, "ended", kind="loop", options={"plan_only": True})
    record(tmp_path, 8, "ended", kind="deliver")
    (tmp_path / ".cuggino/journal/0194.jsonl").write_text("x\ny\n")
    stats = stats_of(tmp_path)
    assert (7, 1) == (stats.runs, stats.unreadable)
    assert {
        "loop": (
            row("run", 4, 2, 1, 2, 3, 23, 200),
            row("deliver", 1, 1, 0, 1, None, None, 100),
            row("loop", 1, 1, 1, 1, None, None, 100),
            row("watch item", 1, 1, 1, 1, 11, 11, 100),
        ),
        "role": (
            row("implementing", 7, 5, 3, 1, 1.5, 15, 10),
            row("planning", 7, 5, 3, 1, 3, 19, 10),
        ),
        "agent": (
            row("claude", 7, 5, 3, 1, 3, 34, 20),
            row("codex", 1, 1, 0, 3, None, None, 10),
        ),
        "model": (
            row("default", 7, 5, 3, 1, 7, 31, 20),
            row("opus", 1, 1, 0, 3, 3, 3, 10),
        ),
        "prompts": (
            row("aaaaaaaa", 5, 4, 2, 1, 3, 16, 100),
            row("bbbbbbbb", 1, 1, 1, 1, 11, 11, 100),
            row("unknown", 1, 0, 0, None, None, 7, None),
        ),
    } == stats.rows


def test_success(tmp_path: Path) -> None:
    """The share of approved runs is that of runs that were not cut short; unknown without one."""
    assert None is row("a", 3, 0, 0, None, None, None, None).success
    assert 0.25 == row("a", 9, 4, 1, 1, 1, 1, 1).success


def test_as_json(tmp_path: Path) -> None:
    """Each group is a list of rows with all figures."""
    record(tmp_path, 1, "approved", planning=1, implementing=2)
    told = stats_json(stats_of(tmp_path))
    assert (1, 0) == (told["runs"], told["unreadable"])
    assert [
        {
            "name": "run",
            "runs": 1,
            "finished": 1,
            "approved": 1,
            "success": 1.0,
            "iterations": 1.0,
            "cost_usd": 3.0,
            "total_cost_usd": 3.0,
            "cost_estimated": False,
            "duration": 100.0,
        }
    ] == told["loop"]
    assert ["loop", "role", "agent", "model", "prompts"] == list(told)[2:]


def test_no_runs(tmp_path: Path) -> None:
    """A project without runs has no rows."""
    stats = stats_of(tmp_path)
    assert (0, 0) == (stats.runs, stats.unreadable)
    assert {()} == set(stats.rows.values())
