"""Temporary files and folders of a session, which nothing survives for long."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path

from cuggino.errors import StorageError
from cuggino.files import temporary_folder

PREFIX = "cuggino-session-"
_NEW_S = 60.0
"""Seconds during which the process that created a new file may not have locked it yet."""


class Session(ExitStack):
    """The resources of a session, with the private files that its program must access."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[Path] = []
        self.written: list[Path] = []


def private_file(
    text: str, stack: ExitStack, *, suffix: str = ".md", is_written: bool = False
) -> Path:
    """Write the text to a new temporary file that only its user can read.

    The file is removed when the stack is closed, or by a later process if this one is killed.
    Command lines are visible to every user of the machine, and may be shorter than a prompt. In a
    sandbox, the program can read it, and write it if `is_written`.

    Raises:
        StorageError: it cannot be written.
    """
    try:
        _remove_abandoned()
        handle, name = tempfile.mkstemp(prefix=PREFIX, suffix=suffix)
        path = Path(name)
        stack.callback(path.unlink, missing_ok=True)
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        _hold(path, stack)
    except OSError as error:
        raise StorageError(
            "write private file",
            f"cannot write a temporary file for the agent: {error.strerror or error}",
            hint="check the folder for temporary files (TMPDIR)",
        ) from error
    if isinstance(stack, Session):
        (stack.written if is_written else stack.read).append(path)
    return path


def private_folder(stack: ExitStack) -> Path:
    """Create a temporary folder that only its user can read, removed as a `private_file`.

    In a sandbox, the program can write it.

    Raises:
        StorageError: it cannot be created.
    """
    try:
        _remove_abandoned()
        path = Path(os.path.realpath(tempfile.mkdtemp(prefix=PREFIX)))
    except OSError as error:
        raise StorageError(
            "create private folder",
            f"cannot create a temporary folder for the agent: {error.strerror or error}",
            hint="check the folder for temporary files (TMPDIR)",
        ) from error
    stack.callback(shutil.rmtree, path, ignore_errors=True)
    _hold(path, stack)
    if isinstance(stack, Session):
        stack.written.append(path)
    return path


def _hold(path: Path, stack: ExitStack) -> None:
    """Lock the path until the stack is closed or this process dies; children do not inherit it."""
    held = os.open(path, os.O_RDONLY)
    stack.callback(os.close, held)
    with suppress(OSError):  # a file system without locks
        fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)


def remove_abandoned() -> None:
    """Remove files that this user's killed processes left at least a minute ago."""
    now = time.time()
    for path in Path(temporary_folder()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            status = path.lstat()
            if status.st_uid == os.getuid() and now - status.st_mtime > _NEW_S:
                _remove_unheld(path)


_remove_abandoned = cache(remove_abandoned)
"""Runs `remove_abandoned` once per process, for sessions without a run."""


def _remove_unheld(path: Path) -> None:
    """Remove the path; raise OSError if a process holds it or it is gone."""
    found = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
    finally:
        os.close(found)
