"""The vectors of OpenCode yield the expected events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cuggino.agents.opencode.wire import OpenCodeSession
from cuggino.events import SystemMessage
from tests.vectors import event_of, not_followed, rows

ROWS = {row["id"]: row for row in rows("provider_events") if row["provider"] == "opencode"}
NOT_FOLLOWED = {row for row in not_followed("provider_events") if row in ROWS}


def follows(row: dict[str, Any]) -> bool:
    """Return whether the line yields the row's events; times of keepalives are not compared."""
    line = json.dumps(row["raw"]).encode()
    events = OpenCodeSession().feed(line, now=0.0)
    seen = [event for event in events if not isinstance(event, SystemMessage)]
    expected = [
        event_of({**raw, "timestamp": 0.0} if raw["_tag"] == "PingEvent" else raw)
        for raw in row["events"]
    ]
    return expected == seen


@pytest.mark.parametrize("row_id", sorted(set(ROWS) - NOT_FOLLOWED))
def test_vectors(row_id: str) -> None:
    """Every vector line yields its events."""
    assert follows(ROWS[row_id])


@pytest.mark.parametrize("row_id", sorted(NOT_FOLLOWED))
def test_listed_exceptions(row_id: str) -> None:
    """A row listed as not followed really differs."""
    assert not follows(ROWS[row_id])
