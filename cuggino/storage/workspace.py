"""The `.cuggino` folder of a project (CUG-070, CUG-073, CUG-111)."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Literal

from cuggino.domain import split_front_matter
from cuggino.errors import ConfigError, StorageError
from cuggino.files import is_linked, read_regular, storing, write_atomic
from cuggino.storage.ids import new_id
from cuggino.storage.journal import has_only_journals
from cuggino.storage.lock import LockOwner, WorkspaceLock
from cuggino.storage.moving import move_to_archive, visible_entries
from cuggino.storage.session import Session

WORKSPACE_FOLDER = ".cuggino"
_IGNORED = """# What belongs to runs of cuggino on this machine.
/agent.sha256
/attempt.json
/browser/
/control/
/digests/
/flakes.json
/journal/
/lock
/lock.json
/locks/
/origins/
/proposals/
/setup.sha256
/snapshots/
/unverified-jobs.json
/wip/
"""
_AT_HOME = (
    *("spec_issues", "backlog", "tbd", "archive", "parked"),
    *("control", "flakes", "journal", "memory", "origins", "prompts", "proposals", "_setup"),
)
"""The folders and files of a project that its slots share."""
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Workspace:
    """The folders and files of cuggino in the project at `root`.

    Creating one does not touch the disk.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / WORKSPACE_FOLDER
        self.wip = self.folder / "wip"
        self.spec_issues = self.folder / "spec-issues"
        self.backlog = self.folder / "backlog"
        self.tbd = self.folder / "tbd"
        self.archive = self.folder / "archive"
        """Finished items and resolved issues; never read again."""
        self.parked = self.folder / "parked"
        """Items that failed too often, until a person retries them."""
        self.control = self.folder / "control"
        """A person's commands to the run that holds the workspace."""
        self.journal = self.folder / "journal"
        """The journals, one file per run."""
        self.origins = self.folder / "origins"
        """The origins of imported items; see `Origins`."""
        self.proposals = self.folder / "proposals"
        """The branches and pull requests of items; see `Proposals`."""
        self.snapshots = self.folder / "snapshots"
        """The private index of the snapshots of the project."""
        self.memory = self.folder / "memory.md"
        """Dismissed findings, for the audit agent."""
        self.unverified_jobs = self.folder / "unverified-jobs.json"
        """The jobs of the plan/build loop that no run has verified."""
        self.flakes = self.folder / "flakes.json"
        """The flaky tests of the project's check."""
        self.prompts = self.folder / "prompts"
        self._setup = self.folder / "setup.sha256"
        self._lock = WorkspaceLock(self.folder)

    def desk(self, folder: Path) -> Workspace:
        """Return the workspace of a slot in `folder`, where an item of this one is worked on.

        In the slot are the work in progress, the lock and the snapshots. All else is this
        workspace's: journals, items, issues, memory, prompts, control, and whether the setup
        command has succeeded, as a new slot has what agents have landed.
        """
        desk = Workspace(folder)
        for name in _AT_HOME:
            setattr(desk, name, getattr(self, name))
        return desk

    def with_journals(self, folder: Path) -> Workspace:
        """Return this workspace with the journals of its runs in another folder."""
        other = copy(self)
        other.journal = folder
        return other

    def open(self) -> None:
        """Create the missing folders, and keep files of runs out of commits.

        The loops leave the whole folder out of their commits; this is for those of agents and
        people.

        Raises:
            ConfigError: a link leads to the files of another program.
        """
        self._check_links()
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
        """Write a `.gitignore`, unless there is one."""
        ignore = self.folder / ".gitignore"
        with storing("ignore run files", ignore):
            if not ignore.exists():
                write_atomic(ignore, _IGNORED)

    def _check_links(self) -> None:
        """Check where the folder, and that of the journals, lead to if they are links.

        A user can keep them elsewhere, but a cloned project can also contain such links.
        """
        for folder, is_own in ((self.folder, _is_workspace), (self.journal, _has_only_journals)):
            if folder.is_symlink() and not is_own(folder):
                raise ConfigError(
                    f"{folder} is a link to {folder.readlink()}, which is not a folder of cuggino: "
                    "nothing is written there",
                    hint="remove the link, or let it lead to an empty folder",
                )

    def lock(
        self, *, command: str = "cuggino", since: datetime | None = None
    ) -> AbstractContextManager[None]:
        """Hold the workspace; the system releases it when the process dies.

        `command` and `since` (default: now) are shown to others who want the workspace. Sessions of
        this object may be held within it.

        Raises:
            ConfigError: a link leads to the files of another program.
            WorkspaceLocked: it is held elsewhere; raised on entering.
        """
        self._check_links()
        return self._lock.hold(command=command, since=since)

    def keep_lock(self) -> None:
        """Take the lock again if this object holds it and its file was removed meanwhile.

        Raises:
            WorkspaceLocked: another process holds the workspace by now.
        """
        self._lock.keep()

    def owner(self) -> LockOwner | None:
        """Return the process that holds the workspace, or held it and was killed, or None."""
        return self._lock.owner()

    def holder(self) -> LockOwner | None:
        """Return the process that holds the workspace now, or None."""
        return self._lock.holder()

    @contextmanager
    def session(
        self,
        *,
        command: str = "cuggino run",
        since: datetime | None = None,
        session_id: str | None = None,
    ) -> Iterator[Session]:
        """Hold a session in a locked workspace: a new one, or that of an unfinished run by its id.

        Its files are removed at the end, unless `keep` of the session is set. Within `lock` of this
        object, it does not lock again.

        Raises:
            ConfigError: a link leads to the files of another program.
            WorkspaceLocked: it is held elsewhere, or by another session of this object.
        """
        self._check_links()
        with self._lock.hold_for_session(command=command, since=since):
            self.open()
            session = Session(session_id or new_run_id(), self.wip)
            session.create()
            try:
                yield session
            finally:
                if not session.keep:
                    session.remove()

    def knows_setup(self, command: str) -> bool:
        """Return whether this setup command has succeeded in the project before."""
        try:
            return self._setup.read_text("ascii").strip() == _digest(command)
        except (OSError, ValueError):
            return False

    def remember_setup(self, command: str) -> None:
        with storing("note setup", self._setup):
            write_atomic(self._setup, _digest(command) + "\n")

    def sessions(self) -> list[str]:
        """Return the ids of the sessions with files: of unfinished runs, and leftovers.

        None if a link leads to them, as leftovers are removed.
        """
        if is_linked(self.wip):
            return []
        try:
            names = {entry.name.partition(".")[0] for entry in self.wip.iterdir()}
        except OSError:
            return []
        return sorted(name for name in names if _ID.fullmatch(name))

    def remove_session(self, session_id: str) -> None:
        """Remove the files of a run that will not be resumed."""
        Session(session_id, self.wip).remove()

    def take_session(self, other: Workspace, session_id: str, *, copies: bool = False) -> None:
        """Move the files of an unfinished run here, or copy them if another run works there.

        Raises:
            StorageError: they cannot be moved.
        """
        source, target = Session(session_id, other.wip), Session(session_id, self.wip)
        with storing("move session", self.wip):
            self.wip.mkdir(parents=True, exist_ok=True)
            moved = ((*one.folders, one.instructions, *one.files) for one in (source, target))
            for old, new in zip(*moved, strict=True):
                if not old.exists() or is_linked(other.wip):
                    continue
                if not copies:
                    shutil.move(old, new)
                elif old.is_dir():
                    shutil.copytree(old, new, symlinks=True, dirs_exist_ok=True)
                else:
                    shutil.copy2(old, new, follow_symlinks=False)

    def write_spec_issue(self, content: str, *, name: str | None = None) -> str:
        """Store a problem in the specification for a person; return the name of its file.

        With a `name` (from `new_name`), repeating the call writes the same file again.
        """
        return self._write(self.spec_issues, content, name)

    def write_tbd_item(self, content: str, *, name: str | None = None) -> str:
        """Store a finding for a person to decide; return the name of its file."""
        return self._write(self.tbd, content, name)

    @staticmethod
    def new_name() -> str:
        """Return a name for the file of an issue; names sort by time."""
        return f"{new_id()}.md"

    @staticmethod
    def new_question() -> str:
        """Return a name for the file of a question for whose answer a run waits."""
        return f"{new_id()}{_QUESTION}"

    @staticmethod
    def new_approval() -> str:
        """Return a name for the file of an approval for which a run waits."""
        return f"{new_id()}{_APPROVAL}"

    def issues(self) -> list[Issue]:
        """Return the open issues: spec issues, then findings, each in order of time."""
        return [*read_issues(self.spec_issues, "spec-issue"), *read_issues(self.tbd, "tbd")]

    def issue(self, name: str) -> Issue:
        """Return the open issue in the file of this name.

        Raises:
            StorageError: it is settled.
        """
        found = next((issue for issue in self.issues() if issue.name == name), None)
        if found is None:
            raise StorageError("read issue", "this question is settled already")
        return found

    def spec_issue_names(self) -> list[str]:
        return [entry.name for entry in visible_entries(self.spec_issues) if entry.is_file()]

    def resolve(self, issue: Issue) -> str:
        """Move the issue to the archive as `resolved`; return its name there.

        Raises:
            StorageError: it is gone, or could not be moved.
        """
        return self._settle(issue, "resolved")

    def decided(self, issue: Issue) -> str:
        """Move an approval that has a decision to the archive; return its name there.

        Raises:
            StorageError: it is gone, or could not be moved.
        """
        return self._settle(issue, _DECIDED)

    def dismiss(self, issue: Issue, reason: str, *, at: datetime) -> str:
        """Add the issue and the reason to the memory, and archive it as `dismissed`.

        Raises:
            StorageError: it is gone, or could not be recorded or moved.
        """
        if not issue.path.exists():
            raise StorageError("dismiss", f"{issue.path} is gone")
        with storing("dismiss", self.memory):
            remember(self.memory, issue, reason, at=at)
        return self._settle(issue, "dismissed")

    def withdraw(self, name: str) -> None:
        """Move a question that nobody has answered in time to the archive."""
        with suppress(FileNotFoundError):
            move_to_archive(self.spec_issues / name, self.archive, "withdrawn")

    def settled_as(self, name: str) -> str:
        """Return the answer to a question that is no longer open, or how else it was settled."""
        paths = self.archive.glob(f"*-{name}") if self.archive.is_dir() else ()
        for path in sorted(paths, reverse=True):
            outcome = path.name.removesuffix(f"-{name}").rpartition("-")[2]
            text = read_regular(path).decode("utf-8", "replace")
            is_approval = name.endswith(_APPROVAL)
            split, settled = (
                (text.partition, _DECIDED) if is_approval else (text.rpartition, "resolved")
            )
            _, is_answered, answer = split(ANSWER)
            if outcome == settled and is_answered:
                return answer.strip()
            return f"it was {outcome}without a comment; see the specifications"
        return "the question was removed"

    def read_memory(self) -> str:
        """Return the dismissed findings, or ""."""
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
            write_atomic(path, content)
        return path.name


