"""The lock of a workspace, and the file that names its owner (CUG-111)."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from cuggino.errors import WorkspaceLocked
from cuggino.files import parse_json, read_regular, storing, write_atomic

_LONGEST_COMMAND = 200
_MOST_KILLED = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class LockOwner:
    """The owner of a workspace, as far as known."""

    pid: int | None = None
    since: datetime | None = None
    command: str | None = None
    killed: tuple[int, ...] = ()
    """Earlier owners that were killed; processes of theirs may be orphaned."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A lock that this process holds."""

    lock: FileLock
    inode: int
    owner: str
    """The content of the owner's file."""


class WorkspaceLock:
    """The lock of one workspace folder; the system releases it when the process dies."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Not in the lock file, which the lock library may truncate.
        self._owner = folder / "lock.json"
        self._held: _Held | None = None
        self._inside = threading.Lock()

    @contextmanager
    def hold(self, *, command: str, since: datetime | None) -> Iterator[None]:
        """Take the lock and record the owner, replacing the file of a dead one.

        Raises:
            WorkspaceLocked: it is held, by this process or another.
        """
        lock, inode = self._taken()
        try:
            before = self.owner() or LockOwner()
            killed = [*before.killed, *([before.pid] if before.pid else [])]
            owner: dict[str, object] = {
                "pid": os.getpid(),
                "since": (since or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="seconds"),
                "command": command,
            }
            if killed := [pid for pid in dict.fromkeys(killed) if pid != os.getpid()]:
                owner["killed"] = killed
            self._held = _Held(lock, inode, json.dumps(owner) + "\n")
            self._record_owner()
        except BaseException:
            self._held = None
            lock.release()
            raise
        try:
            yield
        finally:
            held, is_own = self._held, self._is_in_place()
            self._held = None
            if is_own:  # else the file is that of another owner
                with suppress(OSError):
                    self._owner.unlink(missing_ok=True)
            held.lock.release()

    def keep(self) -> None:
        """Take the lock again if its file was removed or replaced while this object holds it.

        Without the file, another process could take the lock, too. Nothing is created while the
        whole project is away, for example moved: it could not come back to its place.

        Raises:
            WorkspaceLocked: another process holds the workspace by now.
        """
        if self._held is None or not self._folder.parent.is_dir():
            return
        if not self._is_in_place():
            lock, inode = self._taken()
            self._held.lock.release()
            self._held = replace(self._held, lock=lock, inode=inode)
            self._record_owner()
        elif not self._owner.exists():
            self._record_owner()

    def _taken(self) -> tuple[FileLock, int]:
        """Take the lock; return it with the inode of its file."""
        with storing("lock workspace", self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self._folder / "lock", thread_local=False)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                raise self._refusal() from None
            return lock, (self._folder / "lock").stat().st_ino

    def _is_in_place(self) -> bool:
        assert self._held is not None
        try:
            return (self._folder / "lock").stat().st_ino == self._held.inode
        except OSError:
            return False

    def _record_owner(self) -> None:
        assert self._held is not None
        with storing("lock workspace", self._owner):
            write_atomic(self._owner, self._held.owner)

    @contextmanager
    def hold_for_session(self, *, command: str, since: datetime | None) -> Iterator[None]:
        """Take the lock, unless this object holds it already; only one session at a time.

        Raises:
            WorkspaceLocked: it is held elsewhere, or by another session.
        """
        if not self._inside.acquire(blocking=False):
            raise self._refusal()
        try:
            with self.hold(command=command, since=since) if self._held is None else nullcontext():
                yield
        finally:
            self._inside.release()

    def owner(self) -> LockOwner | None:
        """Return the owner from its file, which a killed process leaves behind."""
        try:
            said = parse_json(read_regular(self._owner))
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            return LockOwner()
        if not isinstance(said, dict):
            return LockOwner()
        pid, command = said.get("pid"), said.get("command")
        since = None
        with suppress(TypeError, ValueError, OverflowError):
            since = (
                datetime.fromisoformat(said["since"]).astimezone(UTC) if "since" in said else None
            )
        killed = said.get("killed")
        return LockOwner(
            pid=pid if _is_pid(pid) else None,
            since=since,
            command=command[:_LONGEST_COMMAND] if isinstance(command, str) else None,
            killed=tuple(filter(_is_pid, killed))[-_MOST_KILLED:]
            if isinstance(killed, list)
            else (),
        )

    def holder(self) -> LockOwner | None:
        """Return the process that holds the workspace now, or None."""
        owner = self.owner()
        if owner is None or owner.pid is None or not _is_alive(owner.pid):
            return None
        try:
            lock = FileLock(self._folder / "lock", thread_local=False)
            with lock.acquire(timeout=0):
                return None  # another process has the number of one that was killed
        except Timeout:
            return owner
        except OSError:
            return None

    def _refusal(self) -> WorkspaceLocked:
        owner = self.owner() or LockOwner()
        return WorkspaceLocked(
            str(self._folder), owner.pid, since=owner.since, command=owner.command
        )


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # of another user
    return True


def _is_pid(said: object) -> bool:
    return type(said) is int and said > 0
