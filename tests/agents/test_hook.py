"""The hook program, run as each agent runs it."""

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

from cuggino.agents.base import hook
from cuggino.agents.base.calls import LIVE
from cuggino.agents.base.guard import NOT_JUDGED, TIMEOUT_SECONDS, Guard, make_guard
from cuggino.agents.claude.guard import guard_settings, try_hook as try_claude
from cuggino.agents.codex.guard import make_codex_guard
from cuggino.agents.gemini import guard as gemini_guard
from cuggino.agents.gemini.config import Home
from cuggino.agents.gemini.guard import SessionGuard, prepare_guard
from cuggino.agents.opencode.guard import guard_of, hook_command, try_hook as try_opencode
from cuggino.errors import GuardNotLive
from cuggino.guard import Policy, role_policy
from tests.limits import LIMIT

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