def _is_workspace(folder: Path) -> bool:
    """Return whether the folder is one of cuggino, or empty but for a lock."""
    try:
        names = {entry.name for entry in folder.iterdir()}
    except OSError:
        return False
    return "wip" in names or names <= {"lock", "lock.json"}


def _has_only_journals(folder: Path) -> bool:
    return has_only_journals(folder)


def _digest(command: str) -> str:
    return hashlib.sha256(command.encode("utf-8", "surrogatepass")).hexdigest()


def new_run_id() -> str:
    """Return a new id for a run; ids sort by time."""
    return new_id()


IssueKind = Literal["spec-issue", "tbd"]

ANSWER = "\n\n## Answer\n\n"
"""Comes before the answer in the file of a question that was answered."""

_QUESTION = "-question.md"
_APPROVAL = "-approval.md"
_DECIDED = "decided"

_LONGEST_TITLE = 200
_HEAD = 64 * 1024
"""Number of characters within which a file's front matter ends."""
_LONGEST_EXCERPT = 1000
_HEADING = """\
# Memory

What was discussed and dismissed. The audit agent reads this and does not raise it again.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """A file that waits for a person's decision."""

    kind: IssueKind
    """`spec-issue` blocks the watch; `tbd` is a finding of the audit."""
    name: str
    path: Path
    title: str
    """The first line that is not blank, without heading marks."""

    @property
    def is_awaited(self) -> bool:
        """True for the question of an agent; the run that waits for the answer passes it on."""
        return self.name.endswith((_QUESTION, _APPROVAL))

    @property
    def is_approval(self) -> bool:
        """True for something that a person approves or rejects."""
        return self.name.endswith(_APPROVAL)


