"""`.autonoe/agent.json` of a project, and what the sessions of its deliverables may do by it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from cuggino.config.model import LoopSettings
from cuggino.errors import StorageError
from cuggino.security.agent_settings import AGENT_FILE, AgentFile, AgentSettings, agent_file
from cuggino.security.extensions import allowed_commands
from cuggino.security.roles import Role

Settings = TypeVar("Settings", bound=LoopSettings)

DELIVER_ROLES: Mapping[str, Role] = {
    "initializer": "deliver",
    "coding": "deliver",
    "sync": "sync",
    "verify": "verify",
}
"""The role of a session by what it is told, which is the name of its stage."""


def read_agent_file(project: Path) -> AgentFile:
    """What the file says; that of a project without one is the same for all.

    Raises:
        ConfigError: it names a profile that does not exist.
        StorageError: it is there and cannot be read.
    """
    path = project / AGENT_FILE
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        content = None
    except OSError as error:
        raise StorageError(
            "read agent settings", f"{path} cannot be read: {error.strerror or error}"
        ) from error
    return agent_file(content)


def joined_settings(settings: Settings, agent: AgentSettings) -> Settings:
    """The settings of the project, joined with those of the file.

    Its profiles count in place of the project's, all else counts besides.
    """
    own = allowed_commands(settings.allow_commands)
    both = {
        tier: list(dict.fromkeys((*getattr(own, tier), *getattr(agent.allow_commands, tier))))
        for tier in own._fields
    }
    targets = dict.fromkeys((*settings.allow_pkill_targets, *agent.allow_pkill_targets))
    profile = settings.profile if agent.profiles is None else list(agent.profiles)
    # Not validated: what the file may hold is its own affair.
    return settings.model_copy(
        update={
            "allow_commands": both,
            "allow_pkill_targets": list(targets),
            "profile": profile,
        }
    )
