"""Recorded runs of Claude Code: events, outcomes and usage, however their lines come."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, strategies as st

from cuggino.agents.base.stream import Coalescer, read_lines
from cuggino.agents.claude.wire import ClaudeSession
from cuggino.events import AgentMessage, LlmAgentEvent, MessageDelta, PingEvent, Usage, UsageUpdate
from tests.agents.claude.claude_lines import api_error, kind, result
from tests.vectors import DATA, each

LETTER = {
    "AgentMessage": "A",
    "MessageDelta": "",
    "PingEvent": "",
    "QuotaUsed": "Q",
    "RateLimited": "L",
    "SystemMessage": "S",
    "Thinking": "T",
    "ToolCall": "C",
    "ToolResult": "R",
    "UsageUpdate": "",
    "UserMessage": "U",
}


class Capture(NamedTuple):
    """A recorded stdout, the exit code of its process, and the expected results."""

    name: str
    exit_code: int
    outcome: str
    error: str | None
    """The failure reason, or the name of another error."""
    cost: float | None
    letters: str
    """The events without deltas, pings and token counts, one letter each as in `LETTER`."""
    tokens: tuple[int, int] | None
    """Input and output of the whole run; None if none are known."""


CAPTURES = [
    Capture("simple", 0, "completed", None, 0.00044, "SA", (10, 20)),
    Capture("thinking", 0, "completed", None, 0.00044, "STA", (10, 20)),
    Capture("parallel_tools", 0, "completed", None, 0.00088, "SACCCRRRA", (20, 40)),
    Capture("list_content", 0, "completed", None, 0.00088, "SCCRCCRRRA", (20, 40)),
    Capture("bg_bash", 0, "completed", None, 0.00132, "SCRASA", (30, 60)),
    Capture("subagent", 0, "completed", None, 0.0022, "SCRAACRASA", (50, 100)),
    Capture("subagent_slow_nobg", 0, "completed", None, 0.00132, "SCURA", (30, 60)),
    Capture("resume", 0, "completed", None, 0.00044, "SA", (10, 20)),
    Capture("429_once_then_ok", 0, "completed", None, 0.00044, "SSA", (10, 20)),
    Capture("cut_after_tooluse_block", 0, "completed", None, 0.00092, "SCSRA", (20, 42)),
    Capture("cut_in_tooluse_then_ok", 0, "completed", None, 0.00136, "SAUA", (20, 64)),
    # The server sends the start and 24 characters of a message and resets the connection. What the
    # program receives before that depends on timing; it adds 1,000 and 1 tokens for the start, and
    # 7 for the text.
    Capture("retry_nothing_received", 0, "completed", None, 0.006, "SSA", (1000, 100)),
    Capture("retry_start_received", 0, "completed", None, 0.01002, "SSA", (2000, 101)),
    Capture("retry_text_received", 0, "completed", None, 0.01016, "SSA", (2000, 108)),
    Capture("usage_limit_text", 0, "quota", "QuotaExceeded", 0.00044, "SA", (10, 20)),
    Capture("usage_limit_near", 0, "completed", None, 0.003, "SAQL", (1000, 100)),
    Capture("usage_limit_subscription", 1, "quota", "QuotaExceeded", 0.0, "SQLS", None),
    Capture("usage_limit_429_unified", 1, "failed", "rate_limit", 0.0, "SS", None),
    Capture("401_full", 1, "failed", "auth", 0.0, "S" * 12, None),
    Capture("no_key", 1, "failed", "auth", 0.0, "SS", None),
    Capture("400_billing", 1, "failed", "billing", 0.0, "SS", None),
    Capture("400_prompt_too_long", 1, "failed", "prompt_too_long", 0.0, "SS", None),
    Capture("prompt_of_5_MB", 1, "failed", "prompt_too_long", 0.0, "SS", None),
    Capture("404_model", 1, "failed", "bad_request", 0.0, "SS", None),
    Capture("resume_unknown", 1, "failed", "bad_request", 0.0, "", (0, 0)),
    Capture("500", 1, "failed", "server", 0.0, "SS", None),
    Capture("sse_overloaded_at_start_forever", 1, "failed", "overloaded", 0.0, "S" * 9, None),
    Capture("conn_refused", 1, "failed", "connection", 0.0, "S" * 12, None),
    Capture("cut_mid_message_forever", 1, "failed", "connection", 0.0014, "S" * 11, (20, 66)),
    Capture("max_turns", 1, "max_turns", "max_turns", 0.00088, "SCRCR", (20, 40)),
    Capture("max_budget", 1, "budget", "BudgetExceeded", 0.64, "SCRC", (60000, 20000)),
    Capture("sigint_tool", 0, "interrupted", "aborted", 0.00044, "SACRU", (10, 20)),
    Capture("sigint_api_wait", 0, "interrupted", "aborted", None, "SU", None),
    Capture("sigterm_tool", 143, "failed", "crash", None, "SACR", (10, 20)),
]


STREAMED = {"subagent": 2}
"""The number of streamed texts, where sub-agent messages are not streamed."""

TAKEN_BACK = {"cut_after_tooluse_block", "cut_mid_message_forever", "retry_text_received"}


def replay(name: str) -> tuple[ClaudeSession, list[LlmAgentEvent]]:
    session = ClaudeSession()
    lines = (DATA / "claude" / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
    return session, [event for line in lines for event in session.feed(line, now=0.0)]


@each("capture", CAPTURES)
def test_captures(capture: Capture) -> None:
    """A recorded run yields its events in order, its cost, its tokens and its outcome."""
    session, events = replay(capture.name)
    ended, error = session.end(exit_code=capture.exit_code, stderr_tail="", duration=2.5, now=0.0)

    assert capture.letters == "".join(LETTER[event.tag] for event in events)
    assert capture.outcome == ended.outcome
    assert capture.error == kind(error)
    assert capture.cost == pytest.approx(ended.cost_usd)
    used = (ended.usage.input_tokens, ended.usage.output_tokens) if ended.usage else None
    assert capture.tokens == used
    assert ended.session_id is not None
    assert ended.duration == 2.5


@each("capture", CAPTURES)
def test_deltas_make_up_their_message(capture: Capture) -> None:
    """The deltas before a message join to its text; the remaining ones were retracted."""
    written: dict[str, str] = {}
    streamed = 0
    for event in replay(capture.name)[1]:
        if isinstance(event, MessageDelta):
            written[event.message_id] = written.get(event.message_id, "") + event.text
        elif isinstance(event, AgentMessage) and event.message_id in written:
            assert event.text == written.pop(event.message_id)
            streamed += 1
    assert STREAMED.get(capture.name, capture.letters.count("A")) == streamed
    assert (capture.name in TAKEN_BACK) == bool(written)


def test_every_capture_is_replayed() -> None:
    """Every recorded stream has a test."""
    assert {path.stem for path in (DATA / "claude").iterdir()} == {c.name for c in CAPTURES}


RECORDED = sorted((DATA / "claude").glob("*.jsonl"))
NOW = 1_700_000_000.0


def heard(events: Iterable[LlmAgentEvent]) -> list[LlmAgentEvent]:
    """Return the events without pings, the deltas of a text in a row joined."""
    joined: list[LlmAgentEvent] = []
    for stream_event in events:
        last = joined[-1] if joined else None
        match stream_event, last:
            case PingEvent(), _:
                pass
            case MessageDelta(text=text), MessageDelta(text=before) if stream_event.model_copy(
                update={"text": ""}
            ) == last.model_copy(update={"text": ""}):
                joined[-1] = stream_event.model_copy(update={"text": before + text})
            case _:
                joined.append(stream_event)
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


@each("capture", RECORDED)
def test_captures_in_parts(capture: Path) -> None:
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


def stream_event(**fields: object) -> bytes:
    raw = {"type": "stream_event", "event": fields, "session_id": "s", "parent_tool_use_id": None}
    return json.dumps(raw, separators=(",", ":")).encode()


def message(text: str) -> bytes:
    content = [{"type": "text", "text": text}]
    raw = {"type": "assistant", "message": {"id": "m1", "content": content}}
    return json.dumps(raw, separators=(",", ":")).encode()


START = stream_event(type="message_start", message={"id": "m1", "usage": {"input_tokens": 3}})
TEXT_BLOCK = stream_event(
    type="content_block_start", index=0, content_block={"type": "text", "text": ""}
)
TOOL_BLOCK = stream_event(type="content_block_start", index=1, content_block={"type": "tool_use"})

LINES = st.one_of(
    st.sampled_from(
        [
            *("plain", "<NOTE>", "n</", "NOTE>", r"\u003C", "ü", r"a\nb", r"\u00fc", r"\"", r"\\"),
            *("\\ud83d", "\\ude00"),
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
            stream_event(type="content_block_stop", index=0),
            stream_event(type="message_delta", usage={"output_tokens": 5}),
            stream_event(type="message_stop"),
            stream_event(type="content_block_delta", index=0, delta={"type": "thinking_delta"}),
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
    return [
        stream_event
        for stream_event in events
        if not isinstance(stream_event, MessageDelta | PingEvent)
    ]


def written(events: Iterable[LlmAgentEvent]) -> list[str]:
    """Return what was written of each message, up to its end or the next one."""
    texts = [""]
    for stream_event in events:
        match stream_event:
            case MessageDelta(parent_tool_use_id=None):
                texts[-1] += stream_event.text
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


def started(**usage: int) -> dict[str, Any]:
    return event("message_start", message={"usage": {"output_tokens": 1, **usage}})


def completed(**usage: int) -> dict[str, Any]:
    return event("message_delta", usage=usage)


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "stream_event", "event": {"type": kind, **fields}, "parent_tool_use_id": None}


def by_sub_agent(parent: str, message_id: str | None, **usage: int) -> dict[str, Any]:
    message: dict[str, Any] = {"id": message_id, "content": [], "usage": usage}
    return {"type": "assistant", "message": message, "parent_tool_use_id": parent}


def feed(*raws: dict[str, Any], compact: bool = True) -> tuple[list[LlmAgentEvent], Usage | None]:
    """Return the events of the lines and the session's usage after them."""
    session = ClaudeSession()
    separators = (",", ":") if compact else (", ", ": ")
    lines = [json.dumps(raw, separators=separators).encode() for raw in raws]
    events = [event for line in lines for event in session.feed(line, now=0.0)]
    ended, _ = session.end(exit_code=143, stderr_tail="", duration=1.0, now=0.0)
    return events, ended.usage


