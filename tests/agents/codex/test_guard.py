"""The guard of a Codex CLI session: the hook's adapter, and the verdicts."""

from __future__ import annotations

import json
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from cuggino.agents.base.calls import Orders
from cuggino.agents.base.guard import not_live
from cuggino.agents.base.watch import VerdictLog
from cuggino.agents.codex import guard as codex_guard
from cuggino.agents.codex.guard import PROTECTED, CodexGuard, CodexWatch, make_codex_guard
from cuggino.agents.codex.hook import answer, in_bash, judged_command
from cuggino.agents.codex.wire import CodexSession
from cuggino.errors import GuardNotLive
from cuggino.events import GuardDenied, PingEvent, ToolCall, ToolResult
from cuggino.guard.roles import role_policy
from cuggino.guard.shell.shfmt import find_shfmt
from tests.agents.codex.test_wire import NOW, item


@pytest.fixture
def guard(tmp_path: Path) -> Iterator[CodexGuard]:
    policy = role_policy("implementing", project=tmp_path, level="roles")
    with ExitStack() as stack:
        yield make_codex_guard(policy, {"PATH": "/usr/bin:/bin"}, stack)


def log(guard: CodexGuard, **verdict: Any) -> None:
    with guard.log.path.open("a") as file:
        file.write(json.dumps({"token": guard.guard.token, **verdict}) + "\n")


def alive(guard: CodexGuard) -> None:
    log(guard, canary="live")


def allowed(guard: CodexGuard, tool: str, given: Any) -> None:
    cwd = guard.guard.policy.project
    log(guard, decision="allow", tool=tool, input=given, cwd=cwd, tool_use_id="c1")


def ran(guard: CodexGuard, command: str) -> bytes:
    """Return the line of a command as rewritten by the hook."""
    project = guard.guard.policy.project
    words = shlex.join(["/bin/bash", "-lc", in_bash(command, guard.bash, project)])
    return item("started", id="item_0", type="command_execution", command=words)


def session(guard: CodexGuard) -> CodexSession:
    log = VerdictLog(guard.log.path, guard.guard.token)
    return CodexSession(watch=CodexWatch(replace(guard, log=log)))


def broken(guard: CodexGuard, *lines: bytes) -> str:
    """Return why the session must end, or ""."""
    watched = session(guard)
    for line in lines:
        watched.feed(line, now=NOW)
    assert watched.breach is None or isinstance(watched.breach, GuardNotLive)
    return str(watched.breach or "")


def test_a_judged_command(guard: CodexGuard) -> None:
    """A judged command is emitted as the model gave it."""
    alive(guard)
    allowed(guard, "Bash", {"command": "echo 'a b'"})
    watched = session(guard)
    events = watched.feed(ran(guard, "echo 'a b'"), now=NOW)
    assert [ToolCall(name="Bash", input={"command": "echo 'a b'"}, id="item_0")] == events
    assert watched.breach is None


def test_a_denied_call(guard: CodexGuard) -> None:
    """A denied call is emitted once, with the next line, between its call and its result."""
    alive(guard)
    given: Any = {"command": "touch .git/x"}
    told = {"tool": "Bash", "input": given, "tool_use_id": "c1", "part": "touch", "reason": "no"}
    log(guard, decision="deny", **told)
    watched = session(guard)
    line = b'{"type":"turn.started"}'
    assert [
        ToolCall(name="Bash", input=given, id="c1"),
        GuardDenied(tool="Bash", tool_use_id="c1", part="touch", reason="no"),
        ToolResult(name="c1", output="no", is_error=True),
    ] == watched.feed(line, now=NOW)
    assert [PingEvent(timestamp=NOW)] == watched.feed(line, now=NOW)


