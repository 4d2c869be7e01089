"""Properties of the readers: no output of a program breaks a session, or gets a call run."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from cuggino import events as ev
from cuggino.agents.acp import PROFILES, Profile
from cuggino.agents.acp.calls import CallUpdate
from cuggino.agents.acp.guard import Judge
from cuggino.agents.acp.wire import AcpSession
from cuggino.agents.base import SpawnOptions
from cuggino.agents.base.calls import Call
from cuggino.agents.base.watch import Verdict, VerdictLog, Watch
from cuggino.agents.base.wire import parse_json_line
from cuggino.agents.claude.wire import ClaudeSession
from cuggino.agents.codex.hook import call_of
from cuggino.agents.codex.wire import CodexSession
from cuggino.agents.copilot.wire import CopilotSession
from cuggino.agents.gemini.guard import GeminiWatch
from cuggino.agents.gemini.wire import GeminiSession
from cuggino.agents.opencode.wire import OpenCodeSession
from cuggino.errors import LlmSessionError
from cuggino.guard import role_policy
from cuggino.guard.patches import patched_files
from tests.agents.acp.scripts import PROFILE

Lines = st.SearchStrategy[Any]
JSON: Lines = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ODD = JSON | st.floats()
"""JSON as Python writes it, which has values that are no numbers."""


def some(fields: Iterable[str], values: Lines = JSON, **known: Lines) -> Lines:
    """Return objects with some of the fields, and these known ones."""
    return st.builds(dict, st.dictionaries(st.sampled_from([*fields]), values, max_size=5), **known)


def objects(fields: list[str], **known: Lines) -> Lines:
    """Objects with some of the fields, whose values are right, or anything."""
    one = {name: mostly(known[name]) if name in known else JSON for name in fields}
    return mostly(st.fixed_dictionaries({}, optional=one))


def mostly(usual: Lines) -> Lines:
    """Generate the usual values, and one time in ten any JSON."""
    return st.integers(0, 9).flatmap(lambda number: usual if number else JSON)


CLAUDE_FIELDS = (
    *("id", "text", "name", "input", "thinking", "tool_use_id", "content", "is_error", "error"),
    *("parent_tool_use_id", "api_error", "tool_use_result", "session_id", "usage", "num_turns"),
    *("model_usage_since_last_result", "total_cost_usd", "errors", "result", "terminal_reason"),
    *("api_error_status", "rate_limit_info", "attempt", "retry_delay_ms"),
)
BLOCKS = some(CLAUDE_FIELDS, type=st.sampled_from(["text", "thinking", "tool_use", "tool_result"]))
MESSAGE = JSON | st.fixed_dictionaries({"content": JSON | st.lists(JSON | BLOCKS, max_size=3)})
STREAMED = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["message_start", "message_delta"]),
        "message": MESSAGE,
        "usage": JSON | st.fixed_dictionaries({"input_tokens": JSON, "output_tokens": JSON}),
    }
)
TYPES = ["assistant", "user", "system", "result", "rate_limit_event", "stream_event"]
CLAUDE = JSON | some(
    CLAUDE_FIELDS,
    type=st.sampled_from(TYPES),
    subtype=st.sampled_from(["init", "api_retry", "success", "error_max_turns"]),
    message=MESSAGE,
    event=JSON | STREAMED,
)
ITEM_TYPES = ["agent_message", "reasoning", "command_execution", "file_change", "mcp_tool_call"]
ITEM_TYPES += ["web_search", "todo_list", "collab_tool_call", "function_call", "message", "error"]
ITEM = some(
    (
        *("id", "text", "command", "aggregated_output", "exit_code", "status", "changes", "output"),
        *("server", "tool", "arguments", "result", "error", "query", "name", "content"),
    ),
    type=st.sampled_from(ITEM_TYPES),
)
TURNS = ["thread.started", "turn.started", "turn.completed", "turn.failed", "error"]
CODEX = some(
    ["thread_id", "usage", "error", "message"],
    type=st.sampled_from([*TURNS, "item.started", "item.updated", "item.completed"]),
    item=ITEM | JSON,
)
GEMINI = some(
    (
        *("content", "delta", "tool_name", "tool_id", "parameters", "status", "output", "error"),
        *("stats", "message", "session_id", "timestamp", "severity"),
    ),
    type=st.sampled_from(
        ["init", "message", "tool_use", "tool_result", "error", "result", "other"]
    ),
    role=st.sampled_from(["assistant", "user"]) | JSON,
)
PART = some(
    ("id", "text", "time", "state", "tool", "callID", "tokens", "cost", "sessionID"),
    ODD,
    type=st.sampled_from(["text", "tool", "step-finish", "reasoning"]) | ODD,
)
PLUGIN = ["session.status", "session.error", "message.updated", "message.part.updated"]
PLUGIN += ["session.created", "message.part.delta"]
WORDS = ["text", "tool_use", "step_finish", "step_start", "reasoning", "error", "cuggino"]
OPENCODE = st.fixed_dictionaries(
    {"type": st.sampled_from(WORDS) | ODD},
    optional={
        "part": PART | ODD,
        "event": st.sampled_from(PLUGIN) | ODD,
        "properties": st.fixed_dictionaries({}, optional={"part": PART, "status": ODD}) | ODD,
        **dict.fromkeys(("error", "verdict", "call", "servers", "mcp", "elsewhere"), ODD),
    },
)
KINDS = (
    *("session.start", "session.error", "session.idle", "session.mcp_servers_loaded"),
    *("user.message", "abort", "assistant.message", "assistant.usage", "session.warning"),
    *("tool.execution_start", "tool.execution_complete", "assistant.turn_retry"),
    *("subagent.started", "subagent.failed"),
)
DATA = (
    *("content", "messageId", "toolCallId", "toolName", "arguments", "result", "error"),
    *("success", "servers", "message", "errorType", "statusCode", "inputTokens"),
    *("shellExecution", "mcpServerName", "mcpToolName", "quotaSnapshots"),
)
COPILOT = st.fixed_dictionaries({"type": st.sampled_from(KINDS), "data": some(DATA, ODD) | ODD})


class Reader(NamedTuple):
    """A provider's reader, and what its program may print."""

    make: Callable[[Path], Any]
    """Makes the reader; the file may be the log of its verdicts."""
    lines: Lines
    is_text: bool = True
    """Whether the messages are lines, and not objects of an SDK."""


