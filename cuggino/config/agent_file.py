"""`.autonoe/agent.json`: what a project adds to the settings of `deliver` (AUT-130 to AUT-140).

The file extends the built-in settings and cannot weaken their protection. It is read once, at the
start; its digest is kept for the next run. An unusable one is an error, as it may restrict.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import AfterValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from cuggino.config.browser import BROWSER_SERVER, BROWSER_TOOLS
from cuggino.config.file import AGENT_FILE
from cuggino.config.model import GuardSettings, Name, Names, Profiles
from cuggino.edited_files import SettingsFile, SharedSection, read_content, read_settings
from cuggino.guard import (
    FILE_TOOLS,
    READERS,
    SHELLS,
    AllowedCommands,
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


def _added_to(built_in: tuple[str, ...]) -> AfterValidator:
    return AfterValidator(lambda more: tuple(dict.fromkeys((*built_in, *more))))


def _servers(own: Mapping[str, Mapping[str, object]]) -> Mapping[str, Mapping[str, object]]:
    """Merge the servers: absent means the built-in ones, empty none; the user's win (AUT-136)."""
    return {**MCP_SERVERS, **own} if own else {}


class ExtraHook(SharedSection):
    """A hook of the project. It runs after the built-in hooks and can only deny more."""

    matcher: str = ""
    """Tools that the hook applies to; empty for all."""
    command: str


class Permissions(SharedSection):
    """The permission rules."""

    allow: Annotated[tuple[str, ...], Field(strict=False), _added_to(PERMISSION_RULES)] = (
        PERMISSION_RULES
    )


class Hooks(SharedSection):
    """The hooks. Only the built-in names are implemented (AUT-135)."""

    pre_tool_use: Annotated[tuple[str | ExtraHook, ...], Field(strict=False)] = Field(
        default=HOOKS, alias="PreToolUse"
    )


class AgentSettings(SharedSection):
    """The built-in settings plus the additions from the file, in order and without duplicates."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    sandbox: Any = None
    """Ignored: the file cannot turn the sandbox off (AUT-131)."""
    permissions: Permissions = Permissions()
    allowed_tools: Annotated[tuple[str, ...], Field(strict=False), _added_to(ALLOWED_TOOLS)] = (
        ALLOWED_TOOLS
    )
    hooks: Hooks = Hooks()
    mcp_servers: Annotated[Mapping[str, Mapping[str, object]], AfterValidator(_servers)] = (
        MCP_SERVERS
    )
    profile: Profiles = None
    allow_commands: Names = Field(default=[])
    allow_pkill_targets: list[Name] = Field(default=[])

    @property
    def hook_names(self) -> tuple[str, ...]:
        """The names of the hooks, the built-in ones first."""
        named = (hook for hook in self.hooks.pre_tool_use if isinstance(hook, str))
        return tuple(dict.fromkeys((*HOOKS, *named)))

    @property
    def extra_hooks(self) -> tuple[ExtraHook, ...]:
        return tuple(hook for hook in self.hooks.pre_tool_use if isinstance(hook, ExtraHook))

    @property
    def permission_rules(self) -> tuple[str, ...]:
        """The permission rules, except those for tools that the guard decides about."""
        return tuple(rule for rule in self.permissions.allow if _tool_of(rule) not in _GUARDED)

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


def read_agent_file(project: Path) -> AgentFile:
    """Return the settings in the file; the built-in ones without a file.

    Raises:
        ConfigError: the file is unusable.
    """
    path = project / AGENT_FILE
    settings, origins = read_settings(AgentSettings, SettingsFile(path, AGENT_FILE))
    content = read_content(path)
    warnings = []
    if "sandbox" in origins:
        warnings.append(f'{AGENT_FILE}: "sandbox" is ignored, a file cannot turn it off')
    warnings += [
        f'{AGENT_FILE}: there is no command for the hook "{name}"; a hook of your own is '
        '{"matcher": "TOOL", "command": "PROGRAM"}'
        for name in settings.hook_names[len(HOOKS) :]
    ]
    digest = "" if content is None else hashlib.sha256(content).hexdigest()
    return AgentFile(settings, digest, tuple(warnings))


def joined_settings(settings: Settings, agent: AgentSettings) -> Settings:
    """Return the project's settings merged with those of the file.

    Its profiles replace the project's; everything else is added.
    """
    own, more = allowed_commands(settings.allow_commands), allowed_commands(agent.allow_commands)
    targets = dict.fromkeys((*settings.allow_pkill_targets, *agent.allow_pkill_targets))
    return settings.model_copy(
        update={
            "allow_commands": {
                tier: list(dict.fromkeys((*getattr(own, tier), *getattr(more, tier))))
                for tier in AllowedCommands._fields
            },
            "allow_pkill_targets": list(targets),
            "profile": settings.profile
            if chosen_profiles(agent.profile) is None
            else agent.profile,
        }
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
    """Return a warning if the file has changed since the last run.

    `before` is the digest of that run. An agent may have changed the file. Returns "" when it is
    unchanged or there was no run before.
    """
    if before is None or before == now:
        return ""
    change = "is new" if not before else "was changed" if now else "was removed"
    return f"{AGENT_FILE} {change} since the last run; review it if you did not do this"


def _tool_of(rule: str) -> str:
    found = _RULE.fullmatch(rule.strip())
    return found[1] if found else rule
