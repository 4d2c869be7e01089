"""Parsing lines of OpenCode and its plugin: excerpts of real runs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.agents.base.watch import Watch
from cuggino.agents.opencode.wire import OpenCodeSession, Parts
from cuggino.errors import AgentFailed, LlmSessionError, QuotaExceeded
from tests.vectors import DATA

NOW = 1_795_230_000.0
UNSEEN = ev.PingEvent | ev.UsageUpdate | ev.SystemMessage


def lines(name: str) -> list[bytes]:
    return (DATA / "opencode" / f"{name}.jsonl").read_bytes().splitlines()


def read(
    given_lines: list[bytes], session: OpenCodeSession, *, exit_code: int = 0, stderr: str = ""
) -> tuple[list[ev.LlmAgentEvent], ev.SessionEnded, LlmSessionError | None]:
    events = [event for line in given_lines for event in session.feed(line, now=NOW)]
    ended, error = session.end(exit_code=exit_code, stderr_tail=stderr, duration=1.0, now=NOW)
    return events, ended, error


def line(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()


def plugin(event: str, properties: dict[str, Any]) -> bytes:
    return line({"type": "cuggino", "event": event, "properties": properties})


def test_a_run_without_the_plugin() -> None:
    """Complete parts are emitted in Claude Code's names, with tokens and cost summed up."""
    events, ended, error = read(lines("ok"), OpenCodeSession())
    assert error is None
    tags = [event.tag for event in events if not isinstance(event, UNSEEN)]
    assert ["AgentMessage", "ToolCall", "ToolResult"] * 2 == tags[:6]
    calls = [event for event in events if isinstance(event, ev.ToolCall)]
    assert ["Bash", "Write"] == [call.name for call in calls]
    assert {"file_path": "/sandbox/oc-ok/hello.txt", "content": "hello from mock\n"} == (
        calls[1].input
    )
    results = [event for event in events if isinstance(event, ev.ToolResult)]
    assert [call.id for call in calls] == [result.name for result in results]
    assert ev.Usage(input_tokens=2400, output_tokens=150, cache_read_tokens=600) == ended.usage
    assert ("completed", 3) == (ended.outcome, ended.num_turns)
    assert pytest.approx(0.00396) == ended.cost_usd
    assert "ses_e03f7220effeHwU0HL8JE9uXNX" == ended.session_id


def test_a_run_that_stops_after_a_tool() -> None:
    """A run that ends successfully right after a tool call has failed."""
    _, _, error = read(lines("askperm"), OpenCodeSession())
    assert isinstance(error, AgentFailed)
    assert "opencode stopped after a tool call" == error.message


def test_truncated_answers() -> None:
    """The third truncated answer in a row ends the session."""
    session = OpenCodeSession()
    given_lines = lines("drop")
    seen = []
    for one in given_lines:
        session.feed(one, now=NOW)
        seen.append(session.breach)
    first = next(breach for breach in seen if breach)
    assert isinstance(first, AgentFailed)
    assert "the model's answer broke off 3 times" == first.message
    finished = [i for i, one in enumerate(given_lines) if b'"step_finish"' in one]
    assert finished[2] == seen.index(first)


def test_the_plugin() -> None:
    """Lines of the plugin add detail earlier, without duplicates."""
    session = OpenCodeSession(watch=Watch())
    events, ended, error = read(lines("guarded"), session)
    assert error is None
    calls = [event for event in events if isinstance(event, ev.ToolCall)]
    assert ["Bash", "Task", "Bash"] == [call.name for call in calls]
    results = {event.name: event for event in events if isinstance(event, ev.ToolResult)}
    assert {call.id for call in calls} == set(results)
    (denied,) = [event for event in events if isinstance(event, ev.GuardDenied)]
    assert (calls[0].id, "> .specs/task.md") == (denied.tool_use_id, denied.part)
    assert events.index(calls[0]) < events.index(denied) < events.index(results[calls[0].id])
    said = [event for event in events if isinstance(event, ev.AgentMessage)]
    assert [None, calls[1].id, calls[1].id, None] == [m.parent_tool_use_id for m in said]
    for message in said:
        deltas = [
            (events.index(event), event.text)
            for event in events
            if isinstance(event, ev.MessageDelta) and event.message_id == message.message_id
        ]
        assert message.text == "".join(text for _, text in deltas)
        assert max(index for index, _ in deltas) < events.index(message)
    assert ("completed", 5000, 3) == (
        ended.outcome,
        ended.usage and ended.usage.input_tokens,
        ended.num_turns,
    )


def test_waiting() -> None:
    """A short wait is emitted; a long one ends the session with the reset time."""
    session = OpenCodeSession()
    status = {"type": "retry", "attempt": 1, "message": "slow down", "next": (NOW + 5) * 1000}
    events = session.feed(plugin("session.status", {"status": status}), now=NOW)
    told = [event.text for event in events if isinstance(event, ev.SystemMessage)]
    assert ("Retrying (attempt 1, in 5s): slow down", None) == (told[-1], session.breach)
    status["next"] = (NOW + 3600) * 1000
    session.feed(plugin("session.status", {"status": status}), now=NOW)
    ended, error = session.end(exit_code=-9, stderr_tail="", duration=1.0, now=NOW)
    assert isinstance(error, QuotaExceeded)
    assert ("quota", datetime.fromtimestamp(NOW + 3600, UTC)) == (ended.outcome, error.resets_at)


