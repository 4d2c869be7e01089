"""Configuration, permissions and MCP servers of an OpenCode session, passed by its environment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cuggino.agents.opencode.tools import tool_id
from cuggino.errors import ConfigError

ENVIRONMENT = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_SHARE": "1",
    "OPENCODE_DISABLE_TERMINAL_TITLE": "1",
}
"""Network access is limited to the model; the user's variables take precedence."""

OFFLINE = "npm_config_offline"
"""OpenCode installs a helper for plugins into its configuration folder, and waits for that."""

_NOT_ASKED = {"question": "deny", "plan_enter": "deny", "plan_exit": "deny"}

_ALL = {"*": "allow", **_NOT_ASKED}

_READING: dict[str, Any] = {
    "*": "deny",
    "read": {"*": "allow", "*.env": "deny", "*.env.*": "deny", "*.env.example": "allow"},
    **dict.fromkeys(("glob", "grep", "list", "lsp", "todowrite", "todoread", "skill"), "allow"),
}


_CONFIGS = ("opencode.json", "opencode.jsonc")
_PACKAGES = ("package.json", "plugin", "plugins", "tool", "tools")


def permissions(*, unattended: bool, allowed_tools: Sequence[str], outputs: str) -> dict[str, Any]:
    """Return the permissions of a session: all, or reading and `allowed_tools`."""
    if unattended:
        return dict(_ALL)
    outside = {"external_directory": {"*": "deny", f"{outputs}/*": "allow"}}
    return _READING | outside | {tool_id(rule): "allow" for rule in allowed_tools} | _NOT_ASKED


def outputs_folder(env: Mapping[str, str]) -> str:
    """Return the folder in which the program stores long outputs for the agent to read."""
    data = env.get("XDG_DATA_HOME") or f"{env.get('HOME', '')}/.local/share"
    return f"{data}/opencode/tool-output"


_REFUSED = ("permissions", "hooks")
"""Settings in Claude Code's format, as in the deliver loop; OpenCode would not start with them."""


def config_content(
    env: Mapping[str, str],
    *,
    settings: Mapping[str, object],
    plugin: Path,
    instructions: Sequence[str],
    mcp_servers: Mapping[str, object],
    guarded: bool,
) -> str:
    """Return the configuration of the highest rank: the user's own of this kind, merged with ours.

    Raises:
        ConfigError: the user's OPENCODE_CONFIG_CONTENT is not a JSON object.
    """
    config = _given(env) | {key: value for key, value in settings.items() if key not in _REFUSED}
    servers = {name: _server(given) for name, given in mcp_servers.items()}
    ours: dict[str, Any] = {
        "autoupdate": False,
        "share": "disabled",
        "plugin": [*_list(config.get("plugin")), plugin.as_uri()],
        "instructions": [*_list(config.get("instructions")), *instructions],
    }
    if servers:
        told = config.get("mcp")
        ours["mcp"] = {**(told if isinstance(told, dict) else {}), **servers}
    if guarded:
        # Both run programs of the project.
        ours |= {"formatter": False, "lsp": False}
    return json.dumps(config | ours)


def with_instructions(env: Mapping[str, str], files: Sequence[str]) -> str:
    """Add instructions to the user's OPENCODE_CONFIG_CONTENT.

    Raises:
        ConfigError: it is not a JSON object.
    """
    config = _given(env)
    return json.dumps(config | {"instructions": [*_list(config.get("instructions")), *files]})


def needs_packages(env: Mapping[str, str], cwd: Path) -> bool:
    """Return whether the user or the project has plugins, which need packages from OpenCode."""
    home = Path(env.get("HOME") or "/")
    config = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "opencode"
    folders = [config, home / ".opencode"]
    files = [config / "config.json"]
    if chosen := env.get("OPENCODE_CONFIG_DIR"):
        folders.append(Path(chosen))
    if env.get("OPENCODE_DISABLE_PROJECT_CONFIG") != "1":
        above = (cwd, *cwd.parents)
        folders += [folder / ".opencode" for folder in above]
        files += [folder / name for folder in above for name in _CONFIGS]
    if any((folder / name).exists() for folder in folders for name in _PACKAGES):
        return True
    files += [folder / name for folder in folders for name in _CONFIGS]
    if chosen := env.get("OPENCODE_CONFIG"):
        files.append(Path(chosen))
    said = [env.get("OPENCODE_CONFIG_CONTENT", ""), *map(_text, files)]
    return any('"plugin"' in text for text in said)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _given(env: Mapping[str, str]) -> dict[str, Any]:
    text = env.get("OPENCODE_CONFIG_CONTENT")
    if not text:
        return {}
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"OPENCODE_CONFIG_CONTENT is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ConfigError("OPENCODE_CONFIG_CONTENT is not a JSON object")
    return value


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _server(given: object) -> object:
    """Convert an MCP server from the common format of `mcpServers` to OpenCode's."""
    if not isinstance(given, Mapping) or given.get("type") in ("local", "remote"):
        return given
    if "url" in given:
        headers = {"headers": given["headers"]} if "headers" in given else {}
        return {"type": "remote", "url": given["url"], **headers, "enabled": True}
    command = [given.get("command"), *_list(given.get("args"))]
    env = {"environment": given["env"]} if "env" in given else {}
    return {"type": "local", "command": command, **env, "enabled": True}
