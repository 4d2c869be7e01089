"""`.autonoe/agent.json` of a project, and the permissions it gives to deliverables sessions."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from cuggino.config.model import GuardSettings
from cuggino.errors import StorageError
from cuggino.guard import AGENT_FILE, AgentFile, AgentSettings, agent_file, allowed_commands

Settings = TypeVar("Settings", bound=GuardSettings)


def read_agent_file(project: Path) -> AgentFile:
    """Return the settings in the file; the default without a file.

    Raises:
        ConfigError: it names an unknown profile.
        StorageError: it cannot be read.
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
