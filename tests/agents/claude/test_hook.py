"""The protocol of Claude Code's hooks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.base import calls
from cuggino.agents.base.calls import LIVE, Orders
from cuggino.agents.claude import hook
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


def answer(policy: Policy, data: dict[str, Any], manner: hook.Manner = "allow") -> dict[str, Any]:
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
    said = answer(policy, asked(policy, "true", **fields))
    assert "deny" == said["hookSpecificOutput"]["permissionDecision"]
    assert said["hookSpecificOutput"]["permissionDecisionReason"]


def test_an_internal_error_denies(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error while judging denies the call, with a reason, for each event."""

    def fail(*args: object, **options: object) -> Verdict:
        raise RecursionError

    monkeypatch.setattr(calls, "judge", fail)
    said = answer(policy, asked(policy, "true"))["hookSpecificOutput"]
    assert "deny" == said["permissionDecision"]
    assert "The guard failed over this call (RecursionError)" in said["permissionDecisionReason"]
    request = asked(policy, "true", hook_event_name="PermissionRequest")
    decision = answer(policy, request)["hookSpecificOutput"]["decision"]
    assert ("deny", True) == (decision["behavior"], "RecursionError" in decision["message"])
    canary = answer(policy, {"hook_event_name": "SessionStart"})["cuggino"]["canary"]
    assert "it answers deny to `echo ready`" in canary


def test_reasons(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent gets each reason once, at most five, and no more text than fits a message."""
    parts = [Part("ok"), *(Part(f"p{n % 7}", f"No p{n % 7}.") for n in range(14))]
    monkeypatch.setattr(calls, "judge", lambda *args, **options: Verdict(tuple(parts)))
    said = answer(policy, asked(policy, "true"))
    reason = said["hookSpecificOutput"]["permissionDecisionReason"]
    assert "No p0.\nNo p1.\nNo p2.\nNo p3.\nNo p4." == reason
    assert ("p0", reason) == (said["cuggino"]["part"], said["cuggino"]["reason"])
    parts[:] = [Part("x" * 9000, "y" * 9000)]
    own = answer(policy, asked(policy, "true"))["cuggino"]
    assert (500, 2000) == (len(own["part"]), len(own["reason"]))


def test_leave(policy: Policy) -> None:
    """With `leave`, an allowed call is left to the agent's own rules."""
    yes = answer(policy, asked(policy, "echo a > a.txt"), "leave")
    assert "hookSpecificOutput" not in yes
    assert "allow" == yes["cuggino"]["decision"]
    no = answer(policy, asked(policy, "echo a > .git/a"), "leave")
    assert "deny" == no["hookSpecificOutput"]["permissionDecision"]


@pytest.mark.parametrize("level", ["roles", "full"])
@pytest.mark.parametrize("mode", ["run", "sync"])
def test_the_canary(policy: Policy, level: Any, mode: Any) -> None:
    """The canary works at both levels and in both modes, without text for the model."""
    policy = policy._replace(level=level, mode=mode, writable=() if mode == "sync" else None)
    said = answer(policy, {"hook_event_name": "SessionStart"})
    assert {"suppressOutput": True, "cuggino": {"token": TOKEN, "canary": "live"}} == said


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
    said = answer(scoped, call)
    assert "hookSpecificOutput" not in said
    assert "allow" == said["cuggino"]["decision"]
    request = {**call, "hook_event_name": "PermissionRequest"}
    decision = answer(scoped, request)["hookSpecificOutput"]["decision"]
    assert "deny" == decision["behavior"]
    assert "outside of the project" in decision["message"]
    for data in (call, request):
        assert "deny" not in json.dumps(answer(policy, data))


def test_other_calls_of_a_scoped_policy(policy: Policy) -> None:
    """Commands and writes are judged as without the scope."""
    scoped = policy._replace(rules=())
    said = answer(scoped, asked(scoped, "echo a > a.txt"))
    assert "allow" == said["hookSpecificOutput"]["permissionDecision"]


WEB = ("WebFetch", "WebSearch", "Workflow", "Skill", "mcp__db__query", "mcp__playwright__click")


@pytest.mark.parametrize("tool", [*WEB, "Agent", "TodoWrite", "mcp__autonoe-deliverable__list"])
def test_tools_left_to_rules(tool: str, policy: Policy) -> None:
    """A tool that neither runs commands nor writes files is left to the agent's own rules."""
    ruled = policy._replace(rules=("WebFetch",))
    call = asked(ruled, "", tool_name=tool, tool_input={"url": "https://example.com"})
    said = answer(ruled, call)
    assert "hookSpecificOutput" not in said
    assert "allow" == said["cuggino"]["decision"]
    request = {**call, "hook_event_name": "PermissionRequest"}
    decision = answer(ruled, request)["hookSpecificOutput"]["decision"]
    assert ("deny", True) == (decision["behavior"], "is not listed" in decision["message"])
    for data in (call, request):
        assert "deny" not in json.dumps(answer(policy, data))


def test_a_denied_call_is_not_left_to_rules(policy: Policy) -> None:
    """A call that the guard denies stays denied, even if the rules allow it."""
    ruled = policy._replace(rules=("mcp__files",))
    call = {"tool_name": "mcp__files__write", "tool_input": {"path": f"{policy.project}/.git/x"}}
    said = answer(ruled, asked(ruled, "", **call))
    assert "deny" == said["hookSpecificOutput"]["permissionDecision"]


def test_rules_that_the_guard_applies(policy: Policy) -> None:
    """For agents without such rules, the guard allows only listed tools."""
    rules = ("WebFetch(domain:example.com)", "WebSearch", "mcp__db", "mcp__web__get", "Bash(*)")
    ruled = policy._replace(rules=rules)

    def verdict(tool: str, **given: str) -> str:
        call = asked(ruled, "", tool_name=tool, tool_input=given)
        return str(answer(ruled, call, "judge")["hookSpecificOutput"]["permissionDecision"])

    listed = ("WebSearch", "mcp__db__query", "mcp__web__get", "Agent", "TodoWrite", "Read")
    assert {"allow"} == {verdict(tool) for tool in listed}
    unlisted = ("Workflow", "Skill", "mcp__web__get_all", "mcp__dbx__query", "WebFetch")
    assert {"deny"} == {verdict(tool) for tool in unlisted}
    assert "allow" == verdict("WebFetch", url="https://example.com/a")
    assert "deny" == verdict("WebFetch", url="https://example.org/example.com")
    assert "deny" == verdict("Bash", command="echo a > .git/a")
