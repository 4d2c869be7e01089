"""Lines that come at once give the same events as lines that come one by one."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from pathlib import Path

from hypothesis import given, strategies as st

from cuggino.agents.base.stream import Coalescer, read_lines
from cuggino.agents.claude.wire import ClaudeSession
from cuggino.events import AgentMessage, LlmAgentEvent, MessageDelta, PingEvent
from tests.vectors import DATA, each

CAPTURES = sorted((DATA / "claude").glob("*.jsonl"))
NOW = 1_700_000_000.0


def heard(events: Iterable[LlmAgentEvent]) -> list[LlmAgentEvent]:
    """Return the events without pings, the deltas of a text in a row joined."""
    joined: list[LlmAgentEvent] = []
    for event in events:
        last = joined[-1] if joined else None
        match event, last:
            case PingEvent(), _:
                pass
            case MessageDelta(text=text), MessageDelta(text=before) if event.model_copy(
                update={"text": ""}
            ) == last.model_copy(update={"text": ""}):
                joined[-1] = event.model_copy(update={"text": before + text})
            case _:
                joined.append(event)
    return joined


def one_by_one(lines: Iterable[bytes]) -> list[LlmAgentEvent]:
    session = ClaudeSession()
    events: list[LlmAgentEvent] = []
    for line in lines:
        if session.breach is None:
            events += session.feed(line, now=NOW)
    return events


def at_once(parts: Iterable[list[bytes]], *, drafts: bool = True) -> list[LlmAgentEvent]:
    """Return the events of a session that reads each part as a whole."""
    session, coalescer = ClaudeSession(drafts=drafts), Coalescer(drafts=drafts)
    events: list[LlmAgentEvent] = []
    for part in parts:
        if session.breach is None:
            events += read_lines(session, part, coalescer, now=NOW)
    return events


@each("capture", CAPTURES)
def test_captures(capture: Path) -> None:
    """Every recorded run, read as a whole, in halves and line by line."""
    lines = capture.read_bytes().splitlines()
    expected = heard(one_by_one(lines))
    for size in (len(lines), len(lines) // 2 + 1, 1):
        parts = [lines[start : start + size] for start in range(0, len(lines), size)]
        assert expected == heard(at_once(parts))


def delta(text: str, *, index: int = 0, **fields: object) -> bytes:
    """A delta as the program writes it, or with other fields; `text` is JSON without quotes."""
    more = {"session_id": "s", "parent_tool_use_id": None, "uuid": "u", **fields}
    rest = json.dumps(more, separators=(",", ":"))[1:]
    head = '{"type":"stream_event","event":{"type":"content_block_delta","index":'
    line = f'{head}{index},"delta":{{"type":"text_delta","text":"{text}"}}}},{rest}'
    return line.encode("utf-8", "surrogatepass")


def event(**fields: object) -> bytes:
    raw = {"type": "stream_event", "event": fields, "session_id": "s", "parent_tool_use_id": None}
    return json.dumps(raw, separators=(",", ":")).encode()


def message(text: str) -> bytes:
    content = [{"type": "text", "text": text}]
    raw = {"type": "assistant", "message": {"id": "m1", "content": content}}
    return json.dumps(raw, separators=(",", ":")).encode()


START = event(type="message_start", message={"id": "m1", "usage": {"input_tokens": 3}})
TEXT_BLOCK = event(type="content_block_start", index=0, content_block={"type": "text", "text": ""})
TOOL_BLOCK = event(type="content_block_start", index=1, content_block={"type": "tool_use"})

LINES = st.one_of(
    st.sampled_from(
        [
            "plain",
            "<NOTE>",
            "n</",
            "NOTE>",
            r"\u003C",
            "ü",
            r"a\nb",
            r"\u00fc",
            r"\"",
            r"\\",
            "\\ud83d",
            "\\ude00",
        ]
    ).map(delta),
    st.sampled_from([r"\x", "\\", "\ud83d", "tab\t", r"\u12"]).map(delta),  # no JSON
    st.sampled_from(
        [
            delta("of a sub-agent", parent_tool_use_id="t1"),
            delta("with more", api_message_id="m1"),
            delta("with other keys", more={"text": '"}'}),
            delta("cut")[:-1],
            delta("and more") + b" ",
            START,
            TEXT_BLOCK,
            TOOL_BLOCK,
            event(type="content_block_stop", index=0),
            event(type="message_delta", usage={"output_tokens": 5}),
            event(type="message_stop"),
            event(type="content_block_delta", index=0, delta={"type": "thinking_delta"}),
            message("plain"),
            message("<NOTE>n</NOTE>"),
            b"",
            b"no JSON",
            b'{"type":"stream_event","event":',
        ]
    ),
)


@given(lines=st.lists(LINES, max_size=25), cuts=st.sets(st.integers(0, 25)))
def test_random_splits(lines: list[bytes], cuts: set[int]) -> None:
    """Any lines in any parts give the same events, and no line gives a different text."""
    lines = [START, *lines]
    bounds = [0, *sorted(cut for cut in cuts if 0 < cut < len(lines)), len(lines)]
    parts = [lines[begin:end] for begin, end in itertools.pairwise(bounds)]
    assert heard(one_by_one(lines)) == heard(at_once(parts))


@given(lines=st.lists(LINES, max_size=25), cuts=st.sets(st.integers(0, 25)))
def test_without_drafts(lines: list[bytes], cuts: set[int]) -> None:
    """Nothing but drafts is left out, and no marker is complete later than with drafts."""
    lines = [START, *lines]
    bounds = [0, *sorted(cut for cut in cuts if 0 < cut < len(lines)), len(lines)]
    parts = [lines[begin:end] for begin, end in itertools.pairwise(bounds)]
    for n in range(len(parts)):
        shown, unseen = heard(at_once(parts[: n + 1])), at_once(parts[: n + 1], drafts=False)
        assert complete(shown) == complete(unseen)
        marked = [text for text in written(shown) if "<" in text]
        assert marked == [text for text in written(heard(unseen)) if "<" in text]


def complete(events: Iterable[LlmAgentEvent]) -> list[LlmAgentEvent]:
    return [event for event in events if not isinstance(event, MessageDelta | PingEvent)]


def written(events: Iterable[LlmAgentEvent]) -> list[str]:
    """Return what was written of each message, up to its end or the next one."""
    texts = [""]
    for event in events:
        match event:
            case MessageDelta(parent_tool_use_id=None):
                texts[-1] += event.text
            case AgentMessage(parent_tool_use_id=None):
                texts.append("")
            case _:
                pass
    return texts


def test_a_character_in_two_halves() -> None:
    """A surrogate pair that is split across deltas is one character, in one read or in two."""
    halves = [delta("a\\ud83d"), delta("\\ude00b")]
    for parts in ([[START, *halves]], [[START, halves[0]], [halves[1]]]):
        assert "a\U0001f600b" == "".join(
            e.text for e in at_once(parts) if isinstance(e, MessageDelta)
        )


def test_half_an_escape() -> None:
    """A line that is not JSON is skipped, and never joined with the next one."""
    events = at_once([[START], [delta("\\u12"), delta("34")]])
    assert [MessageDelta(text="34", message_id="m1")] == events[-1:]


def test_a_ping_only_when_nothing_else_was_said() -> None:
    """Signs of life are one ping, and none beside another event."""
    assert [PingEvent(timestamp=NOW)] == at_once([[TOOL_BLOCK, TOOL_BLOCK], []])
    events = at_once([[START, TOOL_BLOCK, delta("a"), TOOL_BLOCK]])
    assert [MessageDelta(text="a", message_id="m1")] == events
