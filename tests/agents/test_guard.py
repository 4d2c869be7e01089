"""Components of a session's guard: settings, environment, parser, shell, versions."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cuggino
from cuggino.agents import InteractiveOptions, SpawnOptions
from cuggino.agents.base import guard as guards, hook
from cuggino.agents.base.guard import find_bash, make_guard
from cuggino.agents.claude import ClaudeAgent
from cuggino.agents.claude.guard import guard_settings
from cuggino.agents.scripted import ScriptedAgent
from cuggino.agents.scripted.scenario import Scenario
from cuggino.domain.attempts import hits_every_item
from cuggino.errors import AgentNotFound, AgentTooOld, GuardNotLive, LoopError
from cuggino.guard.policy import Policy
from cuggino.operators.supervision import is_transient
from tests.agents.claude.fake_claude import fake_claude, recorded_call, tell_all
from tests.limits import LIMIT


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    return Policy(project=str(tmp_path.resolve()), level="roles")


def entry(settings: Mapping[str, Any], event: str) -> dict[str, Any]:
    """Return the guard's own hook for the event, which matches all tools."""
    first = settings["hooks"][event][0]
    assert ["hooks"] == list(first)
    (hook,) = first["hooks"]
    return dict(hook)


def ask(entry: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hook's response to this input."""
    done = subprocess.run(
        [entry["command"], *entry["args"]],
        input=json.dumps(data).encode(),
        capture_output=True,
        timeout=LIMIT,
        check=True,
    )
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def write(path: str, **fields: Any) -> dict[str, Any]:
    return {
        "hook_event_name": "PreToolUse",
        "tool_name": "Write",
        "tool_input": {"file_path": path, "content": ""},
        "tool_use_id": "t1",
        "cwd": "/",
        **fields,
    }


def test_requests_for_permission(policy: Policy) -> None:
    """Permission requests are judged like calls, and failures are denials."""
    guard = make_guard(policy)
    request = {"hook_event_name": "PermissionRequest"}
    hook = entry(guard_settings(guard, manner="allow"), "PermissionRequest")
    yes = ask(hook, write(policy.project + "/.npmrc", **request))
    no = ask(hook, write(policy.project + "/.git/config", **request))
    assert {"behavior": "allow"} == yes["hookSpecificOutput"]["decision"]
    assert "deny" == no["hookSpecificOutput"]["decision"]["behavior"]
    broken = replace(guard, program="/nonexistent")
    hook = entry(guard_settings(broken, manner="allow"), "PermissionRequest")
    failed = ask(hook, write(policy.project + "/.npmrc", **request))
    assert "deny" == failed["hookSpecificOutput"]["decision"]["behavior"]


def test_an_attended_session(policy: Policy) -> None:
    """In an attended session the guard only denies and leaves other calls to the user."""
    settings = guard_settings(make_guard(policy), manner="leave")
    assert "PermissionRequest" not in settings["hooks"]
    hook = entry(settings, "PreToolUse")
    assert "hookSpecificOutput" not in ask(hook, write(policy.project + "/a.py"))
    no = ask(hook, write(policy.project + "/.git/config"))
    assert "deny" == no["hookSpecificOutput"]["permissionDecision"]


def test_settings_that_are_given(policy: Policy) -> None:
    """Other settings are kept unless they loosen the guard."""
    other = {"hooks": [{"type": "command", "command": "true"}]}
    given: dict[str, object] = {
        "disableAllHooks": True,
        "hooks": {"PreToolUse": [other], "Stop": [other]},
        "sandbox": {"enabled": True, "autoAllowBashIfSandboxed": True},
        "permissions": {"allow": ["Read"]},
    }
    before = json.dumps(given)
    settings = guard_settings(make_guard(policy), given, manner="allow")
    assert settings["disableAllHooks"] is False
    assert {"enabled": True, "autoAllowBashIfSandboxed": False} == settings["sandbox"]
    assert {"allow": ["Read"]} == settings["permissions"]
    assert [other] == settings["hooks"]["PreToolUse"][1:]
    assert [other] == settings["hooks"]["Stop"]
    assert "block" == entry(settings, "PreToolUse")["onFailure"]
    assert hook.ALARM_SECONDS < entry(settings, "PreToolUse")["timeout"]
    assert before == json.dumps(given)


def test_each_guard_has_a_token_of_its_own(policy: Policy) -> None:
    """A response with another session's token is rejected."""
    assert make_guard(policy).token != make_guard(policy).token


def test_check_guard(policy: Policy) -> None:
    """The scripted agent checks its guard with the parser of a session."""
    agent = ScriptedAgent(Scenario())
    assert agent.capabilities.guard != "none"
    agent.check_guard(policy)


def test_an_installation_within_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard installed in the project's virtual environment is protected there."""
    site = "/project/.venv/lib/python3.11/site-packages/cuggino"
    monkeypatch.setattr(guards, "__file__", f"{site}/agents/base/guard.py")
    monkeypatch.setattr("cuggino.agents.base.guard.find_shfmt", lambda: "/project/.venv/bin/shfmt")
    protected = make_guard(Policy(project="/project")).policy.protected
    assert {site.removeprefix("/project/"), ".venv/bin/shfmt"} < set(protected)
    assert set(Policy(project="/project").protected) < set(protected)
    assert Policy(project="/other") == make_guard(Policy(project="/other")).policy


def shell(folder: Path, version: str) -> str:
    """Write a program that reports this version of bash."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "bash"
    path.write_text(f"#!/bin/sh\necho {version}\n")
    path.chmod(0o755)
    return str(path)


def test_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first supported bash is used: the configured one, the system's, then that on PATH."""
    old, new = shell(tmp_path / "old", "3"), shell(tmp_path / "new", "5")
    monkeypatch.setattr(guards, "_BASHES", (old,))
    assert new == find_bash({"PATH": str(tmp_path / "new")})
    assert new == find_bash({"CLAUDE_CODE_SHELL": new, "PATH": ""})
    with pytest.raises(GuardNotLive) as caught:
        find_bash({"CLAUDE_CODE_SHELL": "/bin/zsh", "PATH": ""})
    assert f"needs bash 5 or newer; {old} is version 3" in caught.value.message
    assert "brew install bash" in (caught.value.hint or "")


def test_the_environment(policy: Policy) -> None:
    """The shell is fixed, no startup file runs before a command, and settings cannot change it."""
    env = {"PATH": "/usr/bin:/bin", "BASH_ENV": "/tmp/x", "ENV": "/tmp/x", "HOME": "/h"}
    guard = make_guard(policy, {**env, "LD_PRELOAD": "/lib/own.so"})
    assert {"PATH", "HOME", "LD_PRELOAD", "CLAUDE_CODE_SHELL"} == set(guard.env)
    assert guard.env["CLAUDE_CODE_SHELL"].endswith("/bash")
    pinned = guard_settings(guard, {"env": {"A": "b", "BASH_ENV": "x"}}, manner="allow")["env"]
    assert ("b", "", "/lib/own.so") == (pinned["A"], pinned["BASH_ENV"], pinned["LD_PRELOAD"])
    assert guard.env["CLAUDE_CODE_SHELL"] == pinned["CLAUDE_CODE_SHELL"]


def test_an_old_program(tmp_path: Path, policy: Policy) -> None:
    """A version that would run calls after a failed hook is limited to unguarded sessions."""
    agent = ClaudeAgent(path=fake_claude(tmp_path, "", version="2.1.294 (Claude Code)"))
    assert "2.1.294" == agent.check()
    with pytest.raises(AgentTooOld, match=r"too old to be guarded, at least 2\.1\.295") as caught:
        agent.check_guard(policy)
    assert '"guard": "off"' in (caught.value.hint or "")
    options = SpawnOptions(prompt="Go.", cwd=tmp_path, guard=policy)
    with pytest.raises(AgentNotFound):
        cuggino.run(agent.spawn(options))
    with pytest.raises(AgentNotFound):
        agent.interactive(InteractiveOptions(cwd=tmp_path, guard=policy))


def test_a_session_in_the_terminal(tmp_path: Path, policy: Policy) -> None:
    """A guarded interactive session has the guard's settings, and its user is asked as usual."""
    agent = ClaudeAgent(path=tell_all(tmp_path))
    assert agent.capabilities.guard != "none"
    agent.interactive(InteractiveOptions(cwd=tmp_path, guard=policy))
    argv, env = recorded_call(tmp_path)["argv"], recorded_call(tmp_path)["env"]
    settings = json.loads(argv[argv.index("--settings") + 1])
    orders = json.loads(entry(settings, "PreToolUse")["args"][-1])
    assert {"manner": "leave"} == orders["settings"]
    assert "--permission-mode" not in argv
    assert env["CLAUDE_CODE_SHELL"].endswith("/bash")


@pytest.mark.parametrize("unattended", [True, False])
def test_the_command_line(tmp_path: Path, policy: Policy, unattended: bool) -> None:
    """A guarded session never skips permissions: the guard grants them."""
    agent = ClaudeAgent(path=sys.executable)
    options = SpawnOptions(
        prompt="Go.",
        cwd=tmp_path,
        dangerously_skip_permissions=unattended,
        settings={"env": {"A": "b"}},
        allowed_tools=("Read", "Bash(ls:*)"),
    )
    servers = tmp_path / "servers.json"
    plain = agent.arguments(options, None, servers=servers)
    assert unattended == ("--dangerously-skip-permissions" in plain)
    assert {"env": {"A": "b"}} == json.loads(plain[plain.index("--settings") + 1])
    assert f"--mcp-config={servers}" in plain
    assert "--allowedTools=Read,Bash(ls:*)" in plain
    held = agent.arguments(options, None, make_guard(policy))
    assert "--dangerously-skip-permissions" not in held
    assert unattended == ("--permission-mode default" in " ".join(held))
    assert "b" == json.loads(held[held.index("--settings") + 1])["env"]["A"]
    assert "--include-hook-events" in held


def test_a_guard_that_is_not_live_is_final() -> None:
    """A broken guard is a permanent error, blames no item of a watch, and exits with code 2."""
    error = LoopError("planning", "m", cause=guards.not_live("it is silent"))
    assert not is_transient(error)
    assert hits_every_item(error)
    assert 2 == error.code
    assert "the guard is not live: it is silent" == str(error.cause)