def updates(events: list[LlmAgentEvent]) -> list[tuple[int, int]]:
    return [
        (event.usage.input_tokens, event.usage.output_tokens)
        for event in events
        if isinstance(event, UsageUpdate)
    ]


@pytest.mark.parametrize("compact", [True, False])
def test_usage_is_emitted_with_each_message(compact: bool) -> None:
    """Each complete message adds its tokens, right after the ping of its line."""
    raws = [
        started(input_tokens=10, cache_read_input_tokens=5),
        event("content_block_delta", delta={"type": "text_delta", "text": "message_delta"}),
        completed(output_tokens=20),
        started(input_tokens=99),
        completed(input_tokens=30, output_tokens=40, cache_creation_input_tokens=7),
    ]
    events, used = feed(*raws, compact=compact)
    ping = PingEvent(timestamp=0.0)
    first = Usage(input_tokens=10, output_tokens=20, cache_read_tokens=5)
    both = Usage(input_tokens=40, output_tokens=60, cache_read_tokens=5, cache_creation_tokens=7)
    expected = [ping, ping, ping, UsageUpdate(usage=first), ping, ping, UsageUpdate(usage=both)]
    assert expected == events
    assert both == used


def test_a_restarted_message() -> None:
    """A message restarted after an interruption counts once."""
    cut = [started(input_tokens=10, cache_read_input_tokens=5), event("message_stop")]
    events, _ = feed(*cut, started(input_tokens=12), completed(output_tokens=3))
    assert [PingEvent(timestamp=0.0)] * 4 == events[:4]
    assert [UsageUpdate(usage=Usage(input_tokens=12, output_tokens=3))] == events[4:]


