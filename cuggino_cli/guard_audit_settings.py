"""By which settings and roles the sessions of a recorded deliverables run were guarded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from cuggino.config import LoopSettings
from cuggino.errors import ConfigError, StorageError
from cuggino.events import RunStarted
from cuggino.security.agent_settings import AGENT_FILE, AgentSettings, agent_file
from cuggino.security.extensions import allowed_commands
from cuggino.security.roles import Role

DELIVER_ROLES: Mapping[str, Role] = {
    "initializer": "deliver",
    "coding": "deliver",
    "sync": "sync",
    "verify": "verify",
}
"""The role of a session by what it was told, which is the name of its stage."""


def delivery_settings(started: RunStarted, project: Path) -> LoopSettings:
    """The settings recorded with the run, joined with the project's `.autonoe/agent.json` of now.

    Its profiles count before those of the run, as they did there.

    Raises:
        ConfigError: the options are not of this version, or the file names an unknown profile.
        StorageError: the file is there and cannot be read.
    """
    known = LoopSettings.model_fields
    try:
        settings = LoopSettings.model_validate(
            {name: value for name, value in started.options.items() if name in known}
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigError(
            f"the options of run {started.run_id} cannot be used by this version: "
            f"{where}: {first['msg'].removeprefix('Value error, ')}"
        ) from error
    agent = _agent_settings(project)
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


def _agent_settings(project: Path) -> AgentSettings:
    path = project / AGENT_FILE
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        content = None
    except OSError as error:
        raise StorageError(
            "read agent settings", f"{path} cannot be read: {error.strerror or error}"
        ) from error
    return agent_file(content).settings
