"""The vectors of the Codex CLI are read as they expect."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cuggino.agents.codex.wire import CodexSession
from cuggino.errors import AgentFailed
from cuggino.events import PingEvent, UsageUpdate
from tests.vectors import matches, not_followed, rows

NOT_FOLLOWED = not_followed("provider_events")
ROWS = {row["id"]: row for row in rows("provider_events") if row["provider"] == "codex"}


def follows(row: dict[str, Any]) -> bool:
    """Return whether the line yields the row's events, or the session its error.

    Tokens and early error messages are allowed in addition to the row's events.
    """
    session = CodexSession()
    events = session.feed(json.dumps(row["raw"]).encode(), now=0.0)
    if row["error"] is not None:
        _, error = session.end(exit_code=1, stderr_tail="", duration=1.0, now=0.0)
        return isinstance(error, AgentFailed) and row["error"] in str(error)
    seen = [event for event in events if not isinstance(event, UsageUpdate)]
    if not any(expected["_tag"] == "PingEvent" for expected in row["events"]):
        seen = [event for event in seen if not isinstance(event, PingEvent)]
    return len(seen) == len(row["events"]) and all(map(matches, row["events"], seen))


@pytest.mark.parametrize("row_id", sorted(set(ROWS) - set(NOT_FOLLOWED)))
def test_vectors(row_id: str) -> None:
    """Every row of the vectors is followed."""
    assert follows(ROWS[row_id])


def test_listed_exceptions() -> None:
    """A row listed as not followed really differs."""
    listed = set(ROWS) & set(NOT_FOLLOWED)
    assert [] == [row_id for row_id in sorted(listed) if follows(ROWS[row_id])]
