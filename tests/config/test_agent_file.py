"""Settings from `.autonoe/agent.json`, and the switches of the sandbox."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cuggino.config import AGENT_FILE
from cuggino.config.agent_file import (
    AgentFile,
    AgentSettings,
    ExtraHook,
    change_note,
    read_agent_file,
)
from cuggino.edited_files import validated
from cuggino.errors import ConfigError
from cuggino.guard import allowed_commands, chosen_profiles
from cuggino.guard.extensions import AllowedCommands
from cuggino.guard.sandbox import SandboxMode, sandbox_mode, start_warnings
from tests.vectors import not_followed, rows

ROWS = {row["id"]: row for row in rows("config_merge")}
OPTIONS = {row["id"]: row for row in rows("cli_options") if "sandbox" in str(row).lower()}
"""The rows about the sandbox; the others are about other options."""


def merged(user: object) -> AgentSettings:
    """Return the settings of a file with this content."""
    return validated(AgentSettings, user)


def read(project: Path, content: object) -> AgentFile:
    """Return what is read of a file with this content, as bytes or as a JSON value."""
    path = project / AGENT_FILE
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return read_agent_file(project)


def recorded(user: object) -> dict[str, Any]:
    """Return the merged settings in the form of the rows, without absent values."""
    settings = merged(user)
    security: dict[str, Any] = {}
    if (profiles := chosen_profiles(settings.profile)) is not None:
        security["activeProfiles"] = list(profiles)
    commands = allowed_commands(settings.allow_commands)
    if commands != AllowedCommands():
        given = {tier: list(names) for tier, names in commands._asdict().items() if names}
        security["allowCommands"] = given["run"] if set(given) == {"run"} else given
    if settings.allow_pkill_targets:
        security["allowPkillTargets"] = list(settings.allow_pkill_targets)
    return {
        "permissions": {"allow": list(settings.permissions.allow)},
        "allowedTools": list(settings.allowed_tools),
        "hooks": {"PreToolUse": list(settings.hook_names)},
        "mcpServers": settings.mcp_servers,
        "bashSecurity": security,
    }


@pytest.mark.parametrize("name", ROWS)
def test_recorded_merges(name: str) -> None:
    """A recorded file gives its recorded settings, apart from the sandbox."""
    row = ROWS[name]
    expected = {key: value for key, value in row["expected"].items() if key != "sandbox"}
    found = recorded(row["user"])
    is_same = without_browser(expected) == without_browser(found)
    assert is_same == (name not in not_followed("config_merge"))


def without_browser(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings without the browser's tools and version, which ours are newer than.

    Nor the place of its files: ours keep them out of the project's work.
    """
    tools = [tool for tool in settings["allowedTools"] if "__playwright__browser_" not in tool]
    servers = re.sub(r"(@playwright/mcp)@[\w.]+", r"\1", json.dumps(settings["mcpServers"]))
    servers = servers.replace(', "--output-dir", ".cuggino/browser"', "")
    return {**settings, "allowedTools": tools, "mcpServers": json.loads(servers)}


def test_every_extension_at_once() -> None:
    """Lists are appended without duplicates; tiers of commands stay separate."""
    settings = merged(
        {
            "permissions": {"allow": ["Bash(*)", "Read(../lib/**)"]},
            "allowedTools": ["Bash", "WebFetch"],
            "hooks": {"PreToolUse": [{"matcher": "Bash", "command": "./x"}, {"command": "./y"}]},
            "profile": ["node", "go", "node"],
            "allowCommands": {"base": ["make"], "run": ["docker", "make"], "sync": ["shellcheck"]},
            "allowPkillTargets": ["server"],
        }
    )
    built_in = AgentSettings()
    assert (*built_in.permissions.allow, "Read(../lib/**)") == settings.permissions.allow
    assert (*built_in.allowed_tools, "WebFetch") == settings.allowed_tools
    assert built_in.hook_names == settings.hook_names
    hooks = (ExtraHook(matcher="Bash", command="./x"), ExtraHook(command="./y"))
    assert hooks == settings.extra_hooks
    assert ("node", "go") == chosen_profiles(settings.profile)
    commands = allowed_commands(settings.allow_commands)
    assert (("make", "docker"), ("make", "shellcheck")) == (commands.of("run"), commands.of("sync"))
    assert ["server"] == settings.allow_pkill_targets


def test_a_plain_list_of_commands_means_run() -> None:
    """A plain list of commands applies to sessions that do work (AUT-139)."""
    commands = allowed_commands(merged({"allowCommands": ["docker"]}).allow_commands)
    assert (("docker",), ()) == (commands.of("run"), commands.of("sync"))


@pytest.mark.parametrize("key", ["profile", "hooks", "permissions", "allowedTools", "mcpServers"])
def test_null_counts_as_absent(key: str) -> None:
    """A value of null is as none (AUT-137)."""
    assert AgentSettings() == merged({key: None})