READERS = {
    "claude": Reader(lambda _log: ClaudeSession(), CLAUDE),
    "codex": Reader(lambda _log: CodexSession(), CODEX),
    "gemini": Reader(lambda _log: GeminiSession(cwd="/p"), GEMINI),
    "gemini, guarded": Reader(
        lambda log: GeminiSession(cwd="/p", watch=GeminiWatch(VerdictLog(log, "t"))), GEMINI
    ),
    "opencode": Reader(lambda _log: OpenCodeSession(watch=Watch()), OPENCODE),
    "copilot": Reader(lambda _log: CopilotSession(servers=("s",)), COPILOT, is_text=False),
}


@pytest.mark.parametrize("name", READERS)
@given(data=st.data(), exit_code=st.integers(-15, 255), stderr=st.text(max_size=40))
def test_no_line_breaks_a_session(
    name: str, data: st.DataObject, exit_code: int, stderr: str
) -> None:
    """Any output yields events that can be serialized, and the session has an outcome."""
    reader = READERS[name]
    printed = reader.lines
    if reader.is_text:
        printed = printed.map(json.dumps).map(str.encode) | st.binary(max_size=40)
    lines = data.draw(st.lists(printed, max_size=12))
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        log.write_bytes(b"\n".join(line for line in lines if isinstance(line, bytes)))
        session = reader.make(log)
        events = [event for line in lines for event in session.feed(line, now=0.0)]
    for event in events:
        assert repr(event) == repr(ev.parse_event(ev.dump_event(event)))
    end = {"exit_code": exit_code, "stderr_tail": stderr, "duration": 0.0, "now": 0.0}
    ended, error = session.end(**end)
    assert repr(ended) == repr(ev.parse_event(ev.dump_event(ended)))
    assert (ended.outcome == "completed") == (error is None)
    assert error is None or isinstance(error, LlmSessionError)


