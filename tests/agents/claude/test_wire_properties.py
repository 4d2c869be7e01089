"""Properties of the parser: no output of Claude Code breaks a session."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from cuggino.agents.base.wire import parse_json_line
from cuggino.agents.claude.wire import ClaudeSession
from cuggino.events import dump_event, parse_event

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = [
    "id",
    "text",
    "name",
    "input",
    "thinking",
    "tool_use_id",
    "content",
    "is_error",
    "parent_tool_use_id",
    "api_error",
    "tool_use_result",
    "session_id",
    "usage",
    "model_usage_since_last_result",
    "num_turns",
    "total_cost_usd",
    "errors",
    "result",
    "terminal_reason",
    "api_error_status",
    "rate_limit_info",
    "attempt",
    "retry_delay_ms",
    "error",
]
SUBTYPES = st.sampled_from(["init", "api_retry", "success", "error_max_turns"])
BLOCK_TYPES = st.sampled_from(["text", "thinking", "tool_use", "tool_result"])
LINE_TYPES = st.sampled_from(
    ["assistant", "user", "system", "result", "rate_limit_event", "stream_event"]
)
BLOCKS: st.SearchStrategy[Any] = st.builds(
    dict, st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=5), type=BLOCK_TYPES
)
MESSAGES = JSON | st.fixed_dictionaries({"content": JSON | st.lists(JSON | BLOCKS, max_size=3)})
EVENTS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["message_start", "message_delta"]),
        "message": MESSAGES,
        "usage": JSON | st.fixed_dictionaries({"input_tokens": JSON, "output_tokens": JSON}),
    }
)
LINES: st.SearchStrategy[Any] = st.builds(
    dict,
    st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=5),
    type=LINE_TYPES,
    subtype=SUBTYPES,
    message=MESSAGES,
    event=JSON | EVENTS,
)


@pytest.mark.real_agent
@settings(max_examples=2 * settings().max_examples)
@given(st.lists(LINES | JSON, max_size=5))
def test_no_line_breaks_the_session(values: list[Any]) -> None:
    """With any JSON input the session continues to an end, and every event can be serialized."""
    session = ClaudeSession()
    for value in values:
        for event in session.feed(json.dumps(value).encode(), now=0.0):
            assert event == parse_event(dump_event(event))
    ended, error = session.end(exit_code=1, stderr_tail="", duration=0.0, now=0.0)
    assert (ended.outcome == "completed") == (error is None)


@settings(max_examples=2 * settings().max_examples)
@given(JSON | LINES, st.booleans())
def test_a_line_is_read_as_json_reads_it(value: Any, ascii_only: bool) -> None:
    """The fast parser returns the same objects as `json`, with exact numbers."""
    line = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert (value if isinstance(value, dict) else None) == parse_json_line(line)
