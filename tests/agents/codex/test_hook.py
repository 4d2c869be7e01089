"""The hook program that the Codex CLI runs before each call."""

from __future__ import annotations

import json
import shlex
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.codex.guard import CodexGuard, make_codex_guard
from cuggino.agents.codex.hook import (
    common_call,
    decide,
    in_bash,
    judged_command,
)
from cuggino.guard.patches import patched_files
from cuggino.guard.roles import role_policy
from tests.limits import LIMIT


@pytest.fixture
def guard(tmp_path: Path) -> Any:
    policy = role_policy("implementing", project=tmp_path, level="roles")
    with ExitStack() as stack:
        yield make_codex_guard(policy, {"PATH": "/usr/bin:/bin"}, stack, servers=("my-srv",))


def ask(guard: CodexGuard, **data: Any) -> tuple[int, Any, str]:
    """Return the exit code, the parsed output and the error message."""
    project = guard.guard.policy.project
    asked = {"hook_event_name": "PreToolUse", "tool_use_id": "c1", "cwd": project, **data}
    done = subprocess.run(
        ["/bin/sh", "-c", guard.command()],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


def decision(said: Any) -> str | None:
    own = said.get("hookSpecificOutput", {})
    return own.get("permissionDecision") if isinstance(own, dict) else None


def verdicts(guard: CodexGuard) -> list[Any]:
    return [json.loads(line) for line in guard.log.read_text().splitlines()]


def test_the_canary(guard: CodexGuard) -> None:
    """At the start of a session the hook logs its canary."""
    assert (0, {}, "") == ask(guard, hook_event_name="SessionStart")
    assert [{"token": guard.guard.token, "canary": "live"}] == verdicts(guard)


def test_an_allowed_command(guard: CodexGuard) -> None:
    """An allowed command runs in the bash that it was judged for, and its verdict is logged."""
    command = "echo 'it''s' \"$0\""
    code, said, _ = ask(guard, tool_name="Bash", tool_input={"command": command})
    own = said["hookSpecificOutput"]
    assert (0, "allow") == (code, own["permissionDecision"])
    given = shlex.split(own["updatedInput"]["command"])
    assert (guard.guard.policy.project, command) == judged_command(given, guard.bash)
    assert judged_command(given[:-1], guard.bash) is None
    assert judged_command(given, "/bin/other") is None
    (verdict,) = verdicts(guard)
    assert ("Bash", "allow", "c1") == tuple(
        verdict[key] for key in ("tool", "decision", "tool_use_id")
    )


def test_a_denied_call(guard: CodexGuard) -> None:
    """The same reason is returned and logged."""
    code, said, _ = ask(guard, tool_name="Bash", tool_input={"command": "touch .git/x"})
    own = said["hookSpecificOutput"]
    assert (0, "deny") == (code, own["permissionDecision"])
    (verdict,) = verdicts(guard)
    assert own["permissionDecisionReason"] == verdict["reason"]
    assert ".git" in verdict["reason"]


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
def test_calls(guard: CodexGuard, name: str, given: Any, expected: str | None) -> None:
    """Each kind of call is judged by its writes; unknown calls are denied."""
    code, said, _ = ask(guard, tool_name=name, tool_input=given)
    assert (0, expected) == (code, decision(said))


@pytest.mark.parametrize(
    ("path", "expected"), [("a.png", "allow"), ("/etc/a.png", "deny"), ("../a.png", "deny")]
)
def test_reads_limited_to_the_project(
    guard: CodexGuard, tmp_path: Path, path: str, expected: str
) -> None:
    """File tools of limited roles cannot read outside the project."""
    policy = role_policy("verify", project=tmp_path, level="roles")
    data = {"hook_event_name": "PreToolUse", "tool_name": "view_image", "cwd": str(tmp_path)}
    asked = {**data, "tool_input": {"path": path}}
    shfmt = guard.guard.shfmt
    _, own = decide(asked, policy, shfmt=shfmt, token="t", bash="/bin/bash")
    assert expected == own["decision"]


@pytest.mark.parametrize("event", ["Stop", None])
def test_unreadable_events(guard: CodexGuard, event: Any) -> None:
    """The hook fails silently, and the surrounding shell denies."""
    code, said, words = ask(guard, hook_event_name=event)
    assert (2, None) == (code, said)
    assert "could not check" in words


def test_without_the_verdict_log(guard: CodexGuard) -> None:
    """A verdict that cannot be logged is a denial."""
    log = guard.log.read_bytes()
    guard.log.unlink()
    code, said, _ = ask(guard, tool_name="Bash", tool_input={"command": "ls"})
    guard.log.write_bytes(log)
    assert (2, None) == (code, said)


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


def test_a_command_without_a_folder(guard: CodexGuard) -> None:
    """A command without a known working directory is denied."""
    code, said, _ = ask(guard, tool_name="Bash", tool_input={"command": "ls"}, cwd="p")
    assert (2, None) == (code, said)


def test_files_of_a_patch() -> None:
    """Every file that the program could recognize is found."""
    patch = "\n".join(
        [
            "*** Begin Patch",
            "*** Add File: a.txt\r",
            "+*** Add File: no.txt",
            "  *** Update File:  b c.txt ",
            "*** Move to: d.txt",
            "***Delete File: e.txt",
            "*** End Patch",
        ]
    )
    assert ["a.txt", "b c.txt", " b c.txt ", "d.txt", "e.txt"] == patched_files(patch)


def test_names_of_servers() -> None:
    """A tool belongs to the configured server with the longest matching name."""
    servers = ["a", "a-b", "a-b__c"]
    name = common_call("mcp__a_b__c__d", {}, servers=servers).tool
    assert "mcp__a-b__c__d" == name
    assert "mcp__x__y" == common_call("mcp__x__y", {}, servers=servers).tool
