"""Privileges of files: capabilities, and running as their owner or group."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

_CAPABILITIES = "security.capability"
_SET_ID = stat.S_ISUID | stat.S_ISGID


def privileged_files(
    folder: Path, *, since: float, exempt: Collection[Path] = ()
) -> Iterator[Path]:
    """Yield the files below a folder that were given privileges since then, in Unix seconds.

    Whoever runs such a file gets them: its capabilities, its owner (set-user-ID) or its group. The
    `exempt` folders are skipped, and git's objects, which are never run.
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
                status = os.lstat(file)
                if place not in moved and status.st_ctime < since:
                    continue
                if _is_set_id(status) or _CAPABILITIES in os.listxattr(file, follow_symlinks=False):
                    yield Path(file)


def _changed(path: str) -> float:
    return os.lstat(path).st_ctime


def _is_set_id(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and bool(status.st_mode & _SET_ID)


def drop_privileges(path: Path) -> None:
    """Remove the privileges of a file.

    Raises:
        OSError: they cannot be removed.
    """
    if _is_set_id(status := os.lstat(path)):
        path.chmod(stat.S_IMODE(status.st_mode) & ~_SET_ID)
    if _CAPABILITIES in os.listxattr(path, follow_symlinks=False):
        os.removexattr(path, _CAPABILITIES, follow_symlinks=False)
