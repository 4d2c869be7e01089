"""The lines of OpenCode in the vectors become the events that the vectors name."""

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
    """True when the line gives the row's events; the time of a sign of life is not compared."""
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
    """Every line of the vectors gives the events that they name."""
    assert follows(ROWS[row_id])


@pytest.mark.parametrize("row_id", sorted(NOT_FOLLOWED))
def test_not_followed(row_id: str) -> None:
    """A row that is listed as not followed really is not followed."""
    assert not follows(ROWS[row_id])
