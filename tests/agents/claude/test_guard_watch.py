"""Guard verdicts in a session's stream, read line by line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cuggino.agents.claude.guard import GuardWatch
from cuggino.agents.claude.wire import ClaudeSession
from cuggino.events import GuardDenied, LlmAgentEvent

TOKEN = "0123abcd"
INIT = {"type": "system", "subtype": "init", "session_id": "s"}
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "ok"}


def answer(own: dict[str, Any], event: str = "PreToolUse", **more: Any) -> dict[str, Any]:
    said = {"suppressOutput": True, "cuggino": {"token": TOKEN, **own}, **more}
    line = {"type": "system", "subtype": "hook_response", "hook_event": event}
    return {**line, "stdout": json.dumps(said) + "\n", "outcome": "success"}


LIVE = answer({"canary": "live"}, "SessionStart")


def verdict(call: str, decision: str, **more: Any) -> dict[str, Any]:
    return answer({"tool_use_id": call, "tool": "Bash", "decision": decision, **more})


def call(call: str, name: str = "Bash") -> dict[str, Any]:
    block = {"type": "tool_use", "id": call, "name": name, "input": {}}
    return {"type": "assistant", "message": {"id": "m", "content": [block]}}


def result(call: str, way: dict[str, Any] | None = None, *, error: bool = False) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call, "content": "said", "is_error": error}
    line: dict[str, Any] = {"type": "user", "message": {"content": [block]}}
    return line if way is None else {**line, "tool_result_meta": [{"id": call, **way}]}


RAN = {"permission_decision": {"decision": "accept", "source": "hook"}}
BLOCKED = {
    "non_execution_kind": "permission-rule",
    "permission_decision": {"decision": "reject", "source": "hook"},
}
BY_A_RULE = {
    "non_execution_kind": "permission-rule",
    "permission_decision": {"decision": "reject", "source": "config"},
}


def session(*lines: dict[str, Any]) -> tuple[list[LlmAgentEvent], str]:
    """Return the events of these lines, and the breach."""
    folded = ClaudeSession(watch=GuardWatch(TOKEN))
    events = [event for line in lines for event in folded.feed(json.dumps(line).encode(), now=0.0)]
    return events, str(folded.breach or "")


def test_a_guarded_session() -> None:
    """Verdicts before results are no breach, and a denied call is reported once, in its place."""
    denied = verdict("b", "deny", part="rm x", reason="No `rm`.")
    lines = [LIVE, INIT, call("a"), call("b"), verdict("a", "allow"), result("a", RAN)]
    events, breach = session(*lines, denied, result("b", BLOCKED, error=True), RESULT)
    assert "" == breach
    told = GuardDenied(tool="Bash", tool_use_id="b", part="rm x", reason="No `rm`.")
    assert [told] == [event for event in events if isinstance(event, GuardDenied)]
    assert ["ToolResult", "GuardDenied", "ToolResult"] == [event.tag for event in events[-3:]]


@pytest.mark.parametrize(
    "start",
    [
        [{**LIVE, "stdout": "live"}],
        [{**LIVE, "stdout": '{"cuggino": "live"}'}],
    ],
    ids=["no JSON", "no object"],
)
def test_a_session_without_a_canary(start: list[dict[str, Any]]) -> None:
    """A session without a valid canary is not live, regardless of its first line."""
    for first in (INIT, call("a")):
        assert "the guard is not live" in session(*start, first)[1]


def test_a_call_without_a_verdict() -> None:
    """A call executed without a verdict is a breach at the end of the turn."""
    lines = [LIVE, INIT, call("a", "Write"), result("a", RAN)]
    assert "" == session(*lines)[1]
    for over in (call("b"), RESULT):
        assert "Write was used without its verdict" in session(*lines, over)[1]
    assert "" == session(*lines, verdict("a", "allow"), RESULT)[1]
    assert "without its verdict" in session(LIVE, INIT, call("a"), result("a"), RESULT)[1]


def test_calls_that_are_never_executed() -> None:
    """An unknown tool or invalid input has no verdict and needs none."""
    events, breach = session(LIVE, INIT, call("a"), result("a", error=True), RESULT)
    assert "" == breach
    assert "GuardDenied" not in [event.tag for event in events]


def test_a_hook_that_failed() -> None:
    """A call blocked by a failed hook is denied with the message that the model received."""
    failed = answer({}, hookSpecificOutput={"permissionDecision": "deny"})
    lines = [LIVE, INIT, call("a", "Edit"), failed, result("a", BLOCKED, error=True), RESULT]
    events, breach = session(*lines)
    assert "" == breach
    (denied,) = (event for event in events if isinstance(event, GuardDenied))
    assert ("Edit", "a", "said") == (denied.tool, denied.tool_use_id, denied.reason)


def test_denials_by_user_rules() -> None:
    """A denial by the user's own rules is not attributed to the guard."""
    lines = [LIVE, INIT, call("a"), verdict("a", "allow"), result("a", BY_A_RULE, error=True)]
    events, breach = session(*lines, RESULT)
    assert "" == breach
    assert "GuardDenied" not in [event.tag for event in events]


def test_a_hook_that_rewrites() -> None:
    """Input rewritten by another hook is a breach; other hook responses are not."""
    said = {"hookSpecificOutput": {"updatedInput": {"command": "x"}}}
    other = {**answer({}), "stdout": json.dumps(said)}
    assert "rewrites tool calls" in session(LIVE, INIT, other)[1]
    other["stdout"] = json.dumps({"hookSpecificOutput": {"permissionDecision": "allow"}})
    assert "" == session(LIVE, INIT, other)[1]


def test_without_a_guard() -> None:
    """An unguarded session ignores hook output."""
    folded = ClaudeSession()
    for line in (INIT, call("a"), result("a", RAN), verdict("a", "deny")):
        folded.feed(json.dumps(line).encode(), now=0.0)
    assert folded.breach is None


@pytest.mark.parametrize("junk", [None, 3, "x", [], [3], [{"id": 3}], {"a": 1}])
def test_junk(junk: Any) -> None:
    """Malformed lines never raise."""
    lines: list[dict[str, Any]] = [
        {"type": "user", "message": junk, "tool_result_meta": junk},
        {"type": "user", "message": {"content": junk}},
        {**result("a"), "tool_result_meta": junk},
        {**result("a"), "tool_result_meta": [{"id": "a", "permission_decision": junk}]},
        {**LIVE, "stdout": junk},
        {**LIVE, "stdout": json.dumps(junk)},
        answer({"tool_use_id": junk, "decision": junk, "tool": junk}),
        answer({"hookSpecificOutput": junk}),
        {"type": "assistant", "message": {"content": junk}},
    ]
    for line in lines:
        session(LIVE, INIT, line)
    assert "" == session(LIVE, INIT)[1]


def test_a_read_denied_by_the_rules() -> None:
    """A call that the hook deferred and the rules refused is reported once."""
    lines = [LIVE, INIT, call("a", "Read"), verdict("a", "allow"), result("a", BLOCKED, error=True)]
    events, breach = session(*lines, RESULT)
    assert "" == breach
    (denied,) = [event for event in events if isinstance(event, GuardDenied)]
    assert ("Read", "a", "said") == (denied.tool, denied.tool_use_id, denied.reason)
