"""Privileges of files: capabilities, which only root can give."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

_CAPABILITIES = "security.capability"


def privileged_files(
    folder: Path, *, since: float, exempt: Collection[Path] = ()
) -> Iterator[Path]:
    """Yield the files below a folder that were given capabilities since then, in Unix seconds.

    Whoever runs such a file gets them. The `exempt` folders are skipped, and git's objects, which
    are never run.
    """
    top = os.fspath(folder)
    passed = frozenset(map(os.fspath, exempt))
    moved: set[str] = set()
    for place, folders, names in os.walk(top):
        folders[:] = [name for name in folders if f"{place}/{name}" not in passed]
        if place.endswith("/.git"):
            folders[:] = [name for name in folders if name not in ("objects", "refs", "logs")]
        # A folder that was moved here has files that are older.
        if place.rpartition("/")[0] in moved or (place != top and _changed(place) >= since):
            moved.add(place)
        for name in names:
            file = f"{place}/{name}"
            with suppress(OSError):
                # Giving them changes the time of the inode, which no program can set.
                if place not in moved and _changed(file) < since:
                    continue
                if os.getxattr(file, _CAPABILITIES, follow_symlinks=False):
                    yield Path(file)


def _changed(path: str) -> float:
    return os.lstat(path).st_ctime


def drop_privileges(path: Path) -> None:
    """Remove the capabilities of a file.

    Raises:
        OSError: they cannot be removed.
    """
    os.removexattr(path, _CAPABILITIES, follow_symlinks=False)
