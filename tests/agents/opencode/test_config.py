"""OpenCode's tools in common names, and the environment of a session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.opencode.config import config_content, needs_packages, permissions
from cuggino.agents.opencode.tools import call_of, tool_id
from cuggino.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("write", {"filePath": "a", "content": "b"}, ("Write", {"file_path": "a", "content": "b"})),
        ("bash", {"command": "ls"}, ("Bash", {"command": "ls"})),
        ("my_files_put", {"p": 1}, ("mcp__my.files__put", {"p": 1})),
        ("execute", {"code": "x"}, ("execute", {"code": "x"})),
    ],
)
def test_names(name: str, arguments: Any, expected: tuple[str, Any]) -> None:
    """Tools and inputs get the names of Claude Code; unknown ones keep their own."""
    call = call_of(name, arguments, servers=("my.files",))
    assert (*expected, name != "execute") == (call.tool, call.input, not call.unknown)


def test_a_patch() -> None:
    """A patch lists every file that it touches; without one it is unknown."""
    text = "*** Begin Patch\n*** Add File: a\n+x\n*** Update File: b\n*** Move to: c\n"
    call = call_of("apply_patch", {"patchText": text})
    assert ("MultiEdit", ["a", "b", "c"]) == (
        call.tool,
        [edit["file_path"] for edit in call.input["edits"]],
    )
    assert call_of("apply_patch", {"patchText": "nothing"}).unknown


def test_permissions() -> None:
    """Only named tools are allowed beyond reading; questions are disabled."""
    given = permissions(unattended=False, allowed_tools=("Write", "mcp__a__b"), outputs="/o")
    assert ("deny", "allow", "allow", "deny") == tuple(
        given[key] for key in ("*", "edit", "a_b", "question")
    )
    assert "a_*" == tool_id("mcp__a")
    assert "deny" == permissions(unattended=True, allowed_tools=(), outputs="/o")["question"]


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
