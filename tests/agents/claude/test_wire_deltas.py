"""Claude Code's partial messages: text deltas."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import given, strategies as st

from cuggino import events as ev
from cuggino.agents.claude.wire import ClaudeSession

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
