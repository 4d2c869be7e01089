"""`OpenCodeAgent` with a fake program: its invocation, environment and cleanup."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, just

import cuggino
from cuggino.agents import SpawnOptions
from cuggino.agents.opencode import OpenCodeAgent
from cuggino.agents.opencode.config import config_content, needs_packages
from cuggino.errors import ConfigError
from cuggino.events import SessionEnded


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, Any]]:
    """Record each invocation of the program, with the content of its private files."""
    told: list[dict[str, Any]] = []
    temp = tmp_path / "temp"
    temp.mkdir()

    def program(argv: list[str], **options: Any) -> Observable[Any]:
        files = {file.name: file.read_text() for file in Path(options["cwd"]).iterdir()}
        told.append({"argv": argv, **options, "files": files, "temp": temp})
        return just(SessionEnded(outcome="completed"))

    monkeypatch.setattr(tempfile, "tempdir", str(temp))
    monkeypatch.setattr("cuggino.agents.base.program.stream_json", program)
    monkeypatch.setattr(OpenCodeAgent, "check", lambda _self: "1.18.33")
    return told


def spawn(folder: Path, **options: Any) -> None:
    agent = OpenCodeAgent(path="/opt/opencode", env={"HOME": str(folder), "PATH": "/bin"})
    cuggino.run(agent.spawn(SpawnOptions(**{"prompt": "Go.", "cwd": folder, **options})))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["--title=cuggino"]),
        ({"model": "mock/m"}, ["--model=mock/m", "--title=cuggino"]),
        ({"resume_session_id": "ses_1"}, ["--session=ses_1"]),
        ({"resume_session_id": "ses_1", "model": "m"}, ["--model=m", "--session=ses_1"]),
        ({"session_id": "new"}, ["--title=cuggino"]),
    ],
)
def test_the_command_line(tmp_path: Path, options: dict[str, Any], expected: list[str]) -> None:
    """Each option has its argument; a resumed session already has a title."""
    argv = OpenCodeAgent(path="/opt/opencode").arguments(
        SpawnOptions(prompt="Go.", cwd=tmp_path, **options)
    )
    usual = ["/opt/opencode", "run", "--format", "json", f"--dir={tmp_path}"]
    assert [*usual, *expected] == argv


def test_a_private_folder(tmp_path: Path, started: list[dict[str, Any]]) -> None:
    """The program runs with a private folder for plugin and instructions, removed afterwards."""
    spawn(tmp_path, system_prompt="Be brief.")
    (told,) = started
    folder = Path(told["cwd"])
    assert (str(folder), "Go.") == (told["env"]["PWD"], told["stdin"])
    assert {"plugin.mjs", "instructions.md"} == told["files"].keys()
    assert "Be brief." == told["files"]["instructions.md"]
    config = json.loads(told["env"]["OPENCODE_CONFIG_CONTENT"])
    assert [(folder / "plugin.mjs").as_uri()] == config["plugin"]
    assert [str(folder / "instructions.md")] == config["instructions"]
    assert [] == list(told["temp"].iterdir())


def test_only_the_plugin_grants_permissions(tmp_path: Path, started: list[dict[str, Any]]) -> None:
    """The program's configuration denies everything; only the plugin grants permissions."""
    for unattended in (True, False):
        spawn(tmp_path, dangerously_skip_permissions=unattended)
    for told in started:
        assert {"*": "deny"} == json.loads(told["env"]["OPENCODE_PERMISSION"])
    free, bounded = (told["files"]["plugin.mjs"] for told in started)
    assert r"\"*\": \"allow\"" in free
    assert r"\"*\": \"allow\"" not in bounded.partition(r"\"read\"")[0]


def test_network_access_of_npm(tmp_path: Path, started: list[dict[str, Any]]) -> None:
    """npm is kept offline unless plugins need it or the user configured it."""
    spawn(tmp_path)
    spawn(tmp_path, env={"npm_config_offline": "false"})
    (tmp_path / ".opencode" / "plugin").mkdir(parents=True)
    spawn(tmp_path)
    offline = [told["env"].get("npm_config_offline") for told in started]
    assert ["true", "false", None] == offline
    assert [r"\"drop\": [\"npm_config_offline\"]", r"\"drop\": []", r"\"drop\": []"] == [
        next(
            word
            for word in (r"\"drop\": [\"npm_config_offline\"]", r"\"drop\": []")
            if word in told["files"]["plugin.mjs"]
        )
        for told in started
    ]


def test_the_users_configuration() -> None:
    """The user's configuration is kept; ours is appended and cannot be disabled."""
    mine = {"plugin": ["mine"], "mcp": {"a": {}}, "instructions": ["x"], "share": "auto"}
    text = config_content(
        {"OPENCODE_CONFIG_CONTENT": json.dumps(mine)},
        settings={"theme": "dark"},
        plugin=Path("/p/plugin.mjs"),
        instructions=["/p/i.md"],
        mcp_servers={"b": {"command": "run", "args": ["-x"], "env": {"K": "v"}}},
        guarded=True,
    )
    config = json.loads(text)
    assert ["mine", "file:///p/plugin.mjs"] == config["plugin"]
    assert ["x", "/p/i.md"] == config["instructions"]
    local = {"type": "local", "command": ["run", "-x"], "environment": {"K": "v"}}
    assert {"a": {}, "b": {**local, "enabled": True}} == config["mcp"]
    assert ("dark", "disabled", False, False) == tuple(
        config[key] for key in ("theme", "share", "lsp", "formatter")
    )


def test_settings_for_claude_code() -> None:
    """Rules and hooks of the deliver loop, with which the program would not start, are left out."""
    settings = {"permissions": {"allow": []}, "hooks": {"PreToolUse": []}, "theme": "dark"}
    text = config_content(
        {}, settings=settings, plugin=Path("/p"), instructions=[], mcp_servers={}, guarded=False
    )
    assert {"theme", "autoupdate", "share", "plugin", "instructions"} == json.loads(text).keys()


def test_an_invalid_configuration() -> None:
    """A user configuration that is not a JSON object is an error."""
    with pytest.raises(ConfigError, match="OPENCODE_CONFIG_CONTENT"):
        config_content(
            {"OPENCODE_CONFIG_CONTENT": "{"},
            settings={},
            plugin=Path("/p"),
            instructions=[],
            mcp_servers={},
            guarded=False,
        )


def test_package_installation(tmp_path: Path) -> None:
    """OpenCode may install packages only for users with plugins."""
    env = {"HOME": str(tmp_path), "OPENCODE_DISABLE_PROJECT_CONFIG": "1"}
    assert not needs_packages(env, tmp_path)
    (tmp_path / ".config" / "opencode" / "plugin").mkdir(parents=True)
    assert needs_packages(env, tmp_path)
