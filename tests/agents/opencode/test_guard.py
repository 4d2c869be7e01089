"""Guarded OpenCode sessions: rules, environment, refusals to start, and the judge of calls."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.base.calls import Orders
from cuggino.agents.opencode.guard import guard_of, no_plugins, project_rules, try_hook
from cuggino.agents.opencode.hook import answer
from cuggino.errors import GuardNotLive
from cuggino.guard.roles import role_policy
from cuggino.guard.shell.shfmt import find_shfmt


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder two levels below the user's home."""
    folder = tmp_path.resolve() / "home" / "repo" / "project"
    folder.mkdir(parents=True)
    return folder


def put(folder: Path, path: str, text: str = "") -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def env_of(project: Path) -> dict[str, str]:
    return {"HOME": str(project.parents[1]), "PATH": os.environ["PATH"]}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (".opencode/plugin/a.js", ""),
        (".opencode/plugins/a.js", ""),
        ("opencode.json", '{"plugin": ["x"]}'),
        (".opencode/opencode.json", '{"plugins": ["x"]}'),
        ("opencode.jsonc", '{"plugin": [] /* a comment */}'),
        ("opencode.json", '{"\\u0070lugin": ["x"], }'),
        ("../.opencode/plugin/a.js", ""),
    ],
)
def test_a_plugin_of_the_project(project: Path, path: str, text: str) -> None:
    """It would run beside the guard, so no session is started; the file is named."""
    place = put(project, path, text)
    with pytest.raises(GuardNotLive, match="brings a plugin") as error:
        no_plugins(project, env_of(project))
    named = os.path.normpath(place if place.suffix != ".js" else place.parent)
    assert error.value.message.startswith(f"{named} brings")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("opencode.json", '{"model": "m"}'),
        ("opencode.json", '{"plugin": []}'),
        ("opencode.json", '["plugin"]'),
        ("opencode.jsonc", "{ // broken"),
        (".opencode/plugin", "a file"),
        ("../../.opencode/plugin/a.js", ""),
        ("../../opencode.json", '{"plugin": ["x"]}'),
    ],
)
def test_no_plugin_of_the_project(project: Path, path: str, text: str) -> None:
    """Other settings are none of them, nor is what the user has in their own home."""
    put(project, path, text)
    (project / ".opencode" / "plugins").mkdir(parents=True)
    no_plugins(project, env_of(project))


@pytest.mark.parametrize("refuses", [Path.iterdir, Path.read_text])
def test_what_cannot_be_read_may_be_a_plugin(
    project: Path, monkeypatch: pytest.MonkeyPatch, refuses: Callable[..., object]
) -> None:
    """Without permission to look, no session is started."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, refuses.__name__, refuse)
    with pytest.raises(GuardNotLive, match="brings a plugin"):
        no_plugins(project, env_of(project))


def test_the_rules_of_the_project(project: Path) -> None:
    """The first name that exists counts, from the folder up to that of the repository."""
    assert [] == project_rules(project)
    outside = put(project, "../../AGENTS.md")
    inner = put(project, "CLAUDE.md")
    above = put(project, "../CLAUDE.md").resolve()
    assert [str(inner)] == project_rules(project)
    (project.parent / ".git").mkdir()
    assert [str(inner), str(above)] == project_rules(project)
    first = put(project, "../AGENTS.md").resolve()
    assert [str(first)] == project_rules(project)
    assert outside.exists()


def test_the_environment_of_a_guarded_session(project: Path) -> None:
    """Variables that run something first are left out, and the project's configuration is off."""
    policy = role_policy("implementing", project=project, level="roles")
    given = {**env_of(project), "BASH_ENV": "evil.sh", "NODE_OPTIONS": "-r evil", "MINE": "1"}
    guard, env = guard_of(policy, given)
    assert {"BASH_ENV", "NODE_OPTIONS"}.isdisjoint(env)
    assert ("1", "1") == (env["MINE"], env["OPENCODE_DISABLE_PROJECT_CONFIG"])
    assert env["SHELL"].endswith("bash")
    assert {".opencode", "opencode.json"} <= set(guard.policy.protected)
    try_hook(guard)


SERVERS = ["tasks", "tasks.db"]


@pytest.fixture
def judged_project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "outputs").mkdir()
    return tmp_path / "project"


def asked(judged_project: Path, tool: str, args: Any) -> dict[str, Any]:
    return {
        "tool": tool,
        "args": args,
        "call": "c1",
        "cwd": str(judged_project),
        "servers": SERVERS,
    }


def judged(judged_project: Path, tool: str, args: Any, *, scoped: bool = False) -> dict[str, Any]:
    """Return the verdict on the call; `scoped` limits reading to the project."""
    policy = role_policy("implementing", project=judged_project, level="roles")
    policy = policy._replace(rules=() if scoped else None)
    settings = {"outputs": str(judged_project.parent / "outputs")}
    orders = Orders(policy, find_shfmt(), "token")
    own, _ = answer(asked(judged_project, tool, args), orders, settings)
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
def test_allowed_calls(judged_project: Path, tool: str, args: Any, name: str) -> None:
    """Calls that the policy permits are allowed under the common tool name."""
    own = judged(judged_project, tool, args)
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
def test_denied_calls(judged_project: Path, tool: str, args: Any, reason: str) -> None:
    """Unknown and forbidden calls are denied with a reason."""
    (judged_project / ".git").mkdir()
    own = judged(judged_project, tool, args)
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
def test_reading_in_scope(
    judged_project: Path, tool: str, args: dict[str, str], inside: bool
) -> None:
    """A limited session can read its project and the long outputs of its tools."""
    (judged_project / "link").symlink_to("/etc")
    outputs = str(judged_project.parent / "outputs")
    given = {key: value.replace("{outputs}", outputs) for key, value in args.items()}
    own = judged(judged_project, tool, given, scoped=True)
    assert ("allow" if inside else "deny") == own["decision"]
    assert inside == ("Reading outside of the project" not in own.get("reason", ""))
    assert "allow" == judged(judged_project, tool, given)["decision"]