def test_messages_of_sub_agents() -> None:
    """A sub-agent's message counts once, with its first block, as it has no stream events."""
    raws = [
        by_sub_agent("t1", "m1", input_tokens=100, output_tokens=1),
        by_sub_agent("t2", "m2", input_tokens=200, output_tokens=1),
        by_sub_agent("t1", "m1", input_tokens=100, output_tokens=1),
        by_sub_agent("t1", "m3", input_tokens=400, output_tokens=1),
        by_sub_agent("t1", "m4", input_tokens=0, output_tokens=0),
        by_sub_agent("t3", None, input_tokens=1000, output_tokens=0),
    ]
    events, _ = feed(*raws)
    assert [(100, 1), (300, 2), (700, 3), (1700, 3)] == updates(events)


def test_events_of_sub_agents_are_not_counted_twice() -> None:
    """A streamed sub-agent message is not counted again, as its lines were counted."""
    streamed = {**completed(output_tokens=9), "parent_tool_use_id": "t1"}
    events, _ = feed(by_sub_agent("t1", "m1", input_tokens=5), streamed)
    assert [(5, 0)] == updates(events)


def test_a_result_replaces_the_count() -> None:
    """A result replaces the count so far; later messages are added."""
    models = {"m": {"inputTokens": 50, "outputTokens": 100, "costUSD": 0.5}}
    raws = [
        completed(input_tokens=10, output_tokens=20),
        result(model_usage_since_last_result=models),
        completed(input_tokens=1, output_tokens=2),
    ]
    events, used = feed(*raws)
    assert [(10, 20), (51, 102)] == updates(events)
    assert Usage(input_tokens=51, output_tokens=102) == used


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, (15, 20)),
        ({"usage": {"input_tokens": 10, "output_tokens": 25}}, (15, 25)),
        ({"model_usage_since_last_result": {}}, None),
    ],
)
def test_an_incomplete_result(fields: dict[str, Any], expected: tuple[int, int] | None) -> None:
    """Usage missing from a result, as in older versions for sub-agents, is kept."""
    messages = [
        completed(input_tokens=10, output_tokens=20),
        by_sub_agent("t", "m", input_tokens=5),
    ]
    _, used = feed(*messages, result(**fields))
    assert expected == ((used.input_tokens, used.output_tokens) if used else None)


