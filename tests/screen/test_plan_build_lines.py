"""End lines of the plan/build loop and of its sessions."""

from __future__ import annotations

from typing import Any

import pytest

from cuggino.events import (
    DeliverOutcome,
    Event,
    PlanBuildEnded,
    PlanBuildExit,
    PlanBuildSessionEnded,
)
from cuggino.runs.words import Words, words


def lines(event: Event) -> tuple[Words, ...]:
    """Return the sentences of the event."""
    spoken = words(event)
    return spoken.lines if spoken is not None else ()


@pytest.mark.parametrize(
    ("reason", "error", "expected"),
    [
        ("complete", "", ("success", "Loop complete! All jobs finished.")),
        ("planned", "", ("success", "Planning complete.")),
        ("blocked", "", ("error", "Loop stopped: every open job is blocked")),
        ("blocked", "J1, J2", ("error", "Loop stopped: J1, J2")),
        ("max_iterations", "", ("caution", "Loop stopped: max iterations reached")),
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
    end, _ = lines(PlanBuildEnded(reason=reason, error=error, iterations=1))
    assert expected == (end.tone, end.text)


@pytest.mark.parametrize(("iterations", "expected"), [(0, True), (1, False)])
def test_existing_done_file_explains_how_to_restart(iterations: int, expected: bool) -> None:
    """A loop that ended before its first session prints why and how to start over."""
    event = PlanBuildEnded(reason="complete", iterations=iterations)
    texts = [line.text for line in lines(event)]
    assert expected == ("lopen.loop.done exists; nothing to do (use --fresh to remove it)" in texts)
    assert "Loop complete! All jobs finished." in texts


@pytest.mark.parametrize(("still_open", "blocked"), [(1, 0), (0, 1)])
def test_an_end_while_jobs_are_open(still_open: int, blocked: int) -> None:
    """A loop that its done file has ended does not say that all jobs are finished."""
    end = PlanBuildEnded(reason="complete", iterations=1, open=still_open, blocked=blocked)
    first = lines(end)[0]
    expected = ("caution", "Loop ended by lopen.loop.done: not all jobs are done")
    assert expected == (first.tone, first.text)


def test_summary_counts_blocked_jobs_as_open() -> None:
    """Blocked jobs count as open."""
    event = PlanBuildEnded(
        reason="blocked", iterations=4, open=1, blocked=2, done=3, cost_usd=1.25, duration=3725
    )
    expected = "Overall: 4 iteration(s). Jobs: 3 open (2 blocked), 3 done. "
    assert f"{expected}cost=$1.2500, duration=1h 2m 5s" == lines(event)[-1].text
    estimate = event.model_copy(update={"cost_estimated": True})
    assert f"{expected}cost=~$1.2500, duration=1h 2m 5s" == lines(estimate)[-1].text


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
    assert expected == [line.text for line in lines(event)]
