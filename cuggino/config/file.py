"""Reading and writing `.cuggino.json` (CUG-070 to CUG-074)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cuggino.config.model import Config
from cuggino.edited_files import (
    CORRECT,
    SCHEMA,
    InvalidFile,
    SettingsFile,
    read_settings,
    validated,
)
from cuggino.errors import ConfigError
from cuggino.files import read_json_object, render_json, write_atomic

CONFIG_FILE = ".cuggino.json"
AGENT_FILE = ".autonoe/agent.json"
"""The path of what a project adds to the settings of `cuggino deliver`."""
PLAN_BUILD_CONFIG_FILE = ".lopen/loop-config.json"
"""The path of the settings of the plan/build loop, in a project and in a user's home."""

_REMOVED = {"hookTimeout": "a hook's command may take 60 seconds"}
"""Keys of older versions, with what holds without them."""


def config_path(folder: Path) -> Path:
    """Return the path of the configuration of the project in `folder`."""
    return folder / CONFIG_FILE


def load_config(folder: Path) -> Config:
    """Return the configuration of the project in `folder`; all defaults without a file.

    Raises:
        ConfigError: the file is unusable: it cannot be read, is empty or not JSON (with line and
            column), or has an unknown key (with the nearest valid one) or an invalid value.
    """
    hint = "correct the file, or write a new one with `cuggino setup`"
    file = SettingsFile(config_path(folder), CONFIG_FILE, hint)
    return read_settings(Config, file, prepare=_without_removed)[0]


def _without_removed(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the settings; a key of an older version is an error that says what holds now.

    Raises:
        InvalidFile: there is one.
    """
    for key, now in _REMOVED.items():
        if key in raw:
            raise InvalidFile(f'"{key}" was removed: {now}', "delete the key")
    return raw


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an `OSError` into a `ConfigError` that names the file."""
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written: {error.strerror or error}",
            hint="check the permissions of the folder",
        ) from error


def write_object(path: Path, raw: Mapping[str, Any]) -> None:
    """Write the object as indented JSON with a final newline; links and permissions are kept.

    Raises:
        ConfigError: the file cannot be written and is unchanged.
    """
    with writing(path):
        write_atomic(path, render_json(raw) + "\n", follow_links=True)


def parse_config(raw: Mapping[str, Any], *, where: str = CONFIG_FILE) -> Config:
    """Return the configuration from its JSON object; raise `ConfigError` with one sentence."""
    try:
        return validated(Config, raw)
    except InvalidFile as error:
        is_file = where == CONFIG_FILE or error.hint != CORRECT
        hint = error.hint if is_file else f"correct the options, or {CONFIG_FILE}"
        raise ConfigError(f"{where}: {error}", hint=hint) from error


def changed_config(config: Config, values: Mapping[str, Any]) -> Config:
    """Return the configuration with these values, by field name: the layer above the file.

    Raises:
        ConfigError: an invalid value.
    """
    # Without defaults, which need no check. The agent counts as given: `agentPath` is its path.
    given = {"agent": config.agent, **config.model_dump(by_alias=True, exclude_unset=True)}
    changes = {Config.model_fields[name].alias or name: value for name, value in values.items()}
    return parse_config({**given, **changes}, where="options")


def save_config(folder: Path, config: Config) -> None:
    """Write the configuration as indented JSON with a final newline, without unset values.

    Six keys are always written, others only if they differ from the default. `$schema` is kept, and
    so are a link and the file's permissions, as the file may contain a notifier's password.

    Raises:
        ConfigError: the file cannot be written and is unchanged.
    """
    always = {"specs_path", "max_iterations", "setup_command", "check_command", "commit", "audit"}
    default = Config()
    values = config.model_dump(by_alias=True)
    kept = {
        field.alias or name: _as_typed(values[field.alias or name])
        for name, field in Config.model_fields.items()
        if (name in always and getattr(config, name) is not None)
        or getattr(config, name) != getattr(default, name)
    }
    write_object(config_path(folder), {**_schema_of(folder), **kept})


def _as_typed(value: object) -> object:
    """Return a whole number as one: `30`, not `30.0`."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _schema_of(folder: Path) -> dict[str, object]:
    """Return the schema that the present file names, if any."""
    try:
        raw = read_json_object(config_path(folder))
    except (OSError, ValueError):
        return {}
    return {SCHEMA: raw[SCHEMA]} if SCHEMA in raw else {}
