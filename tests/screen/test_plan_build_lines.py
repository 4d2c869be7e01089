"""End lines of the plan/build loop and of its sessions."""

from __future__ import annotations

from typing import Any

import pytest

from cuggino.events import DeliverOutcome, PlanBuildEnded, PlanBuildExit, PlanBuildSessionEnded
from cuggino_cli.screen.plan_build_text import Line, ending, overall, plan_build_lines


@pytest.mark.parametrize(
    ("reason", "error", "expected"),
    [
        ("complete", "", ("course", "Loop complete! All jobs finished.")),
        ("planned", "", ("course", "Planning complete.")),
        ("blocked", "", ("error", "Loop stopped: every open job is blocked")),
        ("blocked", "J1, J2", ("error", "Loop stopped: J1, J2")),
        ("max_iterations", "", ("course", "Loop stopped: max iterations reached")),
        ("quota_exceeded", "x", ("error", "Loop stopped: usage limit reached: x")),
        ("budget_exceeded", "x", ("error", "Loop stopped: budget exceeded: x")),
        ("max_retries_exceeded", "x", ("error", "Loop stopped: too many errors in a row: x")),
        ("stalled", "x", ("error", "Loop stopped: no progress: x")),
        ("interrupted", "", ("warning", "Loop cancelled by user.")),
        ("failed", "x", ("error", "Loop stopped: x")),
        ("failed", "", ("error", "Loop stopped: Unknown error")),
    ],
)
def test_ends(reason: PlanBuildExit, error: str, expected: tuple[str, str]) -> None:
    """Each end has its own text with the reason."""
    said = ending(PlanBuildEnded(reason=reason, error=error))
    assert expected == (said.weight, said.text)


@pytest.mark.parametrize(("iterations", "expected"), [(0, True), (1, False)])
def test_existing_done_file_explains_how_to_restart(iterations: int, expected: bool) -> None:
    """A loop that ended before its first session prints why and how to start over."""
    event = PlanBuildEnded(reason="complete", iterations=iterations)
    lines = [said.text for said in plan_build_lines(event)]
    assert expected == ("lopen.loop.done exists; nothing to do (use --fresh to remove it)" in lines)
    assert "Loop complete! All jobs finished." in lines


@pytest.mark.parametrize(("still_open", "blocked"), [(1, 0), (0, 1)])
def test_an_end_while_jobs_are_open(still_open: int, blocked: int) -> None:
    """A loop that its done file has ended does not say that all jobs are finished."""
    end = PlanBuildEnded(reason="complete", iterations=1, open=still_open, blocked=blocked)
    (line, *_) = plan_build_lines(end)
    assert ("caution", "Loop ended by lopen.loop.done: not all jobs are done") == line[1:]


def test_summary_counts_blocked_jobs_as_open() -> None:
    """Blocked jobs count as open."""
    event = PlanBuildEnded(
        reason="blocked", iterations=4, open=1, blocked=2, done=3, cost_usd=1.25, duration=3725
    )
    expected = "Overall: 4 iteration(s). Jobs: 3 open (2 blocked), 3 done. "
    assert f"{expected}cost=$1.2500, duration=1h 2m 5s" == overall(event)
    estimate = event.model_copy(update={"cost_estimated": True})
    assert f"{expected}cost=~$1.2500, duration=1h 2m 5s" == overall(estimate)


@pytest.mark.parametrize(
    ("outcome", "fields", "expected"),
    [
        ("completed", {"cost_usd": 0.5}, ["Session: cost=$0.5000, duration=12s"]),
        (
            "completed",
            {"cost_usd": 0.5, "cost_estimated": True},
            ["Session: cost=~$0.5000, duration=12s"],
        ),
        ("completed", {}, ["Session: duration=12s"]),
        ("max_turns", {}, ["Session ended: turn limit reached", "Session: duration=12s"]),
        ("budget", {"message": "all spent"}, ["Session ended: all spent", "Session: duration=12s"]),
        ("error", {"message": "lost"}, []),
        ("interrupted", {}, []),
    ],
)
def test_sessions(outcome: DeliverOutcome, fields: dict[str, Any], expected: list[str]) -> None:
    """A session prints its duration and cost; a later line reports failures."""
    event = PlanBuildSessionEnded(
        iteration=1, phase="build", outcome=outcome, duration=12, **fields
    )
    lines: list[Line] = list(plan_build_lines(event))
    assert expected == [line.text for line in lines]
