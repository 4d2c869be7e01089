"""By which settings the sessions of a recorded deliverables run were guarded."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from cuggino.config import LoopSettings
from cuggino.config.agent_file import joined_settings, read_agent_file
from cuggino.errors import ConfigError
from cuggino.events import RunStarted


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
    return joined_settings(settings, read_agent_file(project).settings)
