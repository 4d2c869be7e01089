"""The `.cuggino` folder of a project (CUG-070, CUG-073, CUG-111)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout
from uuid6 import uuid7

from cuggino.errors import WorkspaceLocked
from cuggino.storage.atomic import storing, write_atomic
from cuggino.storage.session import Session

WORKSPACE_FOLDER = ".cuggino"


class Workspace:
    """The folders and files of cuggino in the project at `root`. Making one touches no disk."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / WORKSPACE_FOLDER
        self.wip = self.folder / "wip"
        self.spec_issues = self.folder / "spec-issues"
        self.backlog = self.folder / "backlog"
        self.tbd = self.folder / "tbd"
        self.prompts = self.folder / "prompts"

    def open(self) -> None:
        """Make the folders that are missing."""
        for folder in (self.wip, self.spec_issues, self.backlog, self.tbd):
            with storing("make folder", folder):
                folder.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the workspace; the system frees it when the process dies, however it dies.

        Raises:
            WorkspaceLocked: another process holds it.
        """
        with storing("lock workspace", self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / "lock", thread_local=False)
            # Beside the lock, as the lock library may empty its own file.
            owner = self.folder / "lock.pid"
            try:
                lock.acquire(timeout=0)
            except Timeout:
                raise WorkspaceLocked(str(self.folder), _read_pid(owner)) from None
        try:
            with storing("lock workspace", owner):
                owner.write_text(f"{os.getpid()}\n", encoding="utf-8")
            yield
        finally:
            with suppress(OSError):
                owner.unlink(missing_ok=True)
            lock.release()

    @contextmanager
    def session(self) -> Iterator[Session]:
        """A new session in a locked workspace; its files are removed at the end, whatever it is."""
        with self.lock():
            self.open()
            session = Session(str(uuid7()), self.wip)
            session.create()
            try:
                yield session
            finally:
                session.remove()

    def write_spec_issue(self, content: str) -> str:
        """Store a problem of the specification for a person; gives the name of its file."""
        return self._write_new(self.spec_issues, content)

    def write_tbd_item(self, content: str) -> str:
        """Store a finding of the audit for a person; gives the name of its file."""
        return self._write_new(self.tbd, content)

    def _write_new(self, folder: Path, content: str) -> str:
        path = folder / f"{uuid7()}.md"
        with storing(f"write {folder.name}", path):
            folder.mkdir(parents=True, exist_ok=True)
            write_atomic(path, content)
        return path.name


def _read_pid(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
