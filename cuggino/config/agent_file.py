"""`.autonoe/agent.json`: what a project adds to the settings of `deliver` (AUT-130 to AUT-140).

The file extends the built-in settings and cannot weaken their protection. It is read once, at the
start; its digest is kept for the next run.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from cuggino.config.browser import BROWSER_SERVER, BROWSER_TOOLS
from cuggino.config.file import AGENT_FILE
from cuggino.config.model import GuardSettings
from cuggino.errors import ConfigError, StorageError
from cuggino.files import parse_json, read_regular
from cuggino.guard import (
    FILE_TOOLS,
    READERS,
    SHELLS,
    AllowedCommands,
    UnknownProfile,
    allowed_commands,
    chosen_profiles,
)

Settings = TypeVar("Settings", bound=GuardSettings)

PERMISSION_RULES = (
    "Read(./**)",
    "Write(./**)",
    "Edit(./**)",
    "Glob(./**)",
    "Grep(./**)",
    "Bash(*)",
)
"""Permission rules for every agent: files in the project, and any command."""

ALLOWED_TOOLS = (
    *("Read", "Write", "Edit", "Glob", "Grep", "Bash"),
    *BROWSER_TOOLS,
)
"""Tools that every agent may use."""

HOOKS = ("bash-security", "autonoe-protection")
"""Names of the built-in hooks. Both are the same guard; no file can remove them."""

MCP_SERVERS: Mapping[str, Mapping[str, object]] = {"playwright": BROWSER_SERVER}
"""Default MCP servers, used when the file names none."""

_GUARDED = SHELLS | FILE_TOOLS
_RULE = re.compile(r"(\w+)(\(.*\))?", re.DOTALL)

_KEYS = frozenset(
    [
        "sandbox",
        "permissions",
        "allowedTools",
        "hooks",
        "mcpServers",
        "profile",
        "allowCommands",
        "allowPkillTargets",
    ]
)


class ExtraHook(NamedTuple):
    """A hook of the project. It runs after the built-in hooks and can only deny more."""

    matcher: str
    """Tools that the hook applies to; empty for all."""
    command: str


class AgentSettings(NamedTuple):
    """The built-in settings plus the additions from the file, in order and without duplicates."""

    permissions: tuple[str, ...] = PERMISSION_RULES
    allowed_tools: tuple[str, ...] = ALLOWED_TOOLS
    hooks: tuple[str, ...] = HOOKS
    """Names, the built-in ones first. Only the built-in names are implemented (AUT-135)."""
    extra_hooks: tuple[ExtraHook, ...] = ()
    mcp_servers: Mapping[str, Mapping[str, object]] = MCP_SERVERS
    profiles: tuple[str, ...] | None = None
    """None for all."""
    allow_commands: AllowedCommands = AllowedCommands()
    allow_pkill_targets: tuple[str, ...] = ()

    @property
    def permission_rules(self) -> tuple[str, ...]:
        """The permission rules, except those for tools that the guard decides about."""
        return tuple(rule for rule in self.permissions if _tool_of(rule) not in _GUARDED)

    @property
    def listed_tools(self) -> tuple[str, ...]:
        """The allowed tools, except those that the guard or permission rules decide about."""
        bare = (*_GUARDED, *READERS)
        return tuple(tool for tool in self.allowed_tools if _tool_of(tool) not in bare)


class AgentFile(NamedTuple):
    """The parsed file."""

    settings: AgentSettings
    digest: str = ""
    """Digest of the content, to detect a change between runs; empty without a file."""
    warnings: tuple[str, ...] = ()
    """One sentence each, for standard error."""


def parse_agent_file(content: bytes | None) -> AgentFile:
    """Parse the content of `.autonoe/agent.json`; None means that there is no file.

    A file that is not JSON, or that has a value of a wrong type, is ignored as a whole, with a
    warning that names the place (AUT-130).

    Raises:
        ConfigError: it names a profile that does not exist (AUT-138).
    """
    if content is None:
        return AgentFile(AgentSettings())
    digest = hashlib.sha256(content).hexdigest()
    try:
        raw = parse_json(content)
        settings = merged(raw)
    except UnknownProfile as error:
        raise ConfigError(f"{AGENT_FILE}: {error}", hint=error.hint) from error
    except ValueError as error:
        where = str(error)
    else:
        return AgentFile(settings, digest, tuple(_notes(raw, settings)))
    warning = f"{AGENT_FILE} {where}; it is ignored as a whole, the built-in settings hold"
    return AgentFile(AgentSettings(), digest, (warning,))


def read_agent_file(project: Path) -> AgentFile:
    """Return the settings in the file; the default without a file.

    Raises:
        ConfigError: it names an unknown profile.
        StorageError: it cannot be read.
    """
    path = project / AGENT_FILE
    try:
        content = read_regular(path)
    except (FileNotFoundError, NotADirectoryError):
        content = None
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise StorageError("read agent settings", f"{path} cannot be read: {why}") from error
    return parse_agent_file(content)


def joined_settings(settings: Settings, agent: AgentSettings) -> Settings:
    """Return the project's settings merged with those of the file.

    Its profiles replace the project's; everything else is added.
    """
    own = allowed_commands(settings.allow_commands)
    both = {
        tier: list(dict.fromkeys((*getattr(own, tier), *getattr(agent.allow_commands, tier))))
        for tier in own._fields
    }
    targets = dict.fromkeys((*settings.allow_pkill_targets, *agent.allow_pkill_targets))
    profile = settings.profile if agent.profiles is None else list(agent.profiles)
    # Not validated: the file has rules of its own.
    return settings.model_copy(
        update={
            "allow_commands": both,
            "allow_pkill_targets": list(targets),
            "profile": profile,
        }
    )


def merged(user: object) -> AgentSettings:
    """Merge the user's settings into the built-in ones (AUT-131 to AUT-139); `sandbox` is ignored.

    Raises:
        UnknownProfile: a profile that does not exist.
        ValueError: a value of a wrong type, with its key.
    """
    if not isinstance(user, dict):
        raise ValueError("holds no object")
    permissions = _object(user, "permissions")
    names, extra = _hooks(_object(user, "hooks").get("PreToolUse"))
    return AgentSettings(
        permissions=_joined(
            PERMISSION_RULES, _texts(permissions.get("allow"), "permissions.allow")
        ),
        allowed_tools=_joined(ALLOWED_TOOLS, _texts(user.get("allowedTools"), "allowedTools")),
        hooks=_joined(HOOKS, names),
        extra_hooks=extra,
        mcp_servers=_servers(user.get("mcpServers")),
        profiles=_profiles(user.get("profile")),
        allow_commands=_commands(user.get("allowCommands")),
        allow_pkill_targets=_texts(user.get("allowPkillTargets"), "allowPkillTargets"),
    )


def missing_programs(settings: AgentSettings, project: str) -> Mapping[str, str]:
    """Return the servers whose program is not installed, each with the name of that program.

    A relative path is resolved from `project`, where servers start.
    """
    return {
        name: command
        for name, server in settings.mcp_servers.items()
        if isinstance(command := server.get("command"), str)
        and shutil.which(os.path.join(project, command) if os.sep in command else command) is None  # noqa: PTH118
    }


def change_note(before: str | None, now: str) -> str:
    """Return a warning if the file has changed since the last run (AUT-140).

    `before` is the digest of that run. An agent may have changed the file. Returns "" when it is
    unchanged or there was no run before.
    """
    if before is None or before == now:
        return ""
    change = "is new" if not before else "was changed" if now else "was removed"
    return f"{AGENT_FILE} {change} since the last run; look at it if it was not you"


def _notes(raw: Mapping[str, Any], settings: AgentSettings) -> list[str]:
    notes = []
    if "sandbox" in raw:
        notes.append(f'{AGENT_FILE}: "sandbox" is ignored, a file cannot turn it off')
    for name in settings.hooks:
        if name not in HOOKS:
            notes.append(
                f'{AGENT_FILE}: nothing is behind the hook "{name}"; a hook of your own is '
                '{"matcher": "TOOL", "command": "PROGRAM"}'
            )
    notes += [f'{AGENT_FILE}: unknown key "{key}" is ignored' for key in raw if key not in _KEYS]
    return notes


def _tool_of(rule: str) -> str:
    found = _RULE.fullmatch(rule.strip())
    return found[1] if found else rule


def _joined(built_in: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*built_in, *more)))


def _object(user: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = user.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f'"{key}" is no object')
    return value


def _texts(value: object, key: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f'"{key}" is no list of texts')
    return tuple(value)


def _hooks(value: object) -> tuple[tuple[str, ...], tuple[ExtraHook, ...]]:
    key = "hooks.PreToolUse"
    if not isinstance(value, list | None):
        raise ValueError(f'"{key}" is no list')
    names: list[str] = []
    extra: list[ExtraHook] = []
    for item in value or []:
        match item:
            case str():
                names.append(item)
            case {"matcher": str(matcher), "command": str(command)}:
                extra.append(ExtraHook(matcher, command))
            case {"command": str(command)} if "matcher" not in item:
                extra.append(ExtraHook("", command))
            case _:
                raise ValueError(f'"{key}" holds what is neither a name nor {{matcher, command}}')
    return tuple(names), tuple(extra)


def _profiles(value: object) -> tuple[str, ...] | None:
    try:
        return chosen_profiles(value)
    except UnknownProfile:
        raise
    except ValueError as error:
        raise ValueError(f'"profile" is {error}') from error


def _commands(value: object) -> AllowedCommands:
    try:
        return allowed_commands(value)
    except ValueError as error:
        raise ValueError(f'"allowCommands" is {error}') from error


def _servers(value: object) -> Mapping[str, Mapping[str, object]]:
    """Merge the servers: absent means the built-in ones, empty none; the user's win (AUT-136)."""
    if value is None:
        return MCP_SERVERS
    if not isinstance(value, dict) or not all(isinstance(item, dict) for item in value.values()):
        raise ValueError('"mcpServers" is no object of objects')
    return {**MCP_SERVERS, **value} if value else {}
