"""The guard of Claude Code: the protocol of its hooks, and the verdicts in a session's stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.base import calls
from cuggino.agents.base.calls import LIVE, Orders
from cuggino.agents.claude import hook
from cuggino.agents.claude.guard import GuardWatch
from cuggino.agents.claude.wire import ClaudeSession
from cuggino.events import GuardDenied, LlmAgentEvent
from cuggino.guard.policy import Policy
from cuggino.guard.shell.shfmt import find_shfmt
from cuggino.guard.verdict import Part, Verdict

TOKEN = "0123abcd"


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    return Policy(project=str(tmp_path.resolve()), level="roles")


def asked(policy: Policy, command: str, **fields: Any) -> dict[str, Any]:
    return {
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_use_id": "t1",
        "cwd": policy.project,
        **fields,
    }


def answered(policy: Policy, data: dict[str, Any], manner: hook.Manner = "allow") -> dict[str, Any]:
    return hook.answer(data, Orders(policy, find_shfmt(), TOKEN), {"manner": manner})[0]


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_name": None},
        {"tool_input": "echo"},
        {"tool_input": None},
        {"cwd": None},
        {"tool_input": {"command": ["echo"]}},
    ],
)
def test_incomplete_calls(policy: Policy, fields: dict[str, Any]) -> None:
    """An incomplete call is denied."""
    said = answered(policy, asked(policy, "true", **fields))
    assert "deny" == said["hookSpecificOutput"]["permissionDecision"]
    assert said["hookSpecificOutput"]["permissionDecisionReason"]


def test_an_internal_error_denies(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error while judging denies the call, with a reason, for each event."""

    def fail(*args: object, **options: object) -> Verdict:
        raise RecursionError

    monkeypatch.setattr(calls, "judge", fail)
    said = answered(policy, asked(policy, "true"))["hookSpecificOutput"]
    assert "deny" == said["permissionDecision"]
    assert "The guard failed over this call (RecursionError)" in said["permissionDecisionReason"]
    request = asked(policy, "true", hook_event_name="PermissionRequest")
    decision = answered(policy, request)["hookSpecificOutput"]["decision"]
    assert ("deny", True) == (decision["behavior"], "RecursionError" in decision["message"])
    canary = answered(policy, {"hook_event_name": "SessionStart"})["cuggino"]["canary"]
    assert "it answers deny to `echo ready`" in canary