def test_lines_without_a_count() -> None:
    """Messages without token counts emit no update."""
    broken = b'{"type":"stream_event","event":{"type":"message_delta","usage":{"outp'
    events, used = feed(completed(), event("message_delta", usage="much"), started())
    assert ["PingEvent"] * 3 == [event.tag for event in events]
    assert used is None
    assert [PingEvent(timestamp=1.0)] == ClaudeSession().feed(broken, now=1.0)


@each("path", sorted((DATA / "claude").iterdir()))
def test_updates_agree_with_the_end(path: Path) -> None:
    """In recorded runs the count never decreases and never exceeds the final one."""
    session = ClaudeSession()
    events = [e for line in path.read_bytes().splitlines() for e in session.feed(line, now=0.0)]
    ended, _ = session.end(exit_code=1, stderr_tail="", duration=1.0, now=0.0)
    told = [event.usage for event in events if isinstance(event, UsageUpdate)]
    course = [*told, *([ended.usage] if ended.usage else [])]
    for before, after in pairwise(course):
        assert before.input_tokens <= after.input_tokens
        assert before.output_tokens <= after.output_tokens
    assert bool(course) == (ended.usage is not None)


def test_a_failed_session_has_a_cost() -> None:
    """The cost and tokens of a failed session are those of its result."""
    models = {"m": {"inputTokens": 7, "costUSD": 0.25}}
    session = ClaudeSession()
    failed = api_error(529, model_usage_since_last_result=models, total_cost_usd=9.0)
    session.feed(json.dumps(failed).encode(), now=0.0)
    ended, error = session.end(exit_code=1, stderr_tail="", duration=1.0, now=0.0)
    assert error is not None
    assert (0.25, Usage(input_tokens=7)) == (ended.cost_usd, ended.usage)