def test_a_hook_that_failed(guard: CodexGuard) -> None:
    """Each call whose hook failed is reported, although its id is unknown."""
    alive(guard)
    for _ in range(2):
        log(guard, decision="deny", reason="could not check")
    events = session(guard).feed(b'{"type":"turn.started"}', now=NOW)
    denied = [event for event in events if isinstance(event, GuardDenied)]
    assert ["unjudged_1", "unjudged_2"] == [event.tool_use_id for event in denied]


def test_calls_without_a_verdict(guard: CodexGuard) -> None:
    """Commands, file changes and server calls without a verdict end the session."""
    alive(guard)
    allowed(guard, "Bash", {"command": "ls"})
    allowed(guard, "MultiEdit", {"edits": [{"file_path": "a.txt"}]})
    allowed(guard, "mcp__srv__get", {})
    allowed(guard, "mcp__srv__resolve_id", {})
    allowed(guard, "mcp__other_srv__list_all", {})
    project = guard.guard.policy.project
    plain = item("started", id="i", type="command_execution", command="/bin/bash -lc ls")

    def change(name: str) -> bytes:
        return item("started", id="i", type="file_change", changes=[{"path": name}])

    def call(tool: str, server: str = "srv") -> bytes:
        return item("started", id="i", type="mcp_tool_call", server=server, tool=tool)

    for line in (ran(guard, "ls"), change(f"{project}/a.txt"), call("get")):
        assert "" == broken(guard, line)
    # The hook receives names of servers and tools with replaced characters.
    for line in (call("resolve-id"), call("list.all", "other-srv")):
        assert "" == broken(guard, line)
    for line in (ran(guard, "ls -l"), plain, change(f"{project}/b.txt"), call("put")):
        assert "verdict" in broken(guard, line)
    elsewhere = shlex.join(["/bin/bash", "-c", in_bash("ls", guard.bash, "/")])
    moved = item("started", id="i", type="command_execution", command=elsewhere)
    for line in (moved, change("a\0b")):
        assert "verdict" in broken(guard, line)


def test_the_settings_of_the_project_are_protected(guard: CodexGuard) -> None:
    """The folders of Codex's project settings are protected for every role."""
    assert {".codex", ".agents"} <= set(guard.guard.policy.protected)


@pytest.mark.parametrize("level", ["roles", "full"])
def test_the_log_is_protected(tmp_path: Path, level: Any) -> None:
    """No call may write or replace the verdict log."""
    policy = role_policy("implementing", project=tmp_path, level=level)
    with ExitStack() as stack:
        made = make_codex_guard(policy, {"PATH": "/usr/bin:/bin"}, stack)
        place = str(made.log.path)
        asked: list[tuple[str, dict[str, Any]]] = [
            ("Bash", {"command": text})
            for text in (f"echo x >> {place}", f"cp a {place}", f"rm {place}", f"cat {place}")
        ]
        asked.append(("apply_patch", {"command": f"*** Update File: {place}\n+x"}))
        held = made.guard
        for name, given in asked:
            data = {"hook_event_name": "PreToolUse", "tool_name": name, "tool_input": given}
            data |= {"cwd": str(tmp_path)}
            _, own = answer(data, held.judge, {"bash": made.bash, "servers": []})
            expected = "allow" if given["command"].startswith("cat") else "deny"
            assert expected == own["decision"], given
    assert not made.log.path.exists()


def test_without_a_guard_there_is_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard that cannot be created leaves no file behind."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(codex_guard, "make_guard", Mock(side_effect=not_live("no")))
    policy = role_policy("implementing", project=tmp_path, level="roles")
    with pytest.raises(GuardNotLive), ExitStack() as stack:
        make_codex_guard(policy, {}, stack)
    assert [] == list(tmp_path.iterdir())


BASH = "/bin/bash"


