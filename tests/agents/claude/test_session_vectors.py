"""Vector sessions, translated to the wire format, end as the vectors expect."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agents.claude.claude_lines import REJECTED, api_error, end, kind, result
from tests.vectors import not_followed, rows

NOT_FOLLOWED = not_followed("session")
SESSIONS = {row["id"]: row for row in rows("session")}
OUTCOMES = {"completed": "completed", "execution_error": "failed", "quota_exceeded": "quota"}


def wire(event: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the wire lines for this vector event."""
    match event:
        case {"type": "stream_text", "text": text}:
            block = {"type": "text", "text": text}
        case {"type": "stream_thinking", "thinking": text}:
            block = {"type": "thinking", "thinking": text}
        case {"type": "stream_tool_invocation"}:
            keys = {"id": event["toolUseId"], "name": event["name"], "input": event["input"]}
            block = {"type": "tool_use", **keys}
        case {"type": "stream_tool_response"}:
            keys = {"tool_use_id": event["toolUseId"], "is_error": event["isError"]}
            block = {"type": "tool_result", "content": event["content"], **keys}
            return [{"type": "user", "message": {"content": [block]}}]
        case {"type": "stream_end", "outcome": "completed"}:
            cost = {"total_cost_usd": event["totalCostUsd"]} if "totalCostUsd" in event else {}
            return [result(result=event.get("result"), **cost)]
        case {"type": "stream_end", "outcome": "quota_exceeded", "message": message}:
            return [REJECTED, api_error(429, message)]
        case {"type": "stream_end", "messages": messages}:
            return [result(subtype="error_during_execution", is_error=True, errors=messages)]
        case _:
            raise AssertionError(f"unknown event {event}")
    return [{"type": "assistant", "message": {"content": [block]}}]


def follows(row: dict[str, Any]) -> bool:
    """Return whether the run ends as the row expects.

    A stream error becomes an exit code with a message on stderr. The vectors count every session
    that reported an outcome as a success, even a failed one: here, a run that did not crash.
    """
    stream_error = [e["message"] for e in row["events"] if e["type"] == "stream_error"]
    lines = [line for e in row["events"] if e["type"] != "stream_error" for line in wire(e)]
    ended, error = end(*lines, exit_code=len(stream_error), stderr="\n".join(stream_error))
    expected = row["expected"]
    crashed = kind(error) == "crash"
    if not expected["success"]:
        return error is not None and expected["error"] in str(error)
    return (
        not crashed
        and OUTCOMES[expected["outcome"]] == ended.outcome
        and expected["costUsd"] == (ended.cost_usd or 0)
    )


@pytest.mark.parametrize("row_id", sorted(set(SESSIONS) - set(NOT_FOLLOWED)))
def test_vectors(row_id: str) -> None:
    """Every vector session ends as expected."""
    assert follows(SESSIONS[row_id])


@pytest.mark.parametrize("row_id", sorted(NOT_FOLLOWED))
def test_listed_exceptions(row_id: str) -> None:
    """A row listed as not followed exists and really differs."""
    assert row_id in SESSIONS
    assert not follows(SESSIONS[row_id])
