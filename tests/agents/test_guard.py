"""The components of a session's guard, and the hook as each program runs it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import cuggino
from cuggino.agents import InteractiveOptions, SpawnOptions
from cuggino.agents.base import guard as guards, hook
from cuggino.agents.base.calls import LIVE
from cuggino.agents.base.guard import NOT_JUDGED, TIMEOUT_SECONDS, Guard, find_bash, make_guard
from cuggino.agents.claude import ClaudeAgent
from cuggino.agents.claude.guard import guard_settings, try_hook as try_claude
from cuggino.agents.codex.guard import make_codex_guard
from cuggino.agents.gemini import guard as gemini_guard
from cuggino.agents.gemini.config import Home
from cuggino.agents.gemini.guard import SessionGuard, prepare_guard
from cuggino.agents.opencode.guard import guard_of, hook_command, try_hook as try_opencode
from cuggino.agents.scripted import ScriptedAgent
from cuggino.agents.scripted.scenario import Scenario
from cuggino.domain.attempts import hits_every_item
from cuggino.errors import AgentNotFound, AgentTooOld, GuardNotLive, LoopError
from cuggino.guard import role_policy
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


ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nowhere"}
ALLOWED, DENIED = "echo é > new.txt", "echo no > .git/é"


@dataclass(frozen=True, kw_only=True)
class Hook:
    """The hook of one provider."""

    guard: Guard
    whole: Callable[[Guard], Sequence[str]]
    """Returns the command that the agent's program runs."""
    start: Mapping[str, Any]
    """The input at the start."""
    asks: Callable[[str], Mapping[str, Any]]
    """Returns the input for a command."""
    decision: Callable[[Any], object]
    """Returns the decision and the reason of an output."""
    log: Path | None = None
    try_out: Callable[[Guard], None]
    """Try the hook out as before a session."""

    def run(self, data: Any, **changed: Any) -> subprocess.CompletedProcess[bytes]:
        command = self.whole(replace(self.guard, **changed) if changed else self.guard)
        text = data if isinstance(data, bytes) else json.dumps(data).encode()
        return subprocess.run(command, input=text, capture_output=True, cwd="/", timeout=LIMIT)

    def verdict(self, output: Any) -> dict[str, Any]:
        """Return the verdict that was printed or logged."""
        own = output.get("cuggino", output)
        if self.log is not None:
            own = json.loads(self.log.read_text().splitlines()[-1])
        return dict(own)


def _claude(policy: Policy, stack: ExitStack) -> Hook:
    def whole(guard: Guard) -> Sequence[str]:
        settings = guard_settings(guard, manner="allow")
        entry = settings["hooks"]["PreToolUse"][0]["hooks"][0]
        return [entry["command"], *entry["args"]]

    return Hook(
        guard=make_guard(policy, ENV),
        whole=whole,
        start={"hook_event_name": "SessionStart"},
        asks=lambda command: _pre_tool_use(policy, command),
        decision=_permission,
        try_out=try_claude,
    )


def _pre_tool_use(policy: Policy, command: str) -> dict[str, Any]:
    data = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "t1"}
    return {**data, "tool_input": {"command": command}, "cwd": policy.project}


def _permission(output: Any) -> object:
    own = output["hookSpecificOutput"]
    return own["permissionDecision"], own.get("permissionDecisionReason")


def _codex(policy: Policy, stack: ExitStack) -> Hook:
    made = make_codex_guard(policy, ENV, stack)
    return Hook(
        guard=made.guard,
        whole=lambda guard: ["/bin/sh", "-c", replace(made, guard=guard).command()],
        start={"hook_event_name": "SessionStart"},
        asks=lambda command: _pre_tool_use(policy, command),
        decision=_permission,
        log=made.log.path,
        try_out=lambda _guard: pytest.fail("Codex is started for that"),
    )


def _gemini(policy: Policy, stack: ExitStack) -> Hook:
    def prepared() -> SessionGuard:
        home = Path(tempfile.mkdtemp(dir=policy.project))
        return prepare_guard(policy, ENV, Home({"HOME": str(home)}, stack))[0]

    made = prepared()

    def changed(guard: Guard) -> SessionGuard:
        if guard is made.guard:
            return made
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gemini_guard, "make_guard", lambda _policy: guard)
            return prepared()

    call = {"hook_event_name": "BeforeTool", "tool_name": "run_shell_command"}
    return Hook(
        guard=made.guard,
        whole=lambda guard: ["/bin/sh", str(changed(guard).script)],
        start={"hook_event_name": "SessionStart"},
        asks=lambda command: {**call, "tool_input": {"command": command}, "cwd": policy.project},
        decision=lambda output: (output["decision"], output.get("reason")),
        log=made.log.path,
        try_out=lambda guard: changed(guard).try_out(ENV, policy.project),
    )


