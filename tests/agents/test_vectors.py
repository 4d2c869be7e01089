"""The vectors of the providers: each row is read as it expects, except those listed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.agents.claude.agent import servers_file
from cuggino.agents.claude.wire import ClaudeSession
from cuggino.agents.codex.wire import CodexSession
from cuggino.agents.opencode.wire import OpenCodeSession
from cuggino.errors import AgentFailed, QuotaExceeded
from tests.agents.claude.claude_lines import REJECTED, api_error, end, kind, result
from tests.vectors import event_of, matches, not_followed, rows

Row = dict[str, Any]
SUCCESS = json.dumps(result()).encode()
OUTCOMES = {
    "completed": "completed",
    "execution_error": "failed",
    "max_iterations": "max_turns",
    "budget_exceeded": "budget",
    "quota_exceeded": "quota",
}


def claude_line(row: Row) -> bool:
    """Return whether the line's events are emitted and the run ends with its error, if any."""
    session, raw = ClaudeSession(), row["raw"]
    events = session.feed(json.dumps(raw).encode(), now=0.0)
    if not (isinstance(raw, dict) and raw.get("type") == "result"):
        session.feed(SUCCESS, now=0.0)
    _, error = session.end(exit_code=0, stderr_tail="", duration=1.0, now=0.0)
    expected = row["events"] or []
    return (
        len(expected) == len(events)
        and all(map(matches, expected, events))
        and row["error"] == (error.message if error else None)
    )


def codex_line(row: Row) -> bool:
    """Return whether the line yields the row's events, or the session its error.

    Tokens and early error messages are allowed in addition to the row's events.
    """
    session = CodexSession()
    events = session.feed(json.dumps(row["raw"]).encode(), now=0.0)
    if row["error"] is not None:
        _, error = session.end(exit_code=1, stderr_tail="", duration=1.0, now=0.0)
        return isinstance(error, AgentFailed) and row["error"] in str(error)
    seen = [event for event in events if not isinstance(event, ev.UsageUpdate)]
    if not any(expected["_tag"] == "PingEvent" for expected in row["events"]):
        seen = [event for event in seen if not isinstance(event, ev.PingEvent)]
    return len(seen) == len(row["events"]) and all(map(matches, row["events"], seen))


def opencode_line(row: Row) -> bool:
    """Return whether the line yields the row's events; times of keepalives are not compared."""
    events = OpenCodeSession().feed(json.dumps(row["raw"]).encode(), now=0.0)
    seen = [event for event in events if not isinstance(event, ev.SystemMessage)]
    return seen == [
        event_of({**raw, "timestamp": 0.0} if raw["_tag"] == "PingEvent" else raw)
        for raw in row["events"]
    ]


def wire(event: Row) -> list[Row]:
    """Return the lines of Claude Code for this vector event."""
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


def session_ends(row: Row) -> bool:
    """Return whether the run of Claude Code ends as the row expects.

    A stream error becomes an exit code with a message on stderr. The vectors count every session
    that reported an outcome as a success, even a failed one: here, a run that did not crash.
    """
    stream_error = [e["message"] for e in row["events"] if e["type"] == "stream_error"]
    lines = [line for e in row["events"] if e["type"] != "stream_error" for line in wire(e)]
    ended, error = end(*lines, exit_code=len(stream_error), stderr="\n".join(stream_error))
    expected = row["expected"]
    if not expected["success"]:
        return error is not None and expected["error"] in str(error)
    return (
        kind(error) != "crash"
        and OUTCOMES[expected["outcome"]] == ended.outcome
        and expected["costUsd"] == (ended.cost_usd or 0)
    )


def converted(*blocks: Row) -> list[Row]:
    """Return the events of a message with these blocks, in the format of the vectors."""
    role = "user" if any(block["type"] == "tool_result" for block in blocks) else "assistant"
    line = {"type": role, "message": {"id": "m", "content": list(blocks)}}
    events = ClaudeSession().feed(json.dumps(line).encode(), now=0.0)
    return [told for event in events if (told := original(event))]


def original(event: ev.LlmAgentEvent) -> Row | None:
    """Return the event in the format of the vectors."""
    match event:
        case ev.AgentMessage(text=text):
            return {"type": "stream_text", "text": text}
        case ev.Thinking(text=text):
            return {"type": "stream_thinking", "thinking": text}
        case ev.ToolCall(name=name, input=given, id=call):
            told = {"type": "stream_tool_invocation", "name": name, "input": given}
            return {**told, "toolUseId": call}
        case ev.ToolResult(name=call, output=text, is_error=is_error):
            told = {"type": "stream_tool_response", "content": text, "isError": is_error}
            return {**told, "toolUseId": call}
        case _:
            return None


def ending(message: Row) -> Row:
    """Return the outcome of a session with this result, in the format of the vectors."""
    ended, error = end(message)
    told: Row = {"type": "stream_end", "outcome": ended.outcome}
    if ended.cost_usd is not None:
        told["totalCostUsd"] = ended.cost_usd
    if isinstance(error, QuotaExceeded):
        told["message"] = error.message
        if error.resets_at is not None:
            told["resetTime"] = f"<next {error.resets_at:%H:%M}Z>"
    elif ended.outcome == "failed":
        told["messages"] = [error.message] if error is not None else []
    return told


def expected_of(row: Row) -> Any:
    """Return the row's expectation, with the agent's last message as the final text."""
    want = row["expected"]
    if row["fn"] == "to_session_end":
        return worded(want)
    if row["fn"] == "to_stream_events" and row["input"]["type"] == "result":
        return [worded(event) for event in want]
    return want


def worded(event: Row) -> Row:
    told = {**event, "outcome": OUTCOMES[event["outcome"]]}
    told.pop("result", None)
    return told


def actual(row: Row) -> Any:
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


def agrees(row: Row) -> bool:
    """Return whether our events match the row; ids missing from the row may be anything."""
    want, got = expected_of(row), actual(row)
    wanted = want if isinstance(want, list) else [want]
    found = got if isinstance(got, list) else [got]
    return len(wanted) == len(found) and all(
        one == two or (isinstance(two, dict) and one == {k: v for k, v in two.items() if k in one})
        for one, two in zip(wanted, found, strict=True)
    )


LINES: Mapping[str, Callable[[Row], bool]] = {
    "claude": claude_line,
    "codex": codex_line,
    "opencode": opencode_line,
}
CASES = {
    **{
        row["id"]: ("provider_events", row, LINES[row["provider"]])
        for row in rows("provider_events")
        if row["provider"] in LINES
    },
    **{f"session {row['id']}": ("session", row, session_ends) for row in rows("session")},
    **{f"convert {row['id']}": ("stream_convert", row, agrees) for row in rows("stream_convert")},
}


@pytest.mark.parametrize("case", CASES)
def test_rows(case: str) -> None:
    """A row is followed exactly if it is not listed as an exception (AUT-010 to AUT-016)."""
    name, row, follows = CASES[case]
    assert follows(row) == (row["id"] not in not_followed(name))


@pytest.mark.parametrize("name", ["provider_events", "session", "stream_convert"])
def test_listed_exceptions_exist(name: str) -> None:
    """Each row listed as not followed is a row."""
    assert set(not_followed(name)) <= {row["id"] for row in rows(name)}