def ask(
    project: Path, name: str, given: Any, *, role: Any = "implementing", **data: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the answer to a call, and its verdict."""
    policy = role_policy(role, project=project, level="roles")
    policy = policy._replace(protected=(*policy.protected, *PROTECTED))
    asked = {"hook_event_name": "PreToolUse", "tool_use_id": "c1", "cwd": str(project), **data}
    settings = {"bash": BASH, "servers": ["my-srv"]}
    orders = Orders(policy, find_shfmt(), "token")
    return answer({**asked, "tool_name": name, "tool_input": given}, orders, settings)


def test_an_allowed_command(tmp_path: Path) -> None:
    """An allowed command runs in the bash and the folder that it was judged for."""
    command = "echo 'it''s' \"$0\""
    said, own = ask(tmp_path, "Bash", {"command": command})
    assert "allow" == said["hookSpecificOutput"]["permissionDecision"]
    given = shlex.split(said["hookSpecificOutput"]["updatedInput"]["command"])
    assert (str(tmp_path), command) == judged_command(given, BASH)
    assert judged_command(given[:-1], BASH) is None
    assert judged_command(given, "/bin/other") is None
    assert ("Bash", "allow", "c1") == (own["tool"], own["decision"], own["tool_use_id"])


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("apply_patch", {"command": "*** Add File: src/a.py\n+x"}, None),
        ("apply_patch", {"command": "*** Add File: .specs/a.md\n+x"}, "deny"),
        ("apply_patch", {"command": "*** Update File: a\n*** Move to: .codex/config.toml"}, "deny"),
        ("apply_patch", {"command": "no patch"}, "deny"),
        ("apply_patch", {"patch": "*** Add File: src/a.py"}, "deny"),
        ("Bash", {"command": "ls", "shell": "sh"}, "deny"),
        ("Bash", {"command": None}, "deny"),
        ("Bash", "ls", "deny"),
        ("view_image", {"path": "a.png"}, None),
        ("view_image", {}, "deny"),
        ("update_plan", {"plan": []}, None),
        ("mcp__my_srv__get", {"id": 1}, None),
        ("mcp__my_srv__put", {"path": ".git/config"}, "deny"),
        ("collaborationspawn_agent", {"message": "go"}, "deny"),
        ("later_than_this", {}, "deny"),
    ],
)
def test_calls(tmp_path: Path, name: str, given: Any, expected: str | None) -> None:
    """Each kind of call is judged by its writes; unknown calls are denied."""
    said, own = ask(tmp_path, name, given)
    assert expected == said.get("hookSpecificOutput", {}).get("permissionDecision")
    assert (expected or "allow") == own["decision"]


@pytest.mark.parametrize(
    ("path", "expected"), [("a.png", "allow"), ("/etc/a.png", "deny"), ("../a.png", "deny")]
)
def test_reads_limited_to_the_project(tmp_path: Path, path: str, expected: str) -> None:
    """File tools of limited roles cannot read outside the project."""
    _, own = ask(tmp_path, "view_image", {"path": path}, role="verify")
    assert expected == own["decision"]


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_every_shell_runs_the_same(tmp_path: Path, shell: str) -> None:
    """Syntax that differs between shells is run by bash, in the folder of the verdict."""
    folder = tmp_path / "it's -x"
    folder.mkdir()
    command = "echo $'a\\'; echo two #'; pwd; cd - || exit 7"
    done = subprocess.run(
        [shell, "-c", in_bash(command, "/bin/bash", str(folder))], capture_output=True, text=True
    )
    assert (f"a'; echo two #\n{folder}\n", 7) == (done.stdout, done.returncode)
    gone = in_bash("touch made", "/bin/bash", str(tmp_path / "gone"))
    assert 0 != subprocess.run([shell, "-c", gone], cwd=folder, capture_output=True).returncode
    assert [] == list(folder.iterdir())


def test_a_command_without_a_folder(tmp_path: Path) -> None:
    """A command without a known working directory is an error, which denies it."""
    with pytest.raises(ValueError, match="no folder for the call: p"):
        ask(tmp_path, "Bash", {"command": "ls"}, cwd="p")
