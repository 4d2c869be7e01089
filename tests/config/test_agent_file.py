"""Settings from `.autonoe/agent.json`, and the switches of the sandbox."""

from __future__ import annotations

import json
import os
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
    merged,
    parse_agent_file,
    read_agent_file,
)
from cuggino.errors import ConfigError, StorageError
from cuggino.guard.extensions import AllowedCommands
from cuggino.guard.sandbox import SandboxMode, sandbox_mode, start_warnings
from tests.vectors import not_followed, rows

ROWS = {row["id"]: row for row in rows("config_merge")}
OPTIONS = {row["id"]: row for row in rows("cli_options") if "sandbox" in str(row).lower()}
"""The rows about the sandbox; the others are about other options."""


def recorded(user: object) -> dict[str, Any]:
    """Return the merged settings in the form of the rows, without absent values."""
    settings = merged(user)
    security: dict[str, Any] = {}
    if settings.profiles is not None:
        security["activeProfiles"] = list(settings.profiles)
    if settings.allow_commands != AllowedCommands():
        tiers = settings.allow_commands._asdict()
        given = {tier: list(names) for tier, names in tiers.items() if names}
        security["allowCommands"] = given["run"] if set(given) == {"run"} else given
    if settings.allow_pkill_targets:
        security["allowPkillTargets"] = list(settings.allow_pkill_targets)
    return {
        "permissions": {"allow": list(settings.permissions)},
        "allowedTools": list(settings.allowed_tools),
        "hooks": {"PreToolUse": list(settings.hooks)},
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
    assert (*built_in.permissions, "Read(../lib/**)") == settings.permissions
    assert (*built_in.allowed_tools, "WebFetch") == settings.allowed_tools
    assert built_in.hooks == settings.hooks
    assert (ExtraHook("Bash", "./x"), ExtraHook("", "./y")) == settings.extra_hooks
    assert ("node", "go") == settings.profiles
    assert ("make", "docker") == settings.allow_commands.of("run")
    assert ("make", "shellcheck") == settings.allow_commands.of("sync")
    assert ("server",) == settings.allow_pkill_targets


def test_a_plain_list_of_commands_means_run() -> None:
    """A plain list of commands applies to sessions that do work (AUT-139)."""
    settings = merged({"allowCommands": ["docker"]})
    assert (("docker",), ()) == tuple(settings.allow_commands.of(m) for m in ("run", "sync"))


@pytest.mark.parametrize("profile", [None, []])
def test_no_profile_means_all(profile: object) -> None:
    """An absent or empty profile means all profiles (AUT-137)."""
    assert merged({"profile": profile}).profiles is None


def test_a_file_that_is_none(tmp_path: Path) -> None:
    """A pipe in its place raises an error without blocking."""
    (tmp_path / ".autonoe").mkdir()
    os.mkfifo(tmp_path / AGENT_FILE)
    with pytest.raises(StorageError, match="cannot be read: not a regular file"):
        read_agent_file(tmp_path)


def test_no_file() -> None:
    """Without a file the built-in settings apply, without a warning (AUT-130)."""
    assert AgentFile(AgentSettings(), "", ()) == parse_agent_file(None)


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b'{\n  "profile": node\n}', "line 2 column 14: not valid JSON (Expecting value)"),
        (b"", "line 1 column 1: not valid JSON (Expecting value)"),
        (b"\xff{}", "byte 0: not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "holds no object"),
        (b'{"profile": 3}', '"profile" is neither a text nor a list of texts'),
        (b'{"profile": ["go", 3]}', '"profile" is neither a text nor a list of texts'),
        (b'{"permissions": []}', '"permissions" is no object'),
        (b'{"permissions": {"allow": "x"}}', '"permissions.allow" is no list of texts'),
        (b'{"allowedTools": [1]}', '"allowedTools" is no list of texts'),
        (b'{"hooks": {"PreToolUse": "x"}}', '"hooks.PreToolUse" is no list'),
        (b'{"hooks": {"PreToolUse": [{"matcher": "Bash"}]}}', '"hooks.PreToolUse" holds what is'),
        (b'{"mcpServers": {"x": "y"}}', '"mcpServers" is no object of objects'),
        (b'{"allowCommands": "make"}', '"allowCommands" is neither a list nor an object'),
        (b'{"allowCommands": {"x": []}}', '"allowCommands" is neither a list nor an object'),
        (b'{"allowCommands": {"run": "x"}}', '"allowCommands" is not made of texts'),
        (b'{"allowPkillTargets": {}}', '"allowPkillTargets" is no list of texts'),
    ],
)
def test_an_unusable_file(content: bytes, place: str) -> None:
    """An unusable file is ignored as a whole, with one warning that names the place."""
    useful = content.replace(b"{", b'{"allowPkillTargets": ["a"], ', 1)
    for text in {content, useful if content.startswith(b'{"') else content}:
        settings, digest, warnings = parse_agent_file(text)
        assert AgentSettings() == settings
        assert digest
        [warning] = warnings
        assert warning.endswith("; it is ignored as a whole, the built-in settings hold")
        assert warning.startswith(f".autonoe/agent.json {place}") or text is useful


def test_an_unknown_profile() -> None:
    """A profile that does not exist is an error that lists the valid names (AUT-138)."""
    with pytest.raises(ConfigError, match=r'agent\.json: unknown profile "nod"') as caught:
        parse_agent_file(b'{"profile": ["go", "nod"]}')
    assert 'did you mean "node"? valid profiles: base, node, bun, ' in str(caught.value.hint)


def test_settings_without_effect_warn() -> None:
    """A sandbox, a name without a hook, and an unknown key only give a warning each."""
    raw = {"sandbox": {"enabled": False}, "hooks": {"PreToolUse": ["mine"]}, "colour": 1}
    settings, _, warnings = parse_agent_file(b"\xef\xbb\xbf" + json.dumps(raw).encode())
    assert AgentSettings(hooks=(*AgentSettings().hooks, "mine")) == settings
    for part, warning in zip(('"sandbox"', 'hook "mine"', 'key "colour"'), warnings, strict=True):
        assert part in warning


def test_a_changed_file() -> None:
    """A file that changed since the last run gives a note (AUT-140)."""
    one, two = (parse_agent_file(text).digest for text in (b"{}", b"{ }"))
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
