"""Guarded OpenCode sessions: rules, environment, and refusals to start."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cuggino.agents.opencode.guard import guard_of, no_plugins, project_rules, try_hook
from cuggino.errors import GuardNotLive
from cuggino.guard.roles import role_policy


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
