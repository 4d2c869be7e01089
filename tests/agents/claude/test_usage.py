"""Usage of a session: updates while it runs, and totals of failed or interrupted sessions."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.claude.wire import ClaudeSession
from cuggino.events import LlmAgentEvent, PingEvent, Usage, UsageUpdate
from tests.agents.claude.claude_lines import api_error, result
from tests.vectors import DATA, each


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


@pytest.mark.parametrize(
    ("name", "expected"), [("sigterm_tool", (10, 20)), ("sigint_api_wait", None)]
)
def test_interrupted_captures(name: str, expected: tuple[int, int] | None) -> None:
    """A run without a result has the usage of its messages; its cost is unknown."""
    session = ClaudeSession()
    for line in (DATA / "claude" / f"{name}.jsonl").read_bytes().splitlines():
        session.feed(line, now=0.0)
    ended, _ = session.end(exit_code=143, stderr_tail="", duration=1.0, now=0.0)
    used = ended.usage
    assert expected == ((used.input_tokens, used.output_tokens) if used else None)
    assert ended.cost_usd is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("retry_nothing_received", (1000, 100)),
        ("retry_start_received", (2000, 101)),
        ("retry_text_received", (2000, 108)),
    ],
)
def test_retries_after_a_cut(name: str, expected: tuple[int, int]) -> None:
    """The program's total includes an attempt that broke off, as far as it was received.

    The three recorded sessions met the same server: it sends the start and 24 characters of a
    message and resets the connection. What the program receives before the reset depends on timing.
    It adds the usage of the start (1,000 and 1), and 7 more tokens for the text.
    """
    session, told = ClaudeSession(), list[LlmAgentEvent]()
    for line in (DATA / "claude" / f"{name}.jsonl").read_bytes().splitlines():
        told += session.feed(line, now=0.0)
    ended, error = session.end(exit_code=0, stderr_tail="", duration=1.0, now=0.0)
    assert error is None
    assert [(1000, 100)] == updates(told)
    assert ended.usage is not None
    assert expected == (ended.usage.input_tokens, ended.usage.output_tokens)


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
