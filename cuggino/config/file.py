"""`.cuggino.json`: how it is read and written (CUG-070 to CUG-074)."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cuggino.config.agents import place_of, words_of
from cuggino.config.json_object import write_object
from cuggino.config.model import Config
from cuggino.errors import ConfigError

CONFIG_FILE = ".cuggino.json"


def config_path(folder: Path) -> Path:
    """Where the configuration of the project in `folder` is."""
    return folder / CONFIG_FILE


def load_config(folder: Path) -> Config:
    """The configuration of the project in `folder`; all defaults without a file or an empty one.

    Raises:
        ConfigError: the file cannot be read, is not JSON (with line and column), holds an unknown
            key (with the nearest valid one) or a value of a wrong type.
    """
    path = config_path(folder)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Config()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{CONFIG_FILE} is not UTF-8 (byte {error.start})", hint="save the file as UTF-8"
        ) from error
    except OSError as error:
        raise ConfigError(f"{CONFIG_FILE} cannot be read: {error.strerror}") from error
    text = text.removeprefix("\ufeff")
    if not text.strip():
        return Config()
    try:
        raw = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{CONFIG_FILE} line {error.lineno} column {error.colno}: not valid JSON ({error.msg})",
            hint="correct the file, or write a new one with `cuggino setup`",
        ) from error
    except (ValueError, RecursionError) as error:  # an endless number, a bottomless nesting
        raise ConfigError(
            f"{CONFIG_FILE}: not usable JSON ({error})",
            hint="correct the file, or write a new one with `cuggino setup`",
        ) from error
    if not isinstance(raw, dict):
        raise ConfigError(
            f"{CONFIG_FILE} holds {_json_type(raw)}, but must hold an object",
            hint="write a new one with `cuggino setup`",
        )
    return parse_config(raw)


def parse_config(raw: dict[str, Any], *, where: str = CONFIG_FILE) -> Config:
    """The configuration from its JSON object; raises `ConfigError` with one sentence."""
    known = {field.alias or name: name for name, field in Config.model_fields.items()}
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
"""What belongs there, by the kind of error."""


def _nested(error: Mapping[str, Any], where: str) -> ConfigError:
    """What is wrong within a key that holds more than one value."""
    if (words := words_of(error)) is not None:
        return ConfigError(f"{where}: {words[0]}", hint=words[1])
    message = error["msg"].removeprefix("Value error, ")
    return ConfigError(
        f'{where}: "{place_of(error)}" is {_shown(error["input"])}: {message}',
        hint=_WRITE.get(error["type"], "correct the value"),
    )


def changed_config(config: Config, values: dict[str, Any]) -> Config:
    """The configuration with these values, by their names in Python, in the place of its own.

    Raises:
        ConfigError: a value cannot be used.
    """
    return parse_config({**config.model_dump(by_alias=True), **_aliased(values)}, where="options")


def _aliased(values: dict[str, Any]) -> dict[str, Any]:
    return {Config.model_fields[name].alias or name: value for name, value in values.items()}


def save_config(folder: Path, config: Config) -> None:
    """Write the configuration as indented JSON with a final newline; absent values are left out.

    The six keys of the original are always written, others only where they differ from the default.
    A link stays one, and the file keeps its permissions: it may hold the password of a notifier.

    Raises:
        ConfigError: it cannot be written; then it stays as it is.
    """
    always = {"specs_path", "max_iterations", "setup_command", "check_command", "commit", "audit"}
    default = Config()
    values = config.model_dump()
    kept = {
        field.alias or name: values[name]
        for name, field in Config.model_fields.items()
        if values[name] is not None
        and (name in always or getattr(config, name) != getattr(default, name))
    }
    write_object(config_path(folder), kept)


def _json_type(value: object) -> str:
    match value:
        case list():
            return "a list"
        case str():
            return "a text"
        case None:
            return "null"
        case bool():
            return "a boolean"
        case _:
            return "a number"


def _shown(value: object) -> str:
    # Of a URL the scheme alone: the rest may hold a password.
    text = re.sub(r'://[^"]+', "://…", json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 60 else text[:57] + "..."
