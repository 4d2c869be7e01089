"""The inputs of a run: the focus, as a person gives it, and the specifications."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from cuggino.errors import ConfigError

_WRITE_SPECS = "write the specifications there, or set specsPath in .cuggino.json"
BIGGEST = 1024 * 1024
"""Characters of a file that is put into a prompt."""


def read_focus(focus: str, folder: Path) -> str:
    """Return the focus for the agents, with the content of the file for `@path`.

    The path is relative to `folder`. The file is read here rather than by the agent, so that this
    works with every agent, and a missing file is found before anything starts.

    Raises:
        ConfigError: the focus is blank, or its file is missing, unreadable, too large or blank.
    """
    if not isinstance(focus, str):
        raise TypeError(f"focus must be a string, not {type(focus).__name__}")
    if not focus.strip():
        raise ConfigError("the focus is empty", hint="say what to work on: a text, or @FILE")
    if not focus.startswith("@"):
        return focus
    return file_focus(focus[1:], read_text_file(folder / focus[1:], what=f"--focus {focus}"))


def file_focus(path: str | Path, content: str) -> str:
    """Return the focus for the agents that names a file and has its content."""
    return f"The file `{path}`, with this content:\n\n{content.strip()}"


def read_text_file(path: Path, *, what: str) -> str:
    """Return the text of a file that a person named; `what` names the option in errors."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            content = file.read(BIGGEST + 1)
    except OSError as error:
        raise ConfigError(
            f"{what}: {path} cannot be read: {error.strerror}", hint="check the path of the file"
        ) from error
    if len(content) > BIGGEST:
        raise ConfigError(
            f"{what}: {path} is too large for a prompt",
            hint="summarize it, and name the files with the details",
        )
    if not content.strip():
        raise ConfigError(f"{what}: {path} is empty", hint="describe what to work on")
    return content


def check_specs(folder: Path) -> None:
    """Check that the specifications exist, without which a review means nothing.

    Raises:
        ConfigError: there is no such folder.
    """
    if not folder.is_dir():
        state = what_is_there(folder)
        raise ConfigError(f"the specs folder {folder} {state}", hint=_WRITE_SPECS)


def what_is_there(folder: Path) -> str:
    """Return why a path that should be a folder is none: what stands there instead."""
    if folder.exists():
        return "is not a folder"
    return "is a link to a missing folder" if folder.is_symlink() else "does not exist"


def check_specs_not_empty(folder: Path) -> None:
    """Check that there is something to build, and to review against.

    Raises:
        ConfigError: the folder cannot be read, or holds no specification.
    """
    if not os.access(folder, os.R_OK | os.X_OK):
        raise ConfigError(
            f"the specs folder {folder} cannot be read",
            hint="check the owner and permissions of the folder",
        )
    if not holds_specs(folder):
        raise ConfigError(f"the specs folder {folder} holds no specification", hint=_WRITE_SPECS)


def holds_specs(folder: Path) -> bool:
    """Return whether a file below the folder is neither empty nor hidden, such as `.gitkeep`."""
    for place, folders, files in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            with suppress(OSError):
                if not name.startswith(".") and Path(place, name).stat().st_size > 0:
                    return True
    return False
