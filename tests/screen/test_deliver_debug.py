"""Debug lines of the deliverables loop: the recorded cases and events without one."""

from __future__ import annotations

from typing import Any

import pytest

from cuggino import events as ev
from cuggino_cli.screen.deliver_debug import debug_line, received, sent_line
from cuggino_cli.screen.text import clip
from tests.vectors import each, not_followed, rows

Row = dict[str, Any]

ROWS = {row["id"]: row for row in rows("event_format")}
_OUTCOMES = {
    "completed": "completed",
    "execution_error": "execution_error",
    "max_iterations": "max_turns",
    "budget_exceeded": "budget",
    "quota_exceeded": "quota",
}


def event_of(raw: Row) -> ev.Event:
    """Convert one of Autonoe's events to ours."""
    match raw["type"]:
        case "stream_text":
            return ev.AgentMessage(text=raw["text"])
        case "stream_thinking":
            return ev.Thinking(text=raw["thinking"])
        case "stream_tool_invocation":
            return ev.ToolCall(name=raw["name"], input=raw["input"], id=raw.get("toolUseId", ""))
        case "stream_tool_response":
            return ev.ToolResult(
                name=raw["toolUseId"], output=raw["content"], is_error=raw["isError"]
            )
        case "stream_error":
            return ev.DeliverSessionEnded(session=1, outcome="error", message=raw["message"])
        case "stream_end":
            messages: str = "\n".join(raw.get("messages", ()))
            words: str = raw.get("result") or raw.get("message") or messages
            outcome: Any = _OUTCOMES[raw["outcome"]]
            return ev.DeliverSessionEnded(session=1, outcome=outcome, message=words)
        case other:
            return ev.UnknownEvent(raw={"_tag": other})


@each("name", ROWS)
def test_recorded_events(name: str) -> None:
    """A recorded event is printed as recorded, under its recorded kind."""
    row = ROWS[name]
    if row["fn"] == "truncate":
        assert row["expected"] == clip(row["text"], row["max"])
        return
    found = received(event_of(row["event"]))
    assert found is not None
    assert (row["event"]["type"], row["expected"]) == found


def test_all_rows_are_followed() -> None:
    """The data has the recorded number of rows, and none is excluded."""
    assert (29, {}) == (len(ROWS), not_followed("event_format"))


def test_debug_line_is_cut_to_200_characters() -> None:
    """A line marks the event as received, names its kind and is cut after 200 characters."""
    line = debug_line(ev.AgentMessage(text="a" * 201))
    assert f"[Recv] stream_text: {'a' * 200}..." == line


def test_json_is_compact_and_in_order() -> None:
    """Tool input is printed as compact JSON with ordered keys and no escaped characters."""
    line = debug_line(ev.ToolCall(name="Write", input={"b": "漢", "a": [1, None]}))
    expected = '[Recv] stream_tool_invocation: [tool: Write] {"b":"漢","a":[1,null]}'
    assert expected == line


def test_sent_instruction_is_cut_to_200_characters() -> None:
    """An instruction is printed with its first 200 characters."""
    assert f"[Send] {'x' * 200}..." == sent_line("x" * 300)


@pytest.mark.parametrize(
    ("expected", "event"),
    [
        ("[Recv] system: hello", ev.SystemMessage(text="hello")),
        ("[Recv] user: go on", ev.UserMessage(text="go on")),
        (
            "[Recv] stream_end: [session: interrupted]",
            ev.DeliverSessionEnded(session=1, outcome="interrupted"),
        ),
        (
            "[Recv] stream_end: [session: completed]",
            ev.DeliverSessionEnded(session=1, outcome="completed"),
        ),
    ],
)
def test_events_without_an_autonoe_kind(expected: str, event: ev.Event) -> None:
    """Other agent output is printed unchanged, and an end without text has none."""
    assert expected == debug_line(event)


@pytest.mark.parametrize(
    "event",
    [
        ev.PingEvent(timestamp=0),
        ev.SessionEnded(outcome="completed"),
        ev.RateLimited(status="rejected"),
        ev.GuardDenied(tool="Bash", tool_use_id="t", part="rm", reason="no"),
    ],
)
def test_events_with_their_own_line_are_not_repeated(event: ev.Event) -> None:
    """Heartbeats and events with their own line are not printed again."""
    assert debug_line(event) is None
