"""The `.cuggino` folder of a project (CUG-070, CUG-073, CUG-111)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path

from uuid6 import uuid7

from cuggino.errors import StorageError
from cuggino.storage.atomic import storing, write_atomic
from cuggino.storage.issues import Issue, read_issues, remember
from cuggino.storage.lock import LockOwner, WorkspaceLock
from cuggino.storage.moving import move_to_archive
from cuggino.storage.session import Session

WORKSPACE_FOLDER = ".cuggino"
_IGNORED = """# What belongs to runs of cuggino on this machine.
/agent.sha256
/journal/
/lock
/lock.json
/locks/
/unverified-jobs.json
/wip/
"""
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Workspace:
    """The folders and files of cuggino in the project at `root`. Making one touches no disk."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / WORKSPACE_FOLDER
        self.wip = self.folder / "wip"
        self.spec_issues = self.folder / "spec-issues"
        self.backlog = self.folder / "backlog"
        self.tbd = self.folder / "tbd"
        self.archive = self.folder / "archive"
        """Where finished items and settled issues go; nothing in it is read again."""
        self.parked = self.folder / "parked"
        """Where items go that failed too often, until a person retries them."""
        self.journal = self.folder / "journal"
        """What happened in each run, a file a run."""
        self.memory = self.folder / "memory.md"
        """What a person has dismissed, for the audit agent to know."""
        self.unverified_jobs = self.folder / "unverified-jobs.json"
        """Which jobs of the plan/build loop no run has verified."""
        self.prompts = self.folder / "prompts"
        self._lock = WorkspaceLock(self.folder)

    def open(self) -> None:
        """Make the folders that are missing, and keep what belongs to runs out of commits.

        Those are the commits of agents and of people; the loops leave the whole folder out.
        """
        for folder in (
            self.wip,
            self.spec_issues,
            self.backlog,
            self.tbd,
            self.archive,
            self.parked,
        ):
            with storing("make folder", folder):
                folder.mkdir(parents=True, exist_ok=True)
        self._ignore_run_files()

    def _ignore_run_files(self) -> None:
        """A `.gitignore` that is there is somebody's, and stays as it is."""
        ignore = self.folder / ".gitignore"
        with storing("ignore run files", ignore):
            if not ignore.exists():
                write_atomic(ignore, _IGNORED)

    def lock(
        self, *, command: str = "cuggino", since: datetime | None = None
    ) -> AbstractContextManager[None]:
        """Hold the workspace; the system frees it when the process dies, however it dies.

        `command` and `since` (now, if absent) are what others are told who want it too. Sessions
        of this same object may be held within it.

        Raises:
            WorkspaceLocked: somebody holds it, on entering.
        """
        return self._lock.hold(command=command, since=since)

    def owner(self) -> LockOwner | None:
        """Who holds the workspace, or held it and was killed; None when nobody does."""
        return self._lock.owner()

    @contextmanager
    def session(
        self,
        *,
        command: str = "cuggino run",
        since: datetime | None = None,
        session_id: str | None = None,
    ) -> Iterator[Session]:
        """A session in a locked workspace: a new one, or that of an unfinished run by its id.

        Its files are removed at the end, however it comes about, unless `keep` of the session is
        set by then. Within `lock` of this same object it is a part of it, and does not lock again.

        Raises:
            WorkspaceLocked: somebody else holds it, or another session of this object is held.
        """
        with self._lock.hold_for_session(command=command, since=since):
            self.open()
            session = Session(session_id or new_run_id(), self.wip)
            session.create()
            try:
                yield session
            finally:
                if not session.keep:
                    session.remove()

    def sessions(self) -> list[str]:
        """The ids of the sessions of which there are files: of unfinished runs, and left-overs."""
        try:
            names = {entry.name.partition(".")[0] for entry in self.wip.iterdir()}
        except OSError:
            return []
        return sorted(name for name in names if _ID.fullmatch(name))

    def remove_session(self, session_id: str) -> None:
        """Remove the files of a run that nobody will go on with."""
        Session(session_id, self.wip).remove()

    def write_spec_issue(self, content: str, *, name: str | None = None) -> str:
        """Store a problem of the specification for a person; gives the name of its file.

        With a `name` (from `new_name`) it can be repeated: the same file is written again.
        """
        return self._write(self.spec_issues, content, name)

    def write_tbd_item(self, content: str, *, name: str | None = None) -> str:
        """Store a finding for a person to decide on; gives the name of its file."""
        return self._write(self.tbd, content, name)

    @staticmethod
    def new_name() -> str:
        """A name for a file of an issue; names sort by time."""
        return f"{uuid7()}.md"

    def issues(self) -> list[Issue]:
        """What waits for a person: the spec issues, then the findings, each in order of time."""
        return [*read_issues(self.spec_issues, "spec-issue"), *read_issues(self.tbd, "tbd")]

    def resolve(self, issue: Issue) -> str:
        """Move the issue to the archive, as `resolved`; gives its name there.

        Raises:
            StorageError: it is gone, or could not be moved.
        """
        return self._settle(issue, "resolved")

    def dismiss(self, issue: Issue, reason: str, *, at: datetime) -> str:
        """Note the issue and the reason in the memory, and archive it as `dismissed`.

        Raises:
            StorageError: it is gone, could not be noted, or could not be moved.
        """
        if not issue.path.exists():
            raise StorageError("dismiss", f"{issue.path} is gone")
        with storing("dismiss", self.memory):
            remember(self.memory, issue, reason, at=at)
        return self._settle(issue, "dismissed")

    def read_memory(self) -> str:
        """What was dismissed so far; empty without anything."""
        with storing("read memory", self.memory):
            if not self.memory.exists():
                return ""
            return self.memory.read_text(encoding="utf-8", errors="replace")

    def _settle(self, issue: Issue, outcome: str) -> str:
        try:
            return move_to_archive(issue.path, self.archive, outcome).name
        except FileNotFoundError as error:
            raise StorageError(outcome, f"{issue.path} is gone") from error

    def _write(self, folder: Path, content: str, name: str | None) -> str:
        path = folder / (name or self.new_name())
        with storing(f"write {folder.name}", path):
            folder.mkdir(parents=True, exist_ok=True)
            write_atomic(path, content)
        return path.name


def new_run_id() -> str:
    """An id for a run; ids sort by time."""
    return str(uuid7())
