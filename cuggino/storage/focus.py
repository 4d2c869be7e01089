"""What a run works on and by: the focus, as a person names it, and the specifications."""

from __future__ import annotations

from pathlib import Path

from cuggino.errors import ConfigError

BIGGEST = 1024 * 1024
"""Characters of a file that an agent is told whole; more is in no model's reach."""


def read_focus(focus: str, folder: Path) -> str:
    """The focus as an agent gets it: a text as it is, `@path` as the path and the file's content.

    The path is relative to `folder`. It is read here rather than by the agent, so that it works
    with every agent and a missing file is known before anything starts.

    Raises:
        ConfigError: the focus is blank, or its file is missing, unreadable, too large or blank.
    """
    if not focus.strip():
        raise ConfigError("the focus is empty", hint="say what to work on: --focus TEXT or @FILE")
    if not focus.startswith("@"):
        return focus
    content = read_text_file(folder / focus[1:], what=f"--focus {focus}")
    return f"The file `{focus[1:]}`, which says:\n\n{content.strip()}"


def read_text_file(path: Path, *, what: str) -> str:
    """The text of a file that a person named; `what` names the option in the error."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            content = file.read(BIGGEST + 1)
    except OSError as error:
        raise ConfigError(
            f"{what}: {path} cannot be read: {error.strerror}", hint="check the path of the file"
        ) from error
    if len(content) > BIGGEST:
        raise ConfigError(
            f"{what}: {path} is too large to be told to an agent",
            hint="write down what to work on, and name the files with the rest",
        )
    if not content.strip():
        raise ConfigError(f"{what}: {path} is empty", hint="write down what to work on")
    return content


def check_specs(folder: Path) -> None:
    """Look whether the specifications are there, without which no review means anything.

    Raises:
        ConfigError: there is no such folder.
    """
    if not folder.is_dir():
        raise ConfigError(
            f"the specs folder {folder} does not exist",
            hint="write the specifications there, or set specsPath in .cuggino.json",
        )
