"""The judge that OpenCode's plugin calls before each call, as a function and as a program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.base.calls import Orders
from cuggino.agents.opencode.hook import answer
from cuggino.guard.roles import role_policy
from cuggino.guard.shell.shfmt import find_shfmt

SERVERS = ["tasks", "tasks.db"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "outputs").mkdir()
    return tmp_path / "project"


def asked(project: Path, tool: str, args: Any) -> dict[str, Any]:
    return {"tool": tool, "args": args, "call": "c1", "cwd": str(project), "servers": SERVERS}


def judged(project: Path, tool: str, args: Any, *, scoped: bool = False) -> dict[str, Any]:
    """Return the verdict on the call; `scoped` limits reading to the project."""
    policy = role_policy("implementing", project=project, level="roles")
    policy = policy._replace(rules=() if scoped else None)
    settings = {"outputs": str(project.parent / "outputs")}
    orders = Orders(policy, find_shfmt(), "token")
    own, _ = answer(asked(project, tool, args), orders, settings)
    assert ("token", "c1") == (own["token"], own["tool_use_id"])
    return own


@pytest.mark.parametrize(
    ("tool", "args", "name"),
    [
        ("bash", {"command": "echo hello", "description": "hello", "timeout": 5}, "Bash"),
        ("write", {"filePath": "a.txt", "content": "a"}, "Write"),
        ("todowrite", {"todos": []}, "TodoWrite"),
        ("tasks_db_add", {"x": 1}, "mcp__tasks.db__add"),
        ("invalid", {"tool": "nothing", "error": "there is no such tool"}, "ToolSearch"),
    ],
)
def test_allowed_calls(project: Path, tool: str, args: Any, name: str) -> None:
    """Calls that the policy permits are allowed under the common tool name."""
    own = judged(project, tool, args)
    assert ("allow", name) == (own["decision"], own["tool"])


@pytest.mark.parametrize(
    ("tool", "args", "reason"),
    [
        ("execute", {"code": "x"}, "Tool 'execute' is not known to the guard"),
        ("bash", "echo hello", "Tool 'Bash' is not known to the guard"),
        ("edit", {"filePath": "a", "file_path": "b"}, "Tool 'Edit' is not known to the guard"),
        ("bash", {"command": "true", "shell": "sh", "env": {}}, "Leave out env, shell"),
        ("write", {"filePath": ".git/config", "content": ""}, ""),
        ("bash", {"command": "touch x", "workdir": ".git"}, ""),
        ("bash", {"command": "touch x", "workdir": "/etc"}, ""),
    ],
)
def test_denied_calls(project: Path, tool: str, args: Any, reason: str) -> None:
    """Unknown and forbidden calls are denied with a reason."""
    (project / ".git").mkdir()
    own = judged(project, tool, args)
    assert "deny" == own["decision"]
    assert own["reason"].startswith(reason)
    assert own["reason"]


@pytest.mark.parametrize(
    ("tool", "args", "inside"),
    [
        ("read", {"filePath": "a.txt"}, True),
        ("read", {"filePath": "{outputs}/long.txt"}, True),
        ("read", {"filePath": "{outputs}"}, True),
        ("read", {"filePath": "{outputs}2/long.txt"}, False),
        ("read", {"filePath": "/etc/passwd"}, False),
        ("read", {"filePath": "../x"}, False),
        ("read", {"filePath": "link/x"}, False),
        ("list", {}, True),
        ("list", {"path": "/"}, False),
        ("glob", {"pattern": "**/*.py"}, True),
        ("glob", {"pattern": "../*"}, False),
        ("glob", {"pattern": "~/*"}, False),
        ("glob", {"pattern": "/etc/*"}, False),
        ("grep", {"pattern": "/etc/../x"}, True),
        ("grep", {"pattern": "x", "include": "*.py"}, True),
        ("grep", {"pattern": "x", "include": "/etc/*"}, False),
        ("grep", {"pattern": "x", "include": "a/../../b"}, False),
    ],
)
def test_reading_in_scope(project: Path, tool: str, args: dict[str, str], inside: bool) -> None:
    """A limited session can read its project and the long outputs of its tools."""
    (project / "link").symlink_to("/etc")
    outputs = str(project.parent / "outputs")
    given = {key: value.replace("{outputs}", outputs) for key, value in args.items()}
    own = judged(project, tool, given, scoped=True)
    assert ("allow" if inside else "deny") == own["decision"]
    assert inside == ("Reading outside of the project" not in own.get("reason", ""))
    assert "allow" == judged(project, tool, given)["decision"]
