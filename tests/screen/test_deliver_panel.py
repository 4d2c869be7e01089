"""The live list of deliverables and the activity line below it, as a function of the height."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cuggino import events as ev
from cuggino_cli.screen.fragments import paint
from cuggino_cli.screen.panel import Panel, activity_line, list_lines, waiting_line

from .samples import sample

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def listed(*statuses: str, verified: int = 0) -> ev.DeliverablesListed:
    """Return deliverables with these statuses, the first few of them verified."""
    items: list[Any] = [
        ev.DeliverableState.model_validate(
            {"id": f"D{n}", "description": f"do {n}", "status": status, "verified": n <= verified}
        )
        for n, status in enumerate(statuses, start=1)
    ]
    return ev.DeliverablesListed(deliverables=tuple(items))


def texts(event: ev.DeliverablesListed, height: int) -> list[str]:
    return [paint(line, color=False) for line in list_lines(event, height=height)]


def test_list_starts_with_the_passed_count() -> None:
    """The passed count comes first, then the deliverables in order."""
    event = listed("passed", "pending", "blocked", verified=1)
    assert [
        "Deliverables: 1/3 passed (1 blocked), 1 verified",
        "  ✓ verified D1 do 1",
        "  ○ D2 do 2",
        "  ✗ D3 do 3",
    ] == texts(event, 24)


def test_overflow_shows_open_deliverables_first() -> None:
    """When space is short, open deliverables come first and the others are counted."""
    event = listed("passed", "pending", "passed", "blocked", "passed", "pending")
    assert [
        "Deliverables: 3/6 passed (1 blocked)",
        "  ○ D2 do 2",
        "  ✗ D4 do 4",
        "  ○ D6 do 6",
        "  ... and 3 more",
    ] == texts(event, 12)


def test_unverified_deliverables_come_first() -> None:
    """During verification, unverified deliverables come before verified ones."""
    event = listed("passed", "passed", "passed", "passed", verified=2)
    assert ["  ✓ D3 do 3", "  ... and 3 more"] == texts(event, 8)[1:]
    assert ["  ✓ D3 do 3", "  ✓ D4 do 4", "  ... and 2 more"] == texts(event, 10)[1:]


@pytest.mark.parametrize("height", [0, 1, 5])
def test_low_terminal_has_no_list(height: int) -> None:
    """A terminal of a few rows shows no list."""
    assert [] == texts(listed("pending"), height)


def test_no_deliverables() -> None:
    """Without deliverables the list is left out."""
    assert [] == texts(listed(), 24)


@given(
    st.lists(st.sampled_from(["pending", "passed", "blocked"]), max_size=40),
    st.integers(0, 60),
    st.integers(0, 40),
)
def test_list_takes_at_most_half_of_the_height(
    statuses: list[str], height: int, verified: int
) -> None:
    """List and activity take at most half of the rows and account for every deliverable."""
    lines = texts(listed(*statuses, verified=verified), height)
    assert not lines or len(lines) + 1 <= height // 2
    more = lines and lines[-1].strip().startswith("... and ")
    hidden = int(lines[-1].split()[2]) if more else 0
    shown = len(lines) - 1 - bool(more)
    assert not lines or len(statuses) == shown + hidden


@pytest.mark.parametrize(
    ("expected", "resets_at"),
    [
        (" (resets at 6:00 PM UTC)", datetime(2026, 1, 2, 18, 0, tzinfo=UTC)),
        (" (resets at 12:05 AM UTC)", datetime(2026, 1, 2, 0, 5, tzinfo=UTC)),
        (
            " (resets at 12:30 PM UTC)",
            datetime(2026, 1, 2, 14, 30, tzinfo=timezone(timedelta(hours=2))),
        ),
        ("", None),
    ],
)
def test_waiting(expected: str, resets_at: datetime | None) -> None:
    """A wait shows its remaining time, and when the limit resets if that is known."""
    assert f"⏳ Waiting... 2h 44m remaining{expected}" == waiting_line(9840, resets_at)


def test_activity_without_tools() -> None:
    """Before the first tool call no tools are counted."""
    assert "⚡ 0s Thinking..." == activity_line(0.9, "Thinking", 0)


@pytest.mark.parametrize(
    ("expected", "events"),
    [
        ("⚡ 5s Starting...", []),
        ("⚡ 5s Thinking...", [sample(ev.DeliverSessionStarted)]),
        ("⚡ 5s Responding...", [sample(ev.DeliverSessionStarted), ev.AgentMessage(text="hm")]),
        ("⚡ 5s Running Bash... (1 tool)", [ev.ToolCall(name="Bash")]),
        ("⚡ 5s Running list... (1 tool)", [ev.ToolCall(name="mcp__autonoe-deliverable__list")]),
        (
            "⚡ 5s Thinking... (2 tools)",
            [ev.ToolCall(name="a"), ev.ToolCall(name="b"), ev.ToolResult(name="b", output="")],
        ),
        ("⚡ 5s Running b... (1 tool)", [ev.ToolCall(name="b"), ev.PingEvent(timestamp=0)]),
        ("⚡ 5s Thinking...", [ev.ToolCall(name="b"), sample(ev.DeliverSessionStarted)]),
        ("⚡ 5s Pausing...", [ev.ToolCall(name="b"), sample(ev.DeliverSessionEnded)]),
        ("⚡ 5s Retrying...", [sample(ev.AgentRetry)]),
        ("⏳ Waiting... 55s remaining", [ev.QuotaWaiting(remaining=60)]),
        ("⚡ 5s Thinking...", [ev.QuotaWaiting(remaining=60), ev.QuotaLifted(waited=60)]),
        ("⚡ 5s Thinking...", [ev.QuotaWaiting(remaining=60), ev.Thinking(text="hm")]),
    ],
)
def test_activity_line_follows_the_agent(expected: str, events: list[ev.Event]) -> None:
    """The last line follows the agent; its time is the session's."""
    panel = Panel()
    for event in events:
        panel = panel.add(event, NOW)
    (line,) = panel.lines(NOW + timedelta(seconds=5), height=24, began=NOW)
    assert expected == paint(line, color=False)


def test_session_time_starts_with_the_session() -> None:
    """A later session counts its own time."""
    panel = Panel().add(sample(ev.DeliverSessionStarted), NOW + timedelta(seconds=60))
    (line,) = panel.lines(NOW + timedelta(seconds=72), height=24, began=NOW)
    assert "⚡ 12s Thinking..." == paint(line, color=False)