@given(st.lists(GEMINI.map(json.dumps).map(str.encode) | st.binary(max_size=40), max_size=12))
def test_messages_are_their_deltas(lines: list[bytes]) -> None:
    """For arbitrary output of Gemini, a message's text equals its preceding deltas."""
    pieces: dict[str, str] = {}
    session = GeminiSession(cwd="/p")
    for event in (event for line in lines for event in session.feed(line, now=0.0)):
        match event:
            case ev.MessageDelta():
                pieces[event.message_id] = pieces.get(event.message_id, "") + event.text
            case ev.AgentMessage():
                assert pieces.pop(str(event.message_id)) == event.text
            case _:
                pass


@given(CLAUDE, st.booleans())
def test_a_line_is_read_as_json_reads_it(value: Any, ascii_only: bool) -> None:
    """The fast parser returns the same objects as `json`, with exact numbers."""
    line = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert (value if isinstance(value, dict) else None) == parse_json_line(line)


@given(st.text(), JSON)
def test_no_call_breaks_the_hook(name: str, given_input: Any) -> None:
    """Any call of Codex is either known or unknown, without errors."""
    for tool in (name, "Bash", "apply_patch", "view_image", f"mcp__{name}"):
        call = call_of(tool, given_input, servers=[name])
        assert isinstance(call.tool, str)
        assert isinstance(call.unknown, str)


@given(st.lists(st.text(alphabet="abc ./", min_size=1).filter(str.strip), max_size=4))
def test_every_file_of_a_patch_is_found(names: list[str]) -> None:
    """Each name in a patch is among its files, both verbatim and stripped."""
    lines = ["*** Begin Patch", *(f"*** Add File: {name}" for name in names), "*** End Patch"]
    files = patched_files("\n".join(lines))
    assert {name.strip() for name in names} | set(names) >= set(files)
    assert {name.strip() for name in names} <= set(files)


