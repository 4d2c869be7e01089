"""Messages, blocks and results of the vectors, read from the wire (AUT-010 to AUT-016)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents import SpawnOptions
from cuggino.agents.claude.files import write_files
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


def said(*blocks: dict[str, Any]) -> list[dict[str, Any]]:
    """What a message with these blocks gives, in the original's words."""
    role = "user" if any(block["type"] == "tool_result" for block in blocks) else "assistant"
    line = {"type": role, "message": {"id": "m", "content": list(blocks)}}
    events = ClaudeSession().feed(json.dumps(line).encode(), now=0.0)
    return [told for event in events if (told := original(event))]


def original(event: LlmAgentEvent) -> dict[str, Any] | None:
    """The event as the original has it."""
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
    """How a session with this result ends, in the original's words."""
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
    """What the row expects. Last words are the agent's last message here, not the result's."""
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
            events = said(given)
            return events[0] if events else None
        case "to_stream_events" if given["type"] == "result":
            return [ending(given)]
        case "to_stream_events":
            return said(*given.get("message", {}).get("content", []))
        case "to_session_end":
            return ending(given)
        case "to_sdk_mcp_servers":
            files = write_files(SpawnOptions(prompt="", cwd=folder), {}, servers=given)
            assert files.servers is not None
            told = json.loads(files.servers.read_text())
            files.remove()
            return told["mcpServers"]
        case other:
            raise AssertionError(other)


def agrees(row: dict[str, Any], folder: Path) -> bool:
    """Whether ours is what the row expects; an id that the row does not have may be anything."""
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
    """What the original makes of it is what is made of it here."""
    assert agrees(ROWS[row_id], tmp_path), actual(ROWS[row_id], tmp_path)


@pytest.mark.parametrize("row_id", sorted(NOT_FOLLOWED))
def test_not_followed(row_id: str, tmp_path: Path) -> None:
    """A row that is listed as not followed would fail."""
    assert not agrees(ROWS[row_id], tmp_path)