def test_an_empty_profile_means_all() -> None:
    """An empty list is no choice of profiles (AUT-137)."""
    assert chosen_profiles(merged({"profile": []}).profile) is None


def test_no_file(tmp_path: Path) -> None:
    """Without a file the built-in settings apply, without a warning (AUT-130)."""
    assert AgentFile(AgentSettings(), "", ()) == read_agent_file(tmp_path)


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ({"profile": 3}, '"profile" is 3: must be a string or a list'),
        ({"profile": ["go", 3]}, '"profile[1]" is 3: must be a string'),
        ({"profile": ["go", "nod"]}, '"profile[1]" is "nod": unknown profile "nod"; did you mean'),
        ({"permissions": []}, '"permissions" is []: must be an object'),
        ({"permissions": {"allow": "x"}}, '"permissions.allow" is "x": must be a list'),
        ({"permissions": {"deny": ["Bash"]}}, 'unknown key "deny" in "permissions"'),
        ({"allowedTools": [1]}, '"allowedTools[0]" is 1: must be a string'),
        ({"hooks": {"PreToolUse": "x"}}, '"hooks.PreToolUse" is "x": must be a list'),
        ({"hooks": {"PreToolUse": [{"matcher": "B"}]}}, '"hooks.PreToolUse[0]" has no "command"'),
        ({"hooks": {"PreToolUse": [3]}}, '"hooks.PreToolUse[0]" is 3: must be a string or an obj'),
        ({"hooks": {"Stop": []}}, 'unknown key "Stop" in "hooks"'),
        ({"mcpServers": {"x": "y"}}, '"mcpServers.x" is "y": must be an object'),
        ({"allowCommands": "make"}, '"allowCommands" is "make": must be a list or an object'),
        ({"allowCommands": {"x": []}}, 'unknown key "x" in "allowCommands"'),
        ({"allowCommands": {"run": "x"}}, '"allowCommands.run" is "x": must be a list'),
        ({"allowPkillTargets": {}}, '"allowPkillTargets" is {}: must be a list'),
        ({"allow_commands": []}, 'unknown key "allow_commands"'),
        ({"profil": "node"}, 'unknown key "profil"'),
    ],
)
def test_an_unusable_file(raw: dict[str, Any], problem: str, tmp_path: Path) -> None:
    """An invalid value or key is an error with its place: the file may restrict (AUT-138)."""
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, {"sandbox": True, **raw})
    assert caught.value.message.startswith(f"{AGENT_FILE}: {problem}")
    assert caught.value.hint


def test_settings_without_effect_warn(tmp_path: Path) -> None:
    """A sandbox and a name without a hook give a warning each."""
    raw = {"sandbox": {"enabled": False}, "hooks": {"PreToolUse": ["mine"]}}
    settings, _, warnings = read(tmp_path, b"\xef\xbb\xbf" + json.dumps(raw).encode())
    assert (*AgentSettings().hook_names, "mine") == settings.hook_names
    for part, warning in zip(('"sandbox"', 'hook "mine"'), warnings, strict=True):
        assert part in warning


def test_a_changed_file(tmp_path: Path) -> None:
    """A file that changed since the last run gives a note (AUT-140)."""
    one, two = (read(tmp_path, text).digest for text in (b"{}", b"{ }"))
    assert ["", "", ""] == [change_note(None, one), change_note(one, one), change_note("", "")]
    assert "was changed since the last run" in change_note(one, two)
    assert "is new since the last run" in change_note("", two)
    assert "was removed since the last run" in change_note(two, "")


@pytest.mark.parametrize("name", OPTIONS)
def test_recorded_sandbox_modes(name: str) -> None:
    """A recorded command line and environment switch the sandbox as recorded."""
    row = OPTIONS[name]
    given, env = (*row["args"], {})[:2]
    expected = row["expected"]
    match row["fn"]:
        case "get_sandbox_warning_message":
            mode = SandboxMode(given["disabled"], given["source"])
            answer: Any = start_warnings(mode, allow_destructive=False)[0]
        case "create_sandbox_mode":
            answer = sandbox_mode(no_sandbox=given is False, env=env)
        case _:
            expected = expected["options"]["sandboxMode"]
            answer = sandbox_mode(no_sandbox=given.get("sandbox") is False, env=env)
    if isinstance(expected, dict):
        expected = SandboxMode(expected["disabled"], expected["source"])
    assert (expected == answer) == (name not in not_followed("cli_options"))


def test_the_warnings_at_the_start() -> None:
    """The sandbox comes first, then destructive commands; without warnings there are no lines."""
    destructive = (
        "Warning: Destructive commands (rm, mv) enabled. "
        "Files can be deleted within project directory."
    )
    by_env = "Warning: SDK sandbox disabled via AUTONOE_NO_SANDBOX environment variable."
    off = SandboxMode(True, "env")
    assert () == start_warnings(SandboxMode(), allow_destructive=False)
    assert (destructive,) == start_warnings(SandboxMode(), allow_destructive=True)
    assert (by_env, destructive) == start_warnings(off, allow_destructive=True)