def read_issues(folder: Path, kind: IssueKind) -> list[Issue]:
    """Return the issues of one folder by name, which is their order in time."""
    return [
        Issue(kind=kind, name=path.name, path=path, title=file_title(path))
        for path in (folder / entry.name for entry in visible_entries(folder) if entry.is_file())
    ]


def remember(memory: Path, issue: Issue, reason: str, *, at: datetime) -> None:
    """Add a dated entry to the memory: title, reason, and an excerpt of the text.

    Raises:
        OSError: it could not be written, and the memory is unchanged.
    """
    excerpt = ""
    with suppress(OSError):
        excerpt = issue.path.read_text(encoding="utf-8", errors="replace").strip()
    if len(excerpt) > _LONGEST_EXCERPT:
        excerpt = excerpt[:_LONGEST_EXCERPT].rstrip() + " ..."
    quoted = "\n".join(f"> {line}".rstrip() for line in excerpt.splitlines())
    because = " ".join(reason.split())
    entry = f"\n## {at:%Y-%m-%d}: {issue.title}\n\nDismissed: {because}\n\n{quoted}\n"
    with memory.open("a", encoding="utf-8", errors="replace", newline="") as file:
        before = file.tell()
        try:
            file.write(entry if before else _HEADING + entry)
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                os.truncate(memory, before)
            raise


def read_start(path: Path, most: int) -> str:
    """Return the first `most` characters of a file for a person; invalid bytes are replaced.

    Raises:
        StorageError: it cannot be read.
    """
    with storing("read", path), path.open(encoding="utf-8", errors="replace") as file:
        return file.read(most)


def file_title(path: Path) -> str:
    """Return the first line of a file that is not blank, without heading marks.

    The front matter of an item is left out.
    """
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            _, head = split_front_matter(file.read(_HEAD))
            for line in chain(head.split("\n"), iter(lambda: file.readline(4096), "")):
                if title := line.strip().lstrip("#").strip():
                    return title if len(title) <= _LONGEST_TITLE else title[:_LONGEST_TITLE] + "..."
    except OSError as error:
        return f"(cannot be read: {error.strerror or error})"
    return "(empty)"
