"""The user's own configuration, for all projects: `~/.config/cuggino/config.json`."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from cuggino.edited_files import SettingsFile, read_settings


class UserConfig(BaseModel):
    """What a user decides for all projects, and no project can change."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    trust: Literal["ask", "require", "off"] = "ask"
    """The behavior in a project with commands that the user has not accepted. `ask` asks, and
    without a terminal warns and continues; `require` asks, and without a terminal starts nothing
    (exit code 2); `off` runs them, for a container that holds nothing of value."""


def load_user_config(path: Path) -> UserConfig:
    """Return the configuration in the file; all defaults without one.

    Raises:
        ConfigError: the file is unusable.
    """
    hint = 'write an object such as {"trust": "require"}, or remove the file'
    return read_settings(UserConfig, SettingsFile(path, str(path), hint))[0]
