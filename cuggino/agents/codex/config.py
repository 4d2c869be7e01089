"""Configuration of the Codex CLI for one session: TOML arguments, or a private file."""

from __future__ import annotations

import json
import os
import secrets
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cuggino.agents.base.program import encodable
from cuggino.errors import StorageError
from cuggino.processes import run_bounded

LONGEST_ARGUMENT = 100_000
"""Maximum bytes of one argument; Linux allows 128 KiB."""

OFF = (
    # Features that use the network, or wait for a person.
    *("apps", "plugins", "tool_suggest", "skill_search", "goals", "sleep_tool"),
    # Without a network it would wait indefinitely.
    "unbounded_connection_retries",
)
"""Features turned off in every session."""

OFF_WHEN_GUARDED = (
    # A command with its own terminal could be typed into, bypassing the guard.
    "unified_exec_tty",
    *("multi_agent", "multi_agent_v2", "image_generation", "memories"),
)

_START_SECONDS = 60
"""Time for an MCP server to start, as no session starts without it."""

_RETRIES = {"request_max_retries": 3, "stream_max_retries": 3, "stream_idle_timeout_ms": 300_000}
"""Defaults for a custom model provider."""

_BUILT_IN = frozenset({"openai", "ollama", "lmstudio", "amazon-bedrock"})
"""Providers that cannot be configured; they give up within a minute anyway."""


def toml(value: Any) -> str:
    """Return the value in one line of TOML; None values in a table are left out."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return quoted(value)
        case Mapping():
            items = [(key, item) for key, item in value.items() if item is not None]
            return "{" + ",".join(f"{quoted(str(k))}={toml(v)}" for k, v in items) + "}"
        case list() | tuple():
            return "[" + ",".join(toml(item) for item in value if item is not None) + "]"
        case _:
            return quoted(str(value))


def quoted(text: str) -> str:
    """Return the text as a TOML string. Lone surrogates become question marks."""
    # As JSON, except that TOML must escape DEL and has no surrogate pairs.
    return json.dumps(encodable(text), ensure_ascii=False).replace("\x7f", "\\u007f")


def override(key: str, value: Any) -> list[str]:
    """Return the arguments that set the key."""
    return ["-c", f"{key}={toml(value)}"]


def codex_home(env: Mapping[str, str]) -> Path:
    """Return the folder of the program's settings and sessions."""
    if own := env.get("CODEX_HOME"):
        return Path(own)
    # A shell resolves the home folder.
    asked = run_bounded(("/bin/sh", "-c", 'printf %s "${HOME:-~}"/.codex'), seconds=60, env=env)
    return Path(asked.text)


def retries(env: Mapping[str, str]) -> list[str]:
    """Return arguments that limit the retries of a custom model provider."""
    try:
        config = tomllib.loads((codex_home(env) / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []  # the program reports what is wrong
    name, providers = config.get("model_provider"), config.get("model_providers")
    given = providers.get(name) if isinstance(providers, dict) else None
    if not isinstance(name, str) or not isinstance(given, dict) or name in _BUILT_IN:
        return []
    missing = {key: value for key, value in _RETRIES.items() if key not in given}
    return override("model_providers", {name: missing}) if missing else []


def server_table(
    given: Mapping[str, object], *, approved: bool, allowed_tools: Sequence[str] = ()
) -> dict[str, dict[str, Any]]:
    """Convert MCP servers from Claude Code's format to Codex's.

    The session waits for them, and fails without them: Codex starts before they are ready, and the
    model would not learn about their tools. `approved` allows all of their tools, `allowed_tools`
    those it names (`mcp__server` or `mcp__server__tool`).
    """
    return {name: _server(name, told, approved, allowed_tools) for name, told in given.items()}


def holds_secrets(table: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether a server has variables or headers, which may hold keys."""
    return any(told.get("env") or told.get("http_headers") for told in table.values())


def _server(name: str, told: object, approved: bool, allowed: Sequence[str]) -> dict[str, Any]:
    given = dict(told) if isinstance(told, Mapping) else {}
    table: dict[str, Any] = {key: given[key] for key in ("command", "args", "env") if key in given}
    if "url" in given:
        table = {"url": given["url"], "http_headers": given.get("headers")}
    table |= {"required": True, "enabled": True, "startup_timeout_sec": _START_SECONDS}
    if approved or f"mcp__{name}" in allowed:
        table["default_tools_approval_mode"] = "approve"
        return table
    prefix = f"mcp__{name}__"
    tools = [rule.removeprefix(prefix) for rule in allowed if rule.startswith(prefix)]
    if tools:
        table["tools"] = {tool: {"approval_mode": "approve"} for tool in tools}
    return table


@contextmanager
def private(settings: Mapping[str, object], env: Mapping[str, str]) -> Iterator[list[str]]:
    """Yield arguments for settings that other users of the machine must not see.

    They are written to a private file in the program's own folder, a profile, which is removed at
    the end. A default profile of the user would be replaced by it: in that case they become
    arguments, unless they are too long.

    Raises:
        StorageError: the file cannot be written.
    """
    if not settings:
        yield []
        return
    lines = [f"{key}={toml(value)}" for key, value in settings.items()]
    is_short = all(len(line.encode()) <= LONGEST_ARGUMENT for line in lines)
    if is_short and _has_profile(env):
        yield [word for line in lines for word in ("-c", line)]
        return
    name = f"cuggino-{secrets.token_hex(8)}"
    path = codex_home(env) / f"{name}.config.toml"
    try:
        _write(path, "".join(f"{line}\n" for line in lines))
        yield ["--profile", name]
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _has_profile(env: Mapping[str, str]) -> bool:
    try:
        config = tomllib.loads((codex_home(env) / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(config.get("profile"))


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text.encode())
    except OSError as error:
        raise StorageError(
            "write system prompt",
            f"{path} cannot be written: {error.strerror or error}",
            hint="Codex reads its system prompt from its own folder (CODEX_HOME)",
        ) from error
