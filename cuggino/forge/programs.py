"""The CLIs of the forges: their versions and logins, read without a network."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from cuggino.config import ForgeKind
from cuggino.errors import ConfigError, ProcessError
from cuggino.forge.api import INSTALLING, PROGRAMS
from cuggino.processes import run_bounded

OLDEST: Mapping[ForgeKind, tuple[int, int]] = {"github": (2, 23), "gitlab": (1, 53)}
"""The oldest versions that are tested."""

_ANSWER_S = 20.0


def check_program(kind: ForgeKind) -> None:
    """Check that the program of a forge is installed.

    Raises:
        ConfigError: the program is missing.
    """
    if shutil.which(PROGRAMS[kind]) is None:
        raise ConfigError(f"{PROGRAMS[kind]} is not installed", hint=INSTALLING[kind])


def program_version(kind: ForgeKind) -> tuple[int, ...] | None:
    """Return the version of the program, or None if unknown."""
    output = _output([PROGRAMS[kind], "--version"]) or ""
    found = re.search(r"\b(\d+)\.(\d+)(?:\.(\d+))?", output)
    return tuple(int(part) for part in found.groups() if part is not None) if found else None


def has_login(kind: ForgeKind, host: str) -> bool:
    """Return whether the program has a token for the host on this machine."""
    if kind == "github":
        return bool(_output(["gh", "auth", "token", "--hostname", host]))
    return bool(_output(["glab", "config", "get", "token", "--host", host]))


def _output(argv: list[str]) -> str | None:
    """Return what a command prints; None if it fails."""
    env = {**os.environ, "NO_COLOR": "1", "GH_NO_UPDATE_NOTIFIER": "1"}
    try:
        done = run_bounded(argv, seconds=_ANSWER_S, cwd=Path("/"), env=env)
    except ProcessError:
        return None
    return done.text.strip() if done.code == 0 else None
