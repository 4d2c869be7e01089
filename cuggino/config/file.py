"""Reading and writing `.cuggino.json` (CUG-070 to CUG-074)."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cuggino.config.agents import place_of, words_of
from cuggino.config.model import Config
from cuggino.errors import ConfigError
from cuggino.files import describe, read_json_object, render_json, write_atomic

CONFIG_FILE = ".cuggino.json"
AGENT_FILE = ".autonoe/agent.json"
"""The path of what a project adds to the settings of `cuggino deliver`."""
PLAN_BUILD_CONFIG_FILE = ".lopen/loop-config.json"
"""The path of the settings of the plan/build loop, in a project and in a user's home."""
_SCHEMA = "$schema"
"""A key for editors, which name the schema that they check the file by."""


def config_path(folder: Path) -> Path:
    """Return the path of the configuration of the project in `folder`."""
    return folder / CONFIG_FILE


def load_config(folder: Path) -> Config:
    """Return the configuration of the project in `folder`; all defaults if missing or empty.

    Raises:
        ConfigError: the file cannot be read, is not JSON (with line and column), or has an unknown
            key (with the nearest valid one) or an invalid value.
    """
    try:
        raw = read_json_object(config_path(folder), may_be_blank=True)
    except FileNotFoundError:
        return Config()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{CONFIG_FILE}: {describe(error)}",
            hint="correct the file, or write a new one with `cuggino setup`",
        ) from error
    return parse_config(raw)


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


def parse_config(raw: dict[str, Any], *, where: str = CONFIG_FILE) -> Config:
    """Return the configuration from its JSON object; raise `ConfigError` with one sentence."""
    known = {field.alias or name: name for name, field in Config.model_fields.items()}
    raw = {key: value for key, value in raw.items() if key != _SCHEMA}
    for key in raw:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            raise ConfigError(
                f'{where}: unknown key "{key}"',
                hint=f'did you mean "{near[0]}"?' if near else "valid keys: " + ", ".join(known),
            )
    try:
        return Config.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        message = first["msg"].removeprefix("Value error, ")
        if not first["loc"]:
            raise ConfigError(f"{where}: {message}") from error
        key = str(first["loc"][0])
        if key == "acp":
            raise ConfigError(
                f'{where}: "{place_of(first)}": {message}',
                hint='define a program as {"mine": {"command": ["my-agent", "--acp"]}}',
            ) from error
        if key in _NESTED:
            raise _nested(first, where) from error
        raise ConfigError(
            f'{where}: "{key}" is {_shown(raw.get(key))}: {message}',
            hint="correct the value, or write a new file with `cuggino setup`",
        ) from error


_NESTED = ("agents", "fallback")
_WRITE = {
    "dict_type": 'write an object, such as {"reviewing": "claude"}',
    "list_type": 'write a list, such as ["claude"]',
}
"""Advice by the type of error."""


def _nested(error: Mapping[str, Any], where: str) -> ConfigError:
    """Return the error for a value inside `agents` or `fallback`."""
    if (words := words_of(error)) is not None:
        return ConfigError(f"{where}: {words[0]}", hint=words[1])
    message = error["msg"].removeprefix("Value error, ")
    return ConfigError(
        f'{where}: "{place_of(error)}" is {_shown(error["input"])}: {message}',
        hint=_WRITE.get(error["type"], "correct the value"),
    )


def changed_config(config: Config, values: dict[str, Any]) -> Config:
    """Return the configuration with these values, by field name.

    Raises:
        ConfigError: an invalid value.
    """
    # Without defaults, which need no check. The agent counts as given: `agentPath` is its path.
    given = {"agent": config.agent, **config.model_dump(by_alias=True, exclude_unset=True)}
    return parse_config({**given, **_aliased(values)}, where="options")


def _aliased(values: dict[str, Any]) -> dict[str, Any]:
    return {Config.model_fields[name].alias or name: value for name, value in values.items()}


def save_config(folder: Path, config: Config) -> None:
    """Write the configuration as indented JSON with a final newline, without unset values.

    Six keys are always written, others only if they differ from the default. `$schema` is kept, and
    so are a link and the file's permissions, as the file may contain a notifier's password.

    Raises:
        ConfigError: the file cannot be written and is unchanged.
    """
    always = {"specs_path", "max_iterations", "setup_command", "check_command", "commit", "audit"}
    default = Config()
    values = config.model_dump()
    kept = {
        field.alias or name: values[name]
        for name, field in Config.model_fields.items()
        if (name in always and values[name] is not None)
        or getattr(config, name) != getattr(default, name)
    }
    write_object(config_path(folder), {**_schema_of(folder), **kept})


def _schema_of(folder: Path) -> dict[str, object]:
    """Return the schema that the present file names, if any."""
    try:
        raw = read_json_object(config_path(folder), may_be_blank=True)
    except (OSError, ValueError):
        return {}
    return {_SCHEMA: raw[_SCHEMA]} if _SCHEMA in raw else {}


def _shown(value: object) -> str:
    # Show only the scheme of a URL: the rest may contain a password.
    text = re.sub(r'://[^"]+', "://…", json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 60 else text[:57] + "..."
