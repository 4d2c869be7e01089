"""The configuration that a project has already, whatever state it is in."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cuggino.config import CONFIG_FILE, Config, config_path, load_config
from cuggino.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Existing:
    """What `.cuggino.json` says, and what is to be kept of it."""

    config: Config
    """The settings of the file; all defaults when there are none to be had."""
    new: bool
    """There are no settings yet: no file, an empty one, or one that cannot be used."""
    problem: ConfigError | None = None
    """Why the file cannot be used."""
    content: bytes = b""
    """What is in the file."""


def read_existing(folder: Path) -> Existing:
    """The configuration of the project in `folder`; one that cannot be used is no error.

    Raises:
        ConfigError: the file cannot even be read, so it could not be kept.
    """
    problem = None
    config = Config()
    try:
        config = load_config(folder)
    except ConfigError as error:
        problem = error
    try:
        content = config_path(folder).read_bytes()
    except FileNotFoundError:
        content = b""
    except OSError as error:
        raise problem or ConfigError(f"{CONFIG_FILE} cannot be read: {error.strerror}") from error
    new = problem is not None or not content.strip()
    return Existing(config=config, new=new, problem=problem, content=content)


def keep_beside(folder: Path, content: bytes) -> Path:
    """Store the content beside the configuration, under a name that nothing has yet.

    That is `.cuggino.json.bak`, else `.bak.1`, `.bak.2` and so on, with the permissions of the
    configuration itself.

    Raises:
        ConfigError: it cannot be stored.
    """
    number = 0
    while True:
        path = folder / (f"{CONFIG_FILE}.bak" + (f".{number}" if number else ""))
        try:
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
            with open(os.open(path, flags, 0o600), "wb") as file:  # noqa: PTH123
                file.write(content)
            with suppress(FileNotFoundError):
                shutil.copymode(config_path(folder), path)
        except FileExistsError:
            number += 1
        except OSError as error:
            raise ConfigError(
                f"{path.name} cannot be written in {folder}: {error.strerror}",
                hint="check the permissions of the folder",
            ) from error
        else:
            return path