def _opencode(policy: Policy, stack: ExitStack) -> Hook:
    call = {"tool": "bash", "call": "t1", "cwd": policy.project, "servers": []}
    return Hook(
        guard=guard_of(policy, ENV)[0],
        whole=lambda guard: hook_command(guard, "/nowhere"),
        start={"canary": True},
        asks=lambda command: {**call, "args": {"command": command}},
        decision=lambda output: (output["decision"], output.get("reason")),
        try_out=try_opencode,
    )


HOOKS = {"claude": _claude, "codex": _codex, "gemini": _gemini, "opencode": _opencode}
WRAPPED = ("claude", "codex", "gemini")
"""A shell around the hook denies when it fails; OpenCode's plugin does so itself."""
TRIED = ("claude", "gemini", "opencode")
"""Providers whose hook is tried out by itself; Codex is started for that."""
LOGGED = ("codex", "gemini")
FAULTS = [{"python": "/nonexistent"}, {"program": "/nonexistent"}, {"python": "/bin/true"}]
NAMES = ["no python", "no program", "silence"]
UNUSABLE = [b"", b"{", b"[]", b"null", b"\xff", b'{"hook_event_name": "Stop"}', b"{}"]


def of(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("made", names, indirect=True)


@pytest.fixture
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Hook]:
    (tmp_path / ".git").mkdir()
    policy = role_policy("implementing", project=tmp_path.resolve(), level="roles")
    with ExitStack() as stack:
        yield HOOKS[request.param](policy, stack)


@of(*HOOKS)
def test_the_canary(made: Hook) -> None:
    """At the start the hook judges a call that must run and one that must not."""
    done = made.run(made.start)
    assert (0, b"") == (done.returncode, done.stderr)
    own = made.verdict(json.loads(done.stdout))
    assert {"token": made.guard.token, "canary": LIVE} == own


@of(*HOOKS)
@pytest.mark.parametrize(("command", "decision"), [(ALLOWED, "allow"), (DENIED, "deny")])
def test_a_verdict(made: Hook, command: str, decision: str) -> None:
    """A call has one verdict, printed in the agent's protocol, with the token of the session."""
    done = made.run(made.asks(command))
    assert (0, b"", True) == (done.returncode, done.stderr, done.stdout.isascii())
    assert 1 == done.stdout.count(b"\n")
    output = json.loads(done.stdout)
    own = made.verdict(output)
    assert (made.guard.token, "Bash", decision) == (own["token"], own["tool"], own["decision"])
    assert (decision, own.get("reason")) == made.decision(output)
    assert (decision == "deny") == (".git" in own.get("reason", ""))
    assert own["tool_use_id"] in ("t1", None)
    assert made.log is None or 1 == len(made.log.read_bytes().splitlines())


@of(*WRAPPED)
@pytest.mark.parametrize("text", UNUSABLE)
def test_unusable_input(made: Hook, text: bytes) -> None:
    """Input that the hook does not understand is a denial."""
    done = made.run(text)
    assert ("deny", NOT_JUDGED) == made.decision(json.loads(done.stdout))


@of("opencode")
@pytest.mark.parametrize("text", UNUSABLE)
def test_the_program_fails_silently(made: Hook, text: bytes) -> None:
    """By itself the program prints nothing and fails."""
    done = made.run(text)
    assert (b"", True) == (done.stdout, done.returncode != 0)


@of(*WRAPPED)
@pytest.mark.parametrize("fields", FAULTS, ids=NAMES)
def test_a_hook_that_fails(made: Hook, fields: dict[str, Any]) -> None:
    """A hook that cannot run or prints nothing denies."""
    done = made.run(made.asks(ALLOWED), **fields)
    assert ("deny", NOT_JUDGED) == made.decision(json.loads(done.stdout))


