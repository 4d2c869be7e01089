"""The settings of one session of the Gemini CLI: those of the user, in which ours are put."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ATTEMPTS = 3
"""How often the program asks the API, instead of ten times in several silent minutes."""

_OURS: dict[str, Any] = {
    "general": {
        "maxAttempts": ATTEMPTS,
        "enableAutoUpdate": False,
        "enableAutoUpdateNotification": False,
    },
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "ide": {"enabled": False},
    # Without a terminal, in which a command could wait for somebody.
    "tools": {"shell": {"enableInteractiveShell": False}},
}

GUARDED: dict[str, Any] = {
    "hooksConfig": {"enabled": True},
    # The agent could write it, and change what is run in front of the next session's commands.
    "advanced": {"ignoreLocalEnv": True},
}

DISTRUST: dict[str, Any] = {"security": {"folderTrust": {"enabled": True}}}
"""With `Home.distrust`."""

_AUTH = (
    ("GOOGLE_GENAI_USE_GCA", "oauth-personal"),
    ("GOOGLE_GENAI_USE_VERTEXAI", "vertex-ai"),
    ("GEMINI_API_KEY", "gemini-api-key"),
)
"""What the environment chooses; with an address of the API the program would not look."""


def session_settings(
    user: Mapping[str, Any],
    given: Mapping[str, object],
    *,
    env: Mapping[str, str],
    mcp_servers: Mapping[str, object],
    hooks: Mapping[str, Any],
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The user's settings; over them ours, those given, `more`, and what the guard needs."""
    settings = merged(merged(merged(user, _OURS), given), more or {})
    settings = merged(settings, {"security": {"auth": {}}})
    auth = settings["security"]["auth"]
    if "selectedType" not in auth:
        chosen = next((kind for name, kind in _AUTH if env.get(name)), None)
        if chosen is not None:
            auth["selectedType"] = chosen
    servers = {name: _server(server) for name, server in mcp_servers.items()}
    settings = merged(settings, {"mcpServers": servers} if servers else {})
    others = settings.get("hooks")
    others = others if isinstance(others, dict) else {}
    mine = {event: [*_list(others.get(event)), *entries] for event, entries in hooks.items()}
    settings["hooks"] = {**others, **mine}
    return settings


def _server(server: object) -> object:
    """A server as this program names its address; what else is told stays as it is."""
    if not isinstance(server, Mapping):
        return server
    told = {str(key): value for key, value in server.items()}
    if told.pop("type", None) == "http" and "url" in told:
        told["httpUrl"] = told.pop("url")
    return told


def merged(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    """The one over the other, object by object."""
    made = dict(low)
    for key, value in high.items():
        below = made.get(key)
        if isinstance(value, Mapping):
            made[key] = merged(below if isinstance(below, Mapping) else {}, value)
        else:
            made[key] = value
    return made


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
