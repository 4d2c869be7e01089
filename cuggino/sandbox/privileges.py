"""Privileges of files: capabilities, which only root can give."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_CAPABILITIES = "security.capability"


def privileged_files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder that give capabilities to whoever runs them.

    Git's objects are passed over: nobody runs them.
    """
    for place, folders, names in os.walk(folder):
        if place.endswith("/.git"):
            folders[:] = [name for name in folders if name not in ("objects", "refs", "logs")]
        for name in names:
            path = Path(place, name)
            with suppress(OSError):
                if os.getxattr(path, _CAPABILITIES, follow_symlinks=False):
                    yield path


def drop_privileges(path: Path) -> None:
    """Take its capabilities from a file.

    Raises:
        OSError: they stay.
    """
    os.removexattr(path, _CAPABILITIES, follow_symlinks=False)