def test_reasons(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent gets each reason once, at most five, and no more text than fits a message."""
    parts = [Part("ok"), *(Part(f"p{n % 7}", f"No p{n % 7}.") for n in range(14))]
    monkeypatch.setattr(calls, "judge", lambda *args, **options: Verdict(tuple(parts)))
    said = answered(policy, asked(policy, "true"))
    reason = said["hookSpecificOutput"]["permissionDecisionReason"]
    assert "No p0.\nNo p1.\nNo p2.\nNo p3.\nNo p4." == reason
    assert ("p0", reason) == (said["cuggino"]["part"], said["cuggino"]["reason"])
    parts[:] = [Part("x" * 9000, "y" * 9000)]
    own = answered(policy, asked(policy, "true"))["cuggino"]
    assert (500, 2000) == (len(own["part"]), len(own["reason"]))


def test_leave(policy: Policy) -> None:
    """With `leave`, an allowed call is left to the agent's own rules."""
    yes = answered(policy, asked(policy, "echo a > a.txt"), "leave")
    assert "hookSpecificOutput" not in yes
    assert "allow" == yes["cuggino"]["decision"]
    no = answered(policy, asked(policy, "echo a > .git/a"), "leave")
    assert "deny" == no["hookSpecificOutput"]["permissionDecision"]


@pytest.mark.parametrize("event", ["SessionStart", "PreToolUse", "PermissionRequest"])
def test_refusals(event: str) -> None:
    """When no verdict can be made, the answer is a denial with a reason."""
    said = hook.refusal(event, "It is broken.", token=TOKEN)
    assert TOKEN == said["cuggino"]["token"]
    assert "It is broken." in json.dumps(said)
    assert '"allow"' not in json.dumps(said)
    assert LIVE != said["cuggino"].get("canary")


@pytest.mark.parametrize("tool", ["Read", "Grep", "Glob", "LS", "NotebookRead"])
def test_scoped_reads(tool: str, policy: Policy) -> None:
    """Reads of file tools are left to the agent's rules; calls that these ask about are denied."""
    scoped = policy._replace(rules=())
    call = asked(scoped, "", tool_name=tool, tool_input={"file_path": "/etc/passwd"})
    said = answered(scoped, call)
    assert "hookSpecificOutput" not in said
    assert "allow" == said["cuggino"]["decision"]
    request = {**call, "hook_event_name": "PermissionRequest"}
    decision = answered(scoped, request)["hookSpecificOutput"]["decision"]
    assert "deny" == decision["behavior"]
    assert "outside of the project" in decision["message"]
    for data in (call, request):
        assert "deny" not in json.dumps(answered(policy, data))


def test_other_calls_of_a_scoped_policy(policy: Policy) -> None:
    """Commands and writes are judged as without the scope."""
    scoped = policy._replace(rules=())
    said = answered(scoped, asked(scoped, "echo a > a.txt"))
    assert "allow" == said["hookSpecificOutput"]["permissionDecision"]


WEB = ("WebFetch", "WebSearch", "Workflow", "Skill", "mcp__db__query", "mcp__playwright__click")


@pytest.mark.parametrize("tool", [*WEB, "Agent", "TodoWrite", "mcp__autonoe-deliverable__list"])
def test_tools_left_to_rules(tool: str, policy: Policy) -> None:
    """A tool that neither runs commands nor writes files is left to the agent's own rules."""
    ruled = policy._replace(rules=("WebFetch",))
    call = asked(ruled, "", tool_name=tool, tool_input={"url": "https://example.com"})
    said = answered(ruled, call)
    assert "hookSpecificOutput" not in said
    assert "allow" == said["cuggino"]["decision"]
    request = {**call, "hook_event_name": "PermissionRequest"}
    decision = answered(ruled, request)["hookSpecificOutput"]["decision"]
    assert ("deny", True) == (decision["behavior"], "is not listed" in decision["message"])
    for data in (call, request):
        assert "deny" not in json.dumps(answered(policy, data))


def test_rules_that_the_guard_applies(policy: Policy) -> None:
    """For agents without such rules, the guard allows only listed tools."""
    rules = ("WebFetch(domain:example.com)", "WebSearch", "mcp__db", "mcp__web__get", "Bash(*)")
    ruled = policy._replace(rules=rules)

    def verdict(tool: str, **given: str) -> str:
        call = asked(ruled, "", tool_name=tool, tool_input=given)
        return str(answered(ruled, call, "judge")["hookSpecificOutput"]["permissionDecision"])

    listed = ("WebSearch", "mcp__db__query", "mcp__web__get", "Agent", "TodoWrite", "Read")
    assert {"allow"} == {verdict(tool) for tool in listed}
    unlisted = ("Workflow", "Skill", "mcp__web__get_all", "mcp__dbx__query", "WebFetch")
    assert {"deny"} == {verdict(tool) for tool in unlisted}
    assert "allow" == verdict("WebFetch", url="https://example.com/a")
    assert "deny" == verdict("WebFetch", url="https://example.org/example.com")
    assert "deny" == verdict("Bash", command="echo a > .git/a")


INIT = {"type": "system", "subtype": "init", "session_id": "s"}
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "ok"}


def answer(own: dict[str, Any], event: str = "PreToolUse", **more: Any) -> dict[str, Any]:
    said = {"suppressOutput": True, "cuggino": {"token": TOKEN, **own}, **more}
    line = {"type": "system", "subtype": "hook_response", "hook_event": event}
    return {**line, "stdout": json.dumps(said) + "\n", "outcome": "success"}


