"""Vector messages, blocks and results, read from the wire format (AUT-010 to AUT-016)."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.claude.agent import servers_file
from cuggino.agents.claude.wire import ClaudeSession
from cuggino.errors import QuotaExceeded
from cuggino.events import AgentMessage, LlmAgentEvent, Thinking, ToolCall, ToolResult
from tests.agents.claude.claude_lines import end
from tests.vectors import not_followed, rows

NOT_FOLLOWED = not_followed("stream_convert")
ROWS = {row["id"]: row for row in rows("stream_convert")}
OUTCOMES = {
    "completed": "completed",
    "execution_error": "failed",
    "max_iterations": "max_turns",
    "budget_exceeded": "budget",
    "quota_exceeded": "quota",
}


def converted(*blocks: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a message with these blocks, in the format of the vectors."""
    role = "user" if any(block["type"] == "tool_result" for block in blocks) else "assistant"
    line = {"type": role, "message": {"id": "m", "content": list(blocks)}}
    events = ClaudeSession().feed(json.dumps(line).encode(), now=0.0)
    return [told for event in events if (told := original(event))]


def original(event: LlmAgentEvent) -> dict[str, Any] | None:
    """Return the event in the format of the vectors."""
    match event:
        case AgentMessage(text=text):
            return {"type": "stream_text", "text": text}
        case Thinking(text=text):
            return {"type": "stream_thinking", "thinking": text}
        case ToolCall(name=name, input=given, id=call):
            told = {"type": "stream_tool_invocation", "name": name, "input": given}
            return {**told, "toolUseId": call}
        case ToolResult(name=call, output=text, is_error=is_error):
            told = {"type": "stream_tool_response", "content": text, "isError": is_error}
            return {**told, "toolUseId": call}
        case _:
            return None


def ending(message: dict[str, Any]) -> dict[str, Any]:
    """Return the outcome of a session with this result, in the format of the vectors."""
    ended, error = end(message)
    told: dict[str, Any] = {"type": "stream_end", "outcome": ended.outcome}
    if ended.cost_usd is not None:
        told["totalCostUsd"] = ended.cost_usd
    if isinstance(error, QuotaExceeded):
        told["message"] = error.message
        if error.resets_at is not None:
            told["resetTime"] = f"<next {error.resets_at:%H:%M}Z>"
    elif ended.outcome == "failed":
        told["messages"] = [error.message] if error is not None else []
    return told


def expected(row: dict[str, Any]) -> Any:
    """Return the row's expectation, with the agent's last message as the final text."""
    want = row["expected"]
    if row["fn"] == "to_session_end":
        return worded(want)
    if row["fn"] == "to_stream_events" and row["input"]["type"] == "result":
        return [worded(event) for event in want]
    return want


def worded(event: dict[str, Any]) -> dict[str, Any]:
    told = {**event, "outcome": OUTCOMES[event["outcome"]]}
    told.pop("result", None)
    return told


def actual(row: dict[str, Any], folder: Path) -> Any:
    given = row["input"]
    match row["fn"]:
        case "to_stream_event":
            events = converted(given)
            return events[0] if events else None
        case "to_stream_events" if given["type"] == "result":
            return [ending(given)]
        case "to_stream_events":
            return converted(*given.get("message", {}).get("content", []))
        case "to_session_end":
            return ending(given)
        case "to_sdk_mcp_servers":
            with ExitStack() as stack:
                file = servers_file(given, stack)
                assert file is not None
                return json.loads(file.read_text())["mcpServers"]
        case other:
            raise AssertionError(other)


def agrees(row: dict[str, Any], folder: Path) -> bool:
    """Return whether our events match the row; ids missing from the row may be anything."""
    want, got = expected(row), actual(row, folder)
    wanted = want if isinstance(want, list) else [want]
    found = got if isinstance(got, list) else [got]
    if len(wanted) != len(found):
        return False
    return all(
        one == two or (isinstance(two, dict) and one == {k: v for k, v in two.items() if k in one})
        for one, two in zip(wanted, found, strict=True)
    )


@pytest.mark.parametrize("row_id", sorted(ROWS.keys() - NOT_FOLLOWED))
def test_vectors(row_id: str, tmp_path: Path) -> None:
    """Every row is read as the vectors expect."""
    assert agrees(ROWS[row_id], tmp_path), actual(ROWS[row_id], tmp_path)


@pytest.mark.parametrize("row_id", sorted(NOT_FOLLOWED))
def test_listed_exceptions(row_id: str, tmp_path: Path) -> None:
    """A row listed as not followed would fail."""
    assert not agrees(ROWS[row_id], tmp_path)
