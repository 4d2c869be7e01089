"""Claude Code's wire format line by line: noise, surrogates, events, and text deltas."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cuggino import events as ev
from cuggino.agents.base.wire import parse_json_line
from cuggino.agents.claude.wire import ClaudeSession, to_events

NOW = 1_700_000_000.5


def line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


def assistant(*content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"id": "msg_1", "content": list(content)}, **fields}


@pytest.mark.parametrize(
    "noise",
    [
        b"",
        b"\n",
        b"   \r\n",
        b"Debugger attached.\n",
        b"5\n",
        b'"text"\n',
        b"[1]\n",
        b"null\n",
        b'{"type":"assistant"',
        b"{} trailing",
        b"\xff\xfe\x00",
        b'{"a":' * 100_000,
        b'{"a":' + b"9" * 5000 + b"}",
    ],
    ids=lambda noise: repr(noise[:20]),
)
def test_noise(noise: bytes) -> None:
    """Any line that is not a JSON object is noise."""
    assert parse_json_line(noise) is None
    assert ClaudeSession().feed(noise, now=NOW) == []


def test_invalid_utf8_is_replaced() -> None:
    """An invalid UTF-8 byte becomes U+FFFD; the rest of the line is kept."""
    assert parse_json_line(b'{"text":"a\xffb"}\r\n') == {"text": "a\ufffdb"}


@pytest.mark.parametrize(
    ("escaped", "expected"),
    [
        (rb"\ud83d", "\ufffd"),
        (rb"\uD83D alone", "\ufffd alone"),
        (rb"\ude00", "\ufffd"),
        (rb"\ud83d\ude00", "\U0001f600"),
        (rb"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (rb"\\ud83d", "\\ud83d"),
        (rb"\u00e8", "è"),
    ],
)
def test_surrogates(escaped: bytes, expected: str) -> None:
    """A lone surrogate in a value or key becomes U+FFFD; pairs are kept."""
    parsed = parse_json_line(b'{"a":["%s",{"%s":1}]}' % (escaped, escaped))
    assert {"a": [expected, {expected: 1}]} == parsed


def test_surrogates_never_reach_an_event() -> None:
    """The event of a line with a lone surrogate can be serialized and parsed."""
    raw = rb'{"type":"assistant","message":{"content":[{"type":"text","text":"\ud83d!"}]}}'
    (event,) = ClaudeSession().feed(raw, now=NOW)
    assert event == ev.AgentMessage(text="\ufffd!")
    assert event == ev.parse_event(ev.dump_event(event))


@pytest.mark.parametrize(
    "raw",
    [
        b'{"type":"stream_event","event":{"type":"ping"}}\n',
        b'{"event":{"type":"ping"},"type":"stream_event"}\n',
        b'{ "type": "stream_event" }\n',
    ],
)
def test_stream_events_are_keepalives(raw: bytes) -> None:
    """A stream event is a ping with its time of arrival, wherever its type is in the line."""
    assert ClaudeSession().feed(raw, now=NOW) == [ev.PingEvent(timestamp=NOW)]


def test_the_type_is_never_read_from_a_text() -> None:
    """A message that quotes a stream event is still a message."""
    quoted = '{"type":"stream_event",'
    (event,) = ClaudeSession().feed(line(assistant({"type": "text", "text": quoted})), now=NOW)
    assert event == ev.AgentMessage(text=quoted, message_id="msg_1")


def test_assistant_blocks() -> None:
    """Each block of a message is one event; texts carry the message id and the sub-agent."""
    raw = assistant(
        {"type": "thinking", "thinking": "Hm.", "signature": "x"},
        {"type": "thinking", "thinking": "", "signature": "hidden"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "One"},
        {"type": "text", "text": "Two"},
        {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a"}},
        "broken",
        parent_tool_use_id="t0",
    )
    expected = [
        ev.Thinking(text="Hm."),
        ev.AgentMessage(text="One", message_id="msg_1", parent_tool_use_id="t0"),
        ev.AgentMessage(text="Two", message_id="msg_1", parent_tool_use_id="t0"),
        ev.ToolCall(name="Read", input={"path": "a"}, id="t1"),
    ]
    assert expected == to_events(raw, now=NOW)


@pytest.mark.parametrize(
    "fields",
    [{"is_api_error_message": True}, {"api_error": "connection_failed"}],
    ids=["flag", "kind"],
)
def test_api_errors_are_not_the_models_text(fields: dict[str, Any]) -> None:
    """API errors reported by the program are system messages, which never contain markers."""
    raw = assistant({"type": "text", "text": "API Error: <DONE>x</DONE>"}, **fields)
    assert to_events(raw, now=NOW) == [ev.SystemMessage(text="API Error: <DONE>x</DONE>")]


@pytest.mark.parametrize(
    ("block", "line_fields", "expected"),
    [
        (
            {"content": "<tool_use_error>Error: No tool x\nTry y.</tool_use_error>"},
            {},
            ev.ToolResult(name="t", output="No tool x\nTry y."),
        ),
        ({"content": "out", "is_error": None}, {}, ev.ToolResult(name="t", output="out")),
        ({"content": ""}, {"tool_use_result": {"stdout": "x"}}, ev.ToolResult(name="t", output="")),
        ({}, {"tool_use_result": "Error: no"}, ev.ToolResult(name="t", output="Error: no")),
        ({"content": None}, {"tool_use_result": {}}, ev.ToolResult(name="t", output="")),
        ({"content": {"a": "è"}}, {}, ev.ToolResult(name="t", output='{"a":"è"}')),
        ({"content": []}, {}, ev.ToolResult(name="t", output="")),
    ],
)
def test_tool_results(
    block: dict[str, Any], line_fields: dict[str, Any], expected: ev.ToolResult
) -> None:
    """The output of a tool is found in all its formats."""
    content = [{"type": "tool_result", "tool_use_id": "t", **block}]
    raw = {"type": "user", "message": {"content": content}, **line_fields}
    assert [expected] == to_events(raw, now=NOW)


def test_user_text_as_a_string() -> None:
    """A user message whose content is a plain string is one text."""
    raw = {"type": "user", "message": {"content": "Go on."}}
    assert to_events(raw, now=NOW) == [ev.UserMessage(text="Go on.")]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"attempt": 2, "max_retries": 10, "retry_delay_ms": 12400, "error_status": 429}
            | {"error": "rate_limit"},
            "Retrying (attempt 2 of 10, in 12s): rate limit (429)",
        ),
        (
            {"attempt": 1, "max_retries": 10, "retry_delay_ms": 540, "error_status": None}
            | {"error": "unknown"},
            "Retrying (attempt 1 of 10, in 1s): no answer from the API",
        ),
        ({}, "Retrying (attempt ? of ?): no answer from the API"),
    ],
)
def test_retries_are_emitted(fields: dict[str, Any], expected: str) -> None:
    """A retry of the program is a system message with its count, delay and reason."""
    raw = {"type": "system", "subtype": "api_retry", **fields}
    assert [ev.SystemMessage(text=expected)] == to_events(raw, now=NOW)


RESET = 1_795_300_000
RESETS_AT = datetime(2026, 11, 21, 22, 26, 40, tzinfo=UTC)
FIVE_HOUR = {"resetsAt": RESET, "rateLimitType": "five_hour"}
REJECTED = {"status": "rejected", **FIVE_HOUR}


def limited(status: str, *, overage: bool = False) -> ev.RateLimited:
    return ev.RateLimited(status=status, resets_at=RESETS_AT, limit="five_hour", overage=overage)


def used(share: float, window: str = "five_hour") -> ev.QuotaUsed:
    return ev.QuotaUsed(window=window, used=share, resets_at=RESETS_AT)


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        (REJECTED, [used(1), limited("rejected")]),
        ({"status": "allowed", "resetsAt": None}, [ev.RateLimited(status="allowed")]),
        ({"status": "rejected", "resetsAt": 1e300}, [ev.RateLimited(status="rejected")]),
        ({"status": "rejected", "resetsAt": 1e14}, [ev.RateLimited(status="rejected")]),
        ({**REJECTED, "resetsAt": RESET * 1000}, [used(1), limited("rejected")]),
        ({}, [ev.RateLimited(status="unknown")]),
        # Extra usage is paid for: it is in use, or allowed beyond a limit that is reached.
        (
            {**REJECTED, "isUsingOverage": True, "overageInUse": True},
            [used(1), limited("rejected", overage=True)],
        ),
        ({**REJECTED, "overageInUse": True}, [used(1), limited("rejected", overage=True)]),
        ({**REJECTED, "overageStatus": "allowed"}, [used(1), limited("rejected", overage=True)]),
        (
            {**REJECTED, "overageStatus": "rejected", "isUsingOverage": True},
            [used(1), limited("rejected")],
        ),
        (
            {**REJECTED, "overageStatus": "rejected", "isUsingOverage": False},
            [used(1), limited("rejected")],
        ),
        ({**FIVE_HOUR, "status": "allowed", "overageStatus": "allowed"}, [limited("allowed")]),
        ({**REJECTED, "isUsingOverage": "yes"}, [used(1), limited("rejected")]),
        # Shares of windows.
        (
            {**FIVE_HOUR, "status": "allowed_warning", "utilization": 0.93},
            [used(0.93), limited("allowed_warning")],
        ),
        (
            {**FIVE_HOUR, "status": "allowed_warning", "surpassedThreshold": 0.75},
            [used(0.75), limited("allowed_warning")],
        ),
        (
            {
                **FIVE_HOUR,
                "status": "allowed",
                "unifiedWindows": {
                    "seven_day": {"utilization": 0.4, "resetsAt": RESET},
                    "five_hour": {"utilization": 1.5},
                    "overage": {"utilization": 0.9},
                    "odd": {"utilization": "much"},
                    "odder": 7,
                },
            },
            [used(0.4, "seven_day"), used(1), limited("allowed")],
        ),
        (
            {**FIVE_HOUR, "status": "allowed", "utilization": math.nan, "unifiedWindows": [1]},
            [limited("allowed")],
        ),
    ],
)
def test_usage_limits(info: dict[str, Any], expected: list[ev.LlmAgentEvent]) -> None:
    """A usage limit has a status, a kind, a reset time with a zone, and shares of windows."""
    raw = {"type": "rate_limit_event", "rate_limit_info": info}
    assert expected == to_events(raw, now=NOW)
    assert expected == to_events({"type": "rate_limit_event", **info}, now=NOW)


def test_deep_input_of_a_tool_becomes_text() -> None:
    """Input nested too deeply for an event is passed on as JSON text."""
    deep: dict[str, Any] = {}
    for _ in range(400):
        deep = {"a": deep}
    block = {"type": "tool_use", "id": "t1", "name": "X", "input": deep}
    (event,) = ClaudeSession().feed(line(assistant(block)), now=NOW)
    assert event == ev.ToolCall(name="X", input=json.dumps(deep, separators=(",", ":")), id="t1")


PING = ev.PingEvent(timestamp=5.0)


def stream(kind: str, parent: str | None = None, **event: Any) -> bytes:
    line = {"type": "stream_event", "event": {"type": kind, **event}, "parent_tool_use_id": parent}
    return json.dumps(line, separators=(",", ":")).encode()


def start(message_id: str, parent: str | None = None) -> bytes:
    return stream("message_start", parent, message={"id": message_id})


def text(piece: str, parent: str | None = None) -> bytes:
    delta = {"type": "text_delta", "text": piece}
    return stream("content_block_delta", parent, index=0, delta=delta)


def block(content: dict[str, Any]) -> bytes:
    return stream("content_block_start", index=0, content_block=content)


def whole(said: str, message_id: str) -> bytes:
    content = [{"type": "text", "text": said}]
    line = {"type": "assistant", "message": {"id": message_id, "content": content}}
    return json.dumps(line).encode()


def fed(*lines: bytes) -> list[ev.LlmAgentEvent]:
    session = ClaudeSession()
    return [event for line in lines for event in session.feed(line, now=5.0)]


def events_of(*lines: bytes) -> list[ev.LlmAgentEvent]:
    return [event for event in fed(*lines) if not isinstance(event, ev.PingEvent)]


def test_text_has_the_id_of_its_message() -> None:
    """Each piece of text is a delta of the most recent message, and a keepalive."""
    events = fed(start("m1"), block({"type": "text", "text": ""}), text("Hel"), text("lo"))
    deltas = [
        ev.MessageDelta(text="Hel", message_id="m1"),
        ev.MessageDelta(text="lo", message_id="m1"),
    ]
    assert [PING, PING, PING, deltas[0], PING, deltas[1]] == events
    assert [ev.MessageDelta(text="B", message_id="m2")] == events_of(
        start("m1"), start("m2"), text("B")
    )


def test_a_block_that_begins_with_text() -> None:
    """The initial text of a block is emitted."""
    events = events_of(
        start("m"), block({"type": "text", "text": "A"}), text("b"), whole("Ab", "m")
    )
    assert ["A", "b", "Ab"] == [
        e.text for e in events if isinstance(e, ev.MessageDelta | ev.AgentMessage)
    ]


def test_other_deltas_are_keepalives() -> None:
    """Thinking, tool input and text without a known message are only keepalives."""
    lines = [
        text("of no message"),
        start("m"),
        block({"type": "thinking", "thinking": "Hm", "text": "x"}),
        block({"type": "tool_use", "id": "t", "name": "Bash", "input": {}}),
        *(
            stream("content_block_delta", index=0, delta=delta)
            for delta in (
                {"type": "thinking_delta", "thinking": "Hm"},
                {"type": "input_json_delta", "partial_json": '{"text_delta":"text_delta"}'},
                {"type": "text_delta", "text": 7},
                {"type": "text_delta"},
            )
        ),
        stream("content_block_stop", index=0),
        stream("message_stop"),
    ]
    assert [PING] * len(lines) == fed(*lines)


def test_the_order_of_keys_does_not_matter() -> None:
    """A delta is recognized wherever its type is in the line."""
    line = (
        b'{"parent_tool_use_id":null,"event":{"delta":{"text":"x","type":"text_delta"},'
        b'"index":0,"type":"content_block_delta"},"type":"stream_event"}'
    )
    assert [ev.MessageDelta(text="x", message_id="m")] == events_of(start("m"), line)


def test_sub_agents_write_at_the_same_time() -> None:
    """Concurrent sub-agents have separate messages."""
    events = events_of(start("m"), start("s", "t1"), text("inner", "t1"), text("outer"))
    assert [
        ev.MessageDelta(text="inner", message_id="s", parent_tool_use_id="t1"),
        ev.MessageDelta(text="outer", message_id="m"),
    ] == events


@given(
    st.lists(st.sampled_from(["\ud83d", "\ude00", "a", "\\ud83d", "\U0001f600"]), max_size=8),
    st.lists(st.integers(0, 8), max_size=4),
)
def test_split_surrogate_pairs(chars: list[str], places: list[int]) -> None:
    """However a text is split, its deltas join to the message, and all can be serialized."""
    said = "".join(chars)
    ends = sorted({0, len(said), *(min(place, len(said)) for place in places)})
    pieces = [said[a:b] for a, b in pairwise(ends)]
    *deltas, message = events_of(start("m"), *map(text, pieces), whole(said, "m"))
    assert isinstance(message, ev.AgentMessage)
    assert message.text == "".join(d.text for d in deltas if isinstance(d, ev.MessageDelta))
    for event in (*deltas, message):
        assert event == ev.parse_event(ev.dump_event(event))
