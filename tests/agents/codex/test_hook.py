"""The adapter of the Codex CLI for the hook."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.base.calls import Orders
from cuggino.agents.codex.guard import PROTECTED
from cuggino.agents.codex.hook import (
    answer,
    call_of,
    in_bash,
    judged_command,
)
from cuggino.guard.patches import patched_files
from cuggino.guard.roles import role_policy
from cuggino.guard.shell.shfmt import find_shfmt

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
    name = call_of("mcp__a_b__c__d", {}, servers=servers).tool
    assert "mcp__a-b__c__d" == name
    assert "mcp__x__y" == call_of("mcp__x__y", {}, servers=servers).tool