IDS = st.sampled_from(["a", "b"])
TEXTS = objects(["type", "content", "text", "path"], type=st.just("diff"), path=st.just("x"))
TEXT = objects(["type", "text"], type=st.just("text"), text=st.text())
META = objects(["usage", "toolName", "tool_name", "parentToolCallId", "qwenDiscreteMessage"])
OPTIONS = st.lists(
    objects(
        ["optionId", "name", "kind"],
        optionId=st.sampled_from(["x", "y"]),
        name=st.text(),
        kind=st.sampled_from(["allow_once", "allow_always", "reject_once"]),
    ),
    max_size=3,
)
CONFIG = st.lists(
    objects(
        ["id", "category", "currentValue", "options"],
        id=st.sampled_from(["mode", "model"]),
        category=st.sampled_from(["mode", "model"]),
        currentValue=st.sampled_from(["ask", "auto"]),
        options=st.just([{"value": "ask"}, {"value": "auto"}]),
    ),
    max_size=2,
)
CALLS = ["toolCallId", "title", "kind", "rawInput", "content", "locations", "status", "_meta"]
UPDATES = ["tool_call", "tool_call_update", "agent_message_chunk", "agent_thought_chunk"]
UPDATES += ["usage_update", "current_mode_update", "config_option_update", "plan"]
CALL = {
    "toolCallId": IDS,
    "kind": st.sampled_from(["execute", "edit", "delete", "read", "other", "think", "switch_mode"]),
    "status": st.sampled_from(["pending", "in_progress", "completed", "failed"]),
    "rawInput": objects(["command", "path", "content", "cwd", "subagent_type"]),
    "content": st.lists(TEXTS, max_size=2),
    "locations": st.lists(objects(["path"]), max_size=2),
    "_meta": META,
}
UPDATE = objects(
    [*CALLS, "sessionUpdate", "used", "size", "cost", "currentModeId", "configOptions"],
    sessionUpdate=st.sampled_from(UPDATES),
    configOptions=CONFIG,
    currentModeId=st.sampled_from(["ask", "auto"]),
    used=st.just(1),
    size=st.just(2),
    cost=objects(["amount", "currency"], amount=st.floats(), currency=st.just("USD")),
    **{**CALL, "content": CALL["content"] | TEXT},
)
ACP = objects(
    ["id", "method", "params", "result", "error"],
    id=st.integers(1, 6),
    method=st.sampled_from(["session/update", "session/request_permission"]),
    params=objects(
        ["sessionId", "update", "toolCall", "options", "currentModeId"],
        sessionId=st.just("s1"),
        update=UPDATE,
        toolCall=objects(CALLS, **CALL),
        options=OPTIONS,
    ),
    result=objects(
        [
            *("protocolVersion", "agentCapabilities", "sessionId", "configOptions"),
            *("stopReason", "usage"),
        ],
        protocolVersion=st.just(1),
        agentCapabilities=objects(["loadSession", "sessionCapabilities", "mcpCapabilities"]),
        sessionId=st.just("s1"),
        configOptions=CONFIG,
        stopReason=st.sampled_from(["end_turn", "cancelled"]),
    ),
    error=objects(["code", "message", "data"]),
)
POLICY = role_policy("implementing", project=Path("/project"), level="roles")
BEGUN = [
    {"id": 1, "result": {"protocolVersion": 1}},
    {"id": 2, "result": {"sessionId": "s1", "configOptions": []}},
]


@settings(max_examples=2 * settings().max_examples)
@given(
    is_begun=st.booleans(),
    profile=st.sampled_from([replace(PROFILE, mode=None), *PROFILES.values()]),
    lines=st.lists(ACP.map(lambda line: json.dumps(line).encode()) | st.binary(), max_size=12),
    is_allowed=st.booleans(),
    is_guarded=st.booleans(),
)
def test_no_line_breaks_a_session_of_the_protocol(
    is_begun: bool, profile: Profile, lines: list[bytes], is_allowed: bool, is_guarded: bool
) -> None:
    """Any lines yield serializable events and valid answers, and the session has an outcome."""
    guard = POLICY if is_guarded else None
    options = SpawnOptions(prompt="go", cwd=Path("/project"), guard=guard)
    judge = Judge(cwd=Path("/project"), unattended=True)

    def verdict(call: Call, call_id: str, has_run: bool) -> Verdict:
        judge.verdict(call, call_id, has_run)
        return Verdict(tool="Bash", is_allowed=is_allowed, part="p", reason="no")

    session = AcpSession(replace(profile, mode=None) if is_begun else profile, options, verdict)
    sent = session.output()
    for line in [json.dumps(one).encode() for one in BEGUN if is_begun] + lines:
        for event in session.feed(line, now=0.0):
            assert event == ev.parse_event(ev.dump_event(event))
        sent += session.output()
    for line in sent.splitlines():
        assert "2.0" == json.loads(line)["jsonrpc"]
    ended, _ = session.end(duration=1.0, now=0.0)
    assert isinstance(ended, ev.SessionEnded)


@given(st.fixed_dictionaries({"toolCallId": IDS}, optional=dict.fromkeys(CALLS[1:], JSON)))
def test_every_call_is_read(update: dict[str, Any]) -> None:
    """A call with an id is judged, whatever its other fields are."""
    assert update["toolCallId"] == CallUpdate.model_validate(update, strict=True).tool_call_id
