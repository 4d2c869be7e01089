"""The home folder of the user as whom programs run."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path


def home_of(env: Mapping[str, str]) -> Path | None:
    """Return the home folder of a program with this environment, or None without one."""
    name = env.get("HOME")
    if not name:
        with suppress(KeyError):  # a user without an entry, e.g. in a container
            name = pwd.getpwuid(os.getuid()).pw_dir
    if not name or not name.startswith("/") or not os.path.isdir(name):  # noqa: PTH112
        return None
    resolved = os.path.realpath(name)
    return Path(resolved) if resolved != "/" else None


def named_paths(names: Iterable[str], home: Path | None) -> tuple[Path, ...]:
    """Return the paths of a setting; `~` is the home folder, and counts only with one."""
    return tuple(
        home / path[2:] if home is not None and path.startswith("~") else Path(path)
        for path in names
        if home is not None or not path.startswith("~")
    )
