"""Properties of the parser: no output of the Codex CLI breaks a session."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings, strategies as st

from cuggino.agents.codex.hook import call_of
from cuggino.agents.codex.wire import CodexSession
from cuggino.events import SessionEnded, dump_event, parse_event
from cuggino.guard.patches import patched_files

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ITEM_FIELDS = ["id", "text", "command", "aggregated_output", "exit_code", "status", "changes"]
ITEM_FIELDS += ["server", "tool", "arguments", "result", "error", "query", "name", "output"]
ITEM_TYPES = ["agent_message", "reasoning", "command_execution", "file_change", "mcp_tool_call"]
ITEM_TYPES += ["web_search", "todo_list", "collab_tool_call", "function_call", "message", "error"]
TYPES = ["thread.started", "turn.started", "turn.completed", "turn.failed", "error"]
TYPES += ["item.started", "item.updated", "item.completed"]
ITEMS: st.SearchStrategy[Any] = st.builds(
    dict,
    st.dictionaries(st.sampled_from([*ITEM_FIELDS, "content"]), JSON, max_size=5),
    type=st.sampled_from(ITEM_TYPES),
)
LINES: st.SearchStrategy[Any] = st.builds(
    dict,
    st.dictionaries(st.sampled_from(["thread_id", "usage", "error", "message"]), JSON, max_size=3),
    type=st.sampled_from(TYPES),
    item=ITEMS | JSON,
)


@settings(max_examples=2 * settings().max_examples)
@given(st.lists(LINES.map(lambda line: json.dumps(line).encode()) | st.binary(), max_size=8))
def test_no_line_breaks_a_session(lines: list[bytes]) -> None:
    """Any lines yield serializable events, and the session has an outcome."""
    session = CodexSession()
    for line in lines:
        for event in session.feed(line, now=0.0):
            assert event == parse_event(dump_event(event))
    ended, _ = session.end(exit_code=0, stderr_tail="", duration=1.0, now=0.0)
    assert isinstance(ended, SessionEnded)


@settings(max_examples=2 * settings().max_examples)
@given(st.text(), JSON)
def test_no_call_breaks_the_hook(name: str, given_input: Any) -> None:
    """Any call is either known or unknown, without errors."""
    for tool in (name, "Bash", "apply_patch", "view_image", f"mcp__{name}"):
        call = call_of(tool, given_input, servers=[name])
        assert isinstance(call.tool, str)
        assert isinstance(call.unknown, str)


@settings(max_examples=2 * settings().max_examples)
@given(st.lists(st.text(alphabet="abc ./", min_size=1).filter(str.strip), max_size=4))
def test_every_file_of_a_patch_is_found(names: list[str]) -> None:
    """Each name in a patch is among its files, both verbatim and stripped."""
    lines = ["*** Begin Patch", *(f"*** Add File: {name}" for name in names), "*** End Patch"]
    files = patched_files("\n".join(lines))
    assert {name.strip() for name in names} | set(names) >= set(files)
    assert {name.strip() for name in names} <= set(files)
