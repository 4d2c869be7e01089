"""Stale lock files of a killed git."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import psutil


def remove_stale_locks(locks: Iterable[Path], top: Path, *, since: datetime) -> list[Path]:
    """Remove the stale ones of these lock files; return them.

    A lock is stale when it was created after `since` and no process on this machine can own it:
    none has the file open, and none named git works in or below `top`, names it in its arguments,
    or hides where it works. In doubt the lock stays, and git itself explains what to do.
    """
    found = [lock for lock in locks if _made_after(lock, since)]
    if not found or any(_may_hold(process, found, top) for process in psutil.process_iter()):
        return []
    removed = []
    for lock in found:
        with suppress(OSError):
            lock.unlink()
            removed.append(lock)
    return removed


def _made_after(lock: Path, since: datetime) -> bool:
    try:
        return lock.lstat().st_mtime >= since.timestamp()
    except OSError:
        return False


def _may_hold(process: psutil.Process, locks: list[Path], top: Path) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return any(file in locks for file in _open_files(process)) or (
            _is_git(process) and any(_is_within(place, top) for place in _places(process))
        )
    except psutil.NoSuchProcess:
        return False
    except (psutil.Error, OSError):
        return True


def _open_files(process: psutil.Process) -> Iterator[Path]:
    with suppress(psutil.AccessDenied):  # another user's process could hold it only through git
        yield from (Path(file.path) for file in process.open_files())


def _is_git(process: psutil.Process) -> bool:
    return process.name().startswith("git")


def _places(process: psutil.Process) -> Iterator[Path]:
    yield Path(process.cwd())
    for word in process.cmdline():
        yield Path(word.rpartition("=")[2])


def _is_within(place: Path, top: Path) -> bool:
    with suppress(OSError, ValueError):
        return place.is_absolute() and place.resolve().is_relative_to(top)
    return False
