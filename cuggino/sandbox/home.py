"""The home folder of the user as whom programs run."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path


def home_of(env: Mapping[str, str]) -> Path | None:
    """Return the home folder that a program with this environment has, or None without one."""
    name = env.get("HOME")
    if not name:
        with suppress(KeyError):  # a user without an entry, e.g. in a container
            name = pwd.getpwuid(os.getuid()).pw_dir
    folder = Path(name) if name else None
    if folder is None or not folder.is_absolute() or not folder.is_dir():
        return None
    resolved = folder.resolve()
    return resolved if resolved != Path("/") else None