@of(*TRIED)
@pytest.mark.parametrize("fields", FAULTS, ids=NAMES)
def test_before_a_session(made: Hook, fields: dict[str, Any]) -> None:
    """A hook is live if it answers and judges two calls correctly."""
    made.try_out(made.guard)
    with pytest.raises(GuardNotLive, match="its program could not be run"):
        made.try_out(replace(made.guard, **fields))
    with pytest.raises(GuardNotLive, match="it answers deny to `echo ready`"):
        made.try_out(replace(made.guard, shfmt="/nonexistent"))


@of(*LOGGED)
def test_a_verdict_that_cannot_be_logged(made: Hook) -> None:
    """A verdict that cannot be logged is a denial."""
    assert made.log is not None
    made.log.unlink()
    done = made.run(made.asks(ALLOWED))
    assert ("deny", NOT_JUDGED) == made.decision(json.loads(done.stdout))


@pytest.mark.parametrize("broken", ["", "{", "{}", '{"project": 3}'])
def test_a_broken_policy(tmp_path: Path, broken: str) -> None:
    """A policy of another version is an error."""
    *words, orders = hook_command(make_guard(Policy(project=str(tmp_path), level="roles")), "/")
    changed = json.dumps({**json.loads(orders), "policy": broken})
    done = subprocess.run([*words, changed], input=b'{"canary": true}', capture_output=True)
    assert (b"", True) == (done.stdout, done.returncode != 0)


def test_it_ends_itself(tmp_path: Path) -> None:
    """It exits without an answer before the agent times out."""
    code = "import sys; sys.path.append(sys.argv.pop(1)); sys.argv[0] = 'hook'; "
    code += "from cuggino.agents.base import hook; hook.ALARM_SECONDS = 1; hook.main()"
    guard = make_guard(Policy(project=str(tmp_path), level="roles"))
    orders = guard.orders()
    words = [orders["package"], guard.hook_command("claude", manner="allow")[-1]]
    began = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert b"" == process.stdout.read()
        assert 0 != process.wait()
    assert time.monotonic() - began < LIMIT
    assert 0 < hook.ALARM_SECONDS < TIMEOUT_SECONDS


_CODE = """
import importlib, json, os, sys
from pathlib import Path
import acp.schema  # which takes long, and has no rules
from cuggino.agents.base.guard import make_guard
from cuggino.agents.base.calls import Call
from cuggino.agents.choosing.registry import make_agent
from cuggino.guard import Policy

def judge(name, module, answers, level):
    make_agent(name, cwd=Path("/p"))
    before = set(sys.modules)
    assert name != "copilot" or name in before, "its SDK is not imported"
    policy = Policy("/p", level=level)
    judges = getattr(importlib.import_module(module), answers)
    guard = make_guard(policy)
    judges(cwd=Path("/p"), unattended=True, guard=guard).try_out()
    for tool, given in json.loads(sys.argv[1]):
        answer = guard.judge.verdict(Call(tool, given), call_id="c", cwd="/p")
        assert answer["decision"] in ("allow", "deny"), answer
    return {name for name in set(sys.modules) - before if name.startswith("cuggino")}

for name, module, answers in json.loads(sys.argv[2]):
    for level in ("roles", "full"):
        if (copy := os.fork()) == 0:
            late = judge(name, module, answers, level)
            print(name, level, *sorted(late), flush=True)
            os._exit(0)
        assert os.waitpid(copy, 0)[1] == 0
"""
"""Each agent is made in a copy of a process that has imported none of the rules."""
_JUDGES = [
    ("acp:qwen", "cuggino.agents.acp.guard", "Judge"),
    ("copilot", "cuggino.agents.copilot.guard", "Gate"),
]
_CALLS = [
    ("Bash", {"command": "git -C x push && sed -i s/a/b/ f | tee g; bash -c 'rm -rf /'"}),
    ("Write", {"file_path": "/p/a", "content": "x"}),
    ("WebFetch", {"url": "https://example.org"}),
    ("mcp__a__b", {"x": 1}),
    ("Nonsense", {}),
]


def test_no_rule_is_loaded_while_a_run_works() -> None:
    """The agent imports all rules before its first session, which may begin much later."""
    command = [sys.executable, "-c", _CODE, json.dumps(_CALLS), json.dumps(_JUDGES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert 0 == done.returncode, done.stderr
    tried = [f"{name} {level}" for name, *_ in _JUDGES for level in ("roles", "full")]
    assert tried == done.stdout.splitlines()