@pytest.mark.parametrize(
    ("message", "attempt", "seconds", "expected"),
    [
        ("Overloaded", 1, 5, None),
        ("Overloaded", 4, 5, "overloaded"),
        ("Overloaded", 1, 3600, "overloaded"),
        ("Internal server error", 1, 3600, "server"),
        ("The socket connection was closed unexpectedly", 3, 5, None),
        ("The socket connection was closed unexpectedly", 4, 5, "connection"),
        ("slow down", 4, 5, "rate_limit"),
    ],
)
def test_an_outage_is_no_limit(
    message: str, attempt: int, seconds: float, expected: str | None
) -> None:
    """A wait that is too long ends the session, and its message determines the reason."""
    session = OpenCodeSession()
    next_time = (NOW + seconds) * 1000
    status = {"type": "retry", "attempt": attempt, "message": message, "next": next_time}
    session.feed(plugin("session.status", {"status": status}), now=NOW)
    error = session.breach
    assert expected == (error.reason if isinstance(error, AgentFailed) else None)
    assert (error is None) == (expected is None)


def test_text_before_a_call() -> None:
    """Text written before a call precedes it, and the rest of the same text follows it."""
    session = OpenCodeSession()

    def text(**more: object) -> bytes:
        part = {"id": "t", "type": "text", "messageID": "m", "sessionID": "s", "text": "", **more}
        return plugin("message.part.updated", {"part": part})

    def delta(words: str) -> bytes:
        given = {"delta": words, "messageID": "m", "partID": "t", "sessionID": "s"}
        return plugin("message.part.delta", {**given, "field": "text"})

    state = {"status": "running", "input": {"command": "ls"}}
    tool = {"id": "c", "type": "tool", "tool": "bash", "callID": "c", "sessionID": "s"}
    told_lines = [
        text(time={"start": 1}),
        delta("I "),
        delta("look."),
        plugin("message.part.updated", {"part": {**tool, "state": state}}),
        delta(" Well."),
        text(text="I look. Well.", time={"start": 1, "end": 2}),
    ]
    events = [event for one in told_lines for event in session.feed(one, now=NOW)]
    kinds = (ev.AgentMessage, ev.MessageDelta, ev.ToolCall)
    told = [(event.tag, getattr(event, "text", "")) for event in events if isinstance(event, kinds)]
    assert [
        ("MessageDelta", "I "),
        ("MessageDelta", "look."),
        ("AgentMessage", "I look."),
        ("ToolCall", ""),
        ("MessageDelta", " Well."),
        ("AgentMessage", " Well."),
    ] == told


def test_a_summary_is_not_emitted() -> None:
    """The summary of an overlong session is not a message, so its markers do not count."""
    session = OpenCodeSession()
    info = {"id": "m", "role": "assistant", "summary": True, "sessionID": "s"}
    session.feed(plugin("message.updated", {"info": info}), now=NOW)
    part = {"id": "p", "type": "text", "messageID": "m", "text": "<DONE>", "time": {"end": 1}}
    events = session.feed(plugin("message.part.updated", {"part": part}), now=NOW)
    assert [] == [event for event in events if isinstance(event, ev.AgentMessage)]


def test_an_unknown_session() -> None:
    """A session that cannot be resumed is a bad request, with no event except the last."""
    session = OpenCodeSession(resumed="ses_x")
    events, _, error = read([], session, exit_code=1, stderr="\x1b[91mError: Session not found")
    assert isinstance(error, AgentFailed)
    assert ("bad_request", "Error: Session not found", []) == (error.reason, error.message, events)


def test_a_dropped_output() -> None:
    """A call of an earlier process whose output is dropped now is not emitted."""
    watch = Watch()
    watch.hear({"canary": "live"}, call=None)
    parts = Parts(guard=watch)
    state = {"status": "completed", "input": {"command": "ls"}, "output": "", "time": {}}
    part = {"id": "p", "type": "tool", "tool": "bash", "callID": "c"}
    dropped = {**part, "state": {**state, "time": {"compacted": 1}}}
    assert [] == parts.read(dropped, None)
    assert watch.breach is None
    assert ["ToolCall", "ToolResult"] == [
        event.tag for event in parts.read({**part, "state": state}, None)
    ]
    assert watch.breach is not None


def test_parts_of_sub_agents() -> None:
    """A sub-agent's part has a parent even before the main session's id is known."""
    parts = Parts()
    assert parts.parent("one", None) is None
    parts.child("sub")
    assert "sub" == parts.parent("sub", None)
    parts.call({"tool": "task", "callID": "c1", "state": {"input": {}}}, None)
    parts.child("second")
    assert ["c1", "sub"] == [parts.parent(name, "main") for name in ("second", "sub")]
    assert [None, None] == [parts.parent(name, "main") for name in ("main", None)]
    assert "unknown" == parts.parent("unknown", "main")
