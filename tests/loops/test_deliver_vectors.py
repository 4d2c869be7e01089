"""The runs that are recorded of the original, replayed in virtual time (AUT-030 to AUT-064)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, just, never

from cuggino import events as ev
from cuggino.errors import AgentFailed, QuotaExceeded
from tests.loops.deliver_loop import DeliverLoop, Statuses, Turn
from tests.vectors import not_followed, rows

FUTURE = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=3)
ROWS = rows("session_runner")
FOLLOWED = [row for row in ROWS if row["id"] not in not_followed("session_runner")]


def turn(session: dict[str, Any], leaves: Statuses | None) -> Turn:
    """A session of the original as our agents tell it."""
    events: list[ev.Event] = []
    error: Exception | None = None
    if "throws" in session:
        error = AgentFailed(session["throws"], reason="crash")
    for raw in session["events"]:
        cost = raw.get("totalCostUsd")
        match raw:
            case {"type": "stream_text", "text": text}:
                events.append(ev.AgentMessage(text=text))
            case {"type": "stream_error", "message": message}:
                events.append(ev.SessionEnded(outcome="failed"))
                error = AgentFailed(message, reason="crash")
            case {"outcome": "completed"}:
                events.append(ev.AgentMessage(text=raw.get("result", "")))
                events.append(ev.SessionEnded(outcome="completed", cost_usd=cost))
            case {"outcome": "execution_error", "messages": messages}:
                events.append(ev.SessionEnded(outcome="failed", cost_usd=cost, num_turns=1))
                error = AgentFailed("\n".join(messages), reason="unknown")
            case {"outcome": "quota_exceeded"}:
                resets = FUTURE if "resetTime" in raw else None
                events.append(ev.SessionEnded(outcome="quota"))
                error = QuotaExceeded(raw.get("message", ""), resets_at=resets)
            case _:
                raise AssertionError(raw)
    return Turn(events, leaves=leaves, error=error)


def delivered(row: dict[str, Any], folder: Path) -> DeliverLoop:
    """The project of the row. What a session has come to is read when it has not failed."""
    after = iter(row["status_after_session"])
    turns: list[Turn] = []
    for session in row["sessions"]:
        failed = "throws" in session or session["events"][-1:][0]["type"] == "stream_error"
        said = None if failed else next(after, None)
        leaves = {item["id"]: item["status"] for item in said} if said else None
        turns.append(turn(session, leaves))
    start: Statuses | None = None
    if row["status_exists"][:1] == [True]:
        first: list[dict[str, str]] = next(iter(row["status_after_session"]), [])
        start = {item["id"]: "pending" for item in first}
    return DeliverLoop(folder, turns, start)


@pytest.mark.parametrize("row", FOLLOWED, ids=lambda row: row["id"])
def test_a_recorded_run(row: dict[str, Any], tmp_path: Path) -> None:
    """Sessions, instructions, retries and the end are those of the original."""
    options, expected = row["options"], row["result"]
    pause = options.get("delayBetweenSessions", 3000) / 1000
    project = delivered(row, tmp_path)
    stop: Observable[object] = just("stop") if row["interrupted"] else never()
    story = project.run(
        interrupt=stop,
        session_pause=pause,
        max_sessions=options.get("maxIterations"),
        max_retries=options.get("maxRetries", 3),
        wait_for_quota=options.get("waitForQuota", False),
    )
    assert row["instruction_names"] == story.instructions
    assert len(row["sessions"]) == len(project.agent.spawned)
    end = story.ended
    assert {
        "iterations": end.sessions,
        "deliverablesPassedCount": end.passed,
        "deliverablesTotalCount": end.total,
        "blockedCount": end.blocked,
        "exitReason": end.reason,
        "totalCostUsd": round(end.cost_usd, 6),
        **({"error": end.error} if "error" in expected else {}),
    } == {key: value for key, value in expected.items() if not key.startswith("verified")}
    assert lines(row) == described(story.events)
    waits = [delay / 1000 for delay in row["delays"]]
    begun = story.times(ev.DeliverSessionStarted)
    assert sum(waits) == pytest.approx((begun[-1] - begun[0]) if begun else 0, abs=1e-3)


def lines(row: dict[str, Any]) -> list[str]:
    """Return the logged lines about sessions."""
    last = [log["message"] for log in row["logs"] if not log["message"].startswith("Overall")]
    wanted = ("Session ", "Quota exceeded: ")
    unwanted = ("Session failed after",)
    return [
        line.replace(", duration=<D>", "")
        for line in last
        if line.startswith(wanted) and not line.startswith(unwanted)
    ]


def described(events: list[ev.Event]) -> list[str]:
    """The same of our events."""
    said: list[str] = []
    for event in events:
        match event:
            case ev.DeliverSessionStarted(session=n):
                said.append(f"Session {n} started")
            case ev.DeliverSessionEnded(outcome="error"):
                pass
            case ev.DeliverSessionEnded(session=n, outcome=outcome, message=message):
                if outcome == "quota":
                    said.append(f"Quota exceeded: {message}")
                said.append(f"Session {n}: cost=${event.cost_usd or 0:.4f}")
            case ev.DeliverSessionRetry(attempt=k, max_retries=most):
                said.append(f"Session error ({k}/{most}), starting new session...")
            case _:
                pass
    return said
