"""Properties of the fold: no output of a program breaks a session, or gets an unjudged call run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from cuggino.agents.acp import PROFILES, Profile
from cuggino.agents.acp.calls import CallUpdate
from cuggino.agents.acp.guard import Judge
from cuggino.agents.acp.wire import AcpSession
from cuggino.agents.base import SpawnOptions
from cuggino.agents.base.calls import Call
from cuggino.agents.base.watch import Verdict
from cuggino.events import SessionEnded, dump_event, parse_event
from cuggino.guard import role_policy
from tests.agents.acp.scripts import PROFILE

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def objects(fields: list[str], **known: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects with some of the fields, whose values are right, or anything."""
    one = {name: mostly(known[name]) if name in known else JSON for name in fields}
    return mostly(st.fixed_dictionaries({}, optional=one))


def mostly(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Generate the usual values, and one time in ten any JSON."""
    return st.integers(0, 9).flatmap(lambda number: usual if number else JSON)


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
KINDS = ["execute", "edit", "delete", "read", "other", "think", "switch_mode"]
UPDATES = ["tool_call", "tool_call_update", "agent_message_chunk", "agent_thought_chunk"]
UPDATES += ["usage_update", "current_mode_update", "config_option_update", "plan"]
CALL = {
    "toolCallId": IDS,
    "kind": st.sampled_from(KINDS),
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
PARAMS = objects(
    ["sessionId", "update", "toolCall", "options", "currentModeId"],
    sessionId=st.just("s1"),
    update=UPDATE,
    toolCall=objects(CALLS, **CALL),
    options=OPTIONS,
)
RESULTS = objects(
    ["protocolVersion", "agentCapabilities", "sessionId", "configOptions", "stopReason", "usage"],
    protocolVersion=st.just(1),
    agentCapabilities=objects(["loadSession", "sessionCapabilities", "mcpCapabilities"]),
    sessionId=st.just("s1"),
    configOptions=CONFIG,
    stopReason=st.sampled_from(["end_turn", "cancelled"]),
)
MESSAGES = objects(
    ["id", "method", "params", "result", "error"],
    id=st.integers(1, 6),
    method=st.sampled_from(["session/update", "session/request_permission"]),
    params=PARAMS,
    result=RESULTS,
    error=objects(["code", "message", "data"]),
)
LINES = st.lists(MESSAGES.map(lambda line: json.dumps(line).encode()) | st.binary(), max_size=12)
POLICY = role_policy("implementing", project=Path("/project"), level="roles")
NAMES = ["played", *PROFILES]
BEGUN = [
    {"id": 1, "result": {"protocolVersion": 1}},
    {"id": 2, "result": {"sessionId": "s1", "configOptions": []}},
]


@pytest.mark.parametrize("profile", [replace(PROFILE, mode=None), *PROFILES.values()], ids=NAMES)
@pytest.mark.parametrize("is_begun", [True, False])
@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(lines=LINES, is_allowed=st.booleans(), is_guarded=st.booleans())
def test_no_line_breaks_a_session(
    profile: Profile, is_begun: bool, lines: list[bytes], is_allowed: bool, is_guarded: bool
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
            assert event == parse_event(dump_event(event))
        sent += session.output()
    for line in sent.splitlines():
        assert "2.0" == json.loads(line)["jsonrpc"]
    ended, _ = session.end(None, exit_code=0, stderr_tail="", duration=1.0)
    assert isinstance(ended, SessionEnded)


@given(st.fixed_dictionaries({"toolCallId": IDS}, optional=dict.fromkeys(CALLS[1:], JSON)))
def test_every_call_is_read(update: dict[str, Any]) -> None:
    """A call with an id is judged, whatever its other fields are."""
    assert update["toolCallId"] == CallUpdate.model_validate(update, strict=True).tool_call_id
