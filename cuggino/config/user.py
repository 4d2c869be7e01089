"""The user's own configuration, for all projects: `~/.config/cuggino/config.json`."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from cuggino.errors import ConfigError
from cuggino.files import describe, read_json_object


class UserConfig(BaseModel):
    """What a user decides for all projects, and no project can change."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    trust: Literal["ask", "require", "off"] = "ask"
    """The behavior in a project with commands that the user has not accepted. `ask` asks, and
    without a terminal warns and continues; `require` asks, and without a terminal starts nothing
    (exit code 2); `off` runs them, for a container that holds nothing of value."""


def load_user_config(path: Path) -> UserConfig:
    """Return the configuration in the file; all defaults if missing or blank.

    Raises:
        ConfigError: the file cannot be read, is not JSON, or has an unknown key or invalid value.
    """
    hint = 'write an object such as {"trust": "require"}, or remove the file'
    try:
        raw = read_json_object(path, may_be_blank=True)
        return UserConfig.model_validate(raw)
    except FileNotFoundError:
        return UserConfig()
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigError(f'{path}: "{where}": {first["msg"]}', hint=hint) from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {describe(error)}", hint=hint) from error