ALIVE = answer({"canary": "live"}, "SessionStart")


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
    lines = [ALIVE, INIT, call("a"), call("b"), verdict("a", "allow"), result("a", RAN)]
    events, breach = session(*lines, denied, result("b", BLOCKED, error=True), RESULT)
    assert "" == breach
    told = GuardDenied(tool="Bash", tool_use_id="b", part="rm x", reason="No `rm`.")
    assert [told] == [event for event in events if isinstance(event, GuardDenied)]
    assert ["ToolResult", "GuardDenied", "ToolResult"] == [event.tag for event in events[-3:]]


def test_a_call_without_a_verdict() -> None:
    """A call executed without a verdict is a breach at the end of the turn."""
    lines = [ALIVE, INIT, call("a", "Write"), result("a", RAN)]
    assert "" == session(*lines)[1]
    for over in (call("b"), RESULT):
        assert "Write was used without its verdict" in session(*lines, over)[1]
    assert "" == session(*lines, verdict("a", "allow"), RESULT)[1]
    assert "without its verdict" in session(ALIVE, INIT, call("a"), result("a"), RESULT)[1]


def test_calls_that_are_never_executed() -> None:
    """An unknown tool or invalid input has no verdict and needs none."""
    events, breach = session(ALIVE, INIT, call("a"), result("a", error=True), RESULT)
    assert "" == breach
    assert "GuardDenied" not in [event.tag for event in events]


def test_a_hook_that_failed() -> None:
    """A call blocked by a failed hook is denied with the message that the model received."""
    failed = answer({}, hookSpecificOutput={"permissionDecision": "deny"})
    lines = [ALIVE, INIT, call("a", "Edit"), failed, result("a", BLOCKED, error=True), RESULT]
    events, breach = session(*lines)
    assert "" == breach
    (denied,) = (event for event in events if isinstance(event, GuardDenied))
    assert ("Edit", "a", "said") == (denied.tool, denied.tool_use_id, denied.reason)


def test_denials_by_user_rules() -> None:
    """A denial by the user's own rules is not attributed to the guard."""
    lines = [ALIVE, INIT, call("a"), verdict("a", "allow"), result("a", BY_A_RULE, error=True)]
    events, breach = session(*lines, RESULT)
    assert "" == breach
    assert "GuardDenied" not in [event.tag for event in events]


def test_a_hook_that_rewrites() -> None:
    """Input rewritten by another hook is a breach; other hook responses are not."""
    said = {"hookSpecificOutput": {"updatedInput": {"command": "x"}}}
    other = {**answer({}), "stdout": json.dumps(said)}
    assert "rewrites tool calls" in session(ALIVE, INIT, other)[1]
    other["stdout"] = json.dumps({"hookSpecificOutput": {"permissionDecision": "allow"}})
    assert "" == session(ALIVE, INIT, other)[1]


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
        {**ALIVE, "stdout": junk},
        {**ALIVE, "stdout": json.dumps(junk)},
        answer({"tool_use_id": junk, "decision": junk, "tool": junk}),
        answer({"hookSpecificOutput": junk}),
        {"type": "assistant", "message": {"content": junk}},
    ]
    for line in lines:
        session(ALIVE, INIT, line)
    assert "" == session(ALIVE, INIT)[1]


def test_a_read_denied_by_the_rules() -> None:
    """A call that the hook deferred and the rules refused is reported once."""
    lines = [
        ALIVE,
        INIT,
        call("a", "Read"),
        verdict("a", "allow"),
        result("a", BLOCKED, error=True),
    ]
    events, breach = session(*lines, RESULT)
    assert "" == breach
    (denied,) = [event for event in events if isinstance(event, GuardDenied)]
    assert ("Read", "a", "said") == (denied.tool, denied.tool_use_id, denied.reason)
