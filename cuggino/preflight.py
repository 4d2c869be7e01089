"""Whether a loop can work in a folder, known before anything is started or written."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from cuggino.agents import LlmAgent
from cuggino.config import CONFIG_FILE, Config
from cuggino.errors import ConfigError
from cuggino.storage import WORKSPACE_FOLDER


def check_project(cwd: Path, config: Config, agent: LlmAgent) -> None:
    """Whether the coding loop can work in this folder.

    Raises:
        ConfigError: the specs folder is missing, there is no repository while `commit` is on, git
            is not installed, or the workspace folder cannot be written.
        AgentNotFound: the agent's program is missing or too old.
    """
    specs = cwd / config.specs_path
    if not specs.is_dir():
        raise ConfigError(
            f"the specs folder {specs} does not exist",
            hint=f"write the specifications there, or set specsPath in {CONFIG_FILE}",
        )
    if config.commit:
        if specs.resolve() == cwd.resolve():
            raise ConfigError(
                "specsPath is the project itself, and specs are never committed, but commit is on",
                hint=f"give the specifications a folder of their own in {CONFIG_FILE}",
            )
        _check_repository(cwd)
    agent.check()
    check_writable(cwd)


def check_writable(cwd: Path) -> None:
    """Whether the workspace of the project can be made and written.

    Raises:
        ConfigError: it cannot.
    """
    place = cwd / WORKSPACE_FOLDER
    existing = place if place.exists() else cwd
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise ConfigError(
            f"{existing} cannot be written", hint="check the owner and permissions of the folder"
        )


def _check_repository(cwd: Path) -> None:
    from cuggino.sources.git import repository_state

    hint = f'run `git init`, or set "commit" to false in {CONFIG_FILE}'
    if shutil.which("git") is None:
        raise ConfigError("git is not installed, but commit is on", hint=hint)
    if repository_state(cwd) is None:
        raise ConfigError(f"{cwd} is in no git repository, but commit is on", hint=hint)
