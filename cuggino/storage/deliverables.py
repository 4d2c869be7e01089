"""`.autonoe/status.json`: one change after another, each of them whole (AUT-100 to AUT-106).

The file is read and written by the loop, by the server that an agent's tools call, and by several
of these at once. Every change is read, made and written while a lock is held, which threads and
processes share. The lock is `.cuggino/locks/status.lock` in the project: one in `.autonoe/` would
be committed with the status, and a temporary folder is not the same one for every process. A
`.gitignore` beside it keeps it out of all commits, an agent's too.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from filelock import FileLock, Timeout

from cuggino.domain.deliverable_tools import StatusChange, ToolResult, perform, tool_named
from cuggino.domain.deliverables import Deliverables
from cuggino.errors import StorageError
from cuggino.storage.atomic import storing
from cuggino.storage.moving import move_into
from cuggino.storage.reading import read_regular
from cuggino.storage.rewriting import rewrite
from cuggino.storage.status_json import parse_status, render_status
from cuggino.storage.verified import VerifiedFile

SPEC_FILE = "SPEC.md"
"""The specification of a project of deliverables."""

STATUS_FILE = ".autonoe/status.json"
"""Where the file is in a project."""

LOCK_FILE = ".cuggino/locks/status.lock"

LOCK_TIMEOUT = 60.0
"""Seconds to wait for other processes that change the file; a change takes milliseconds."""

_POLL = 0.005

T = TypeVar("T")


class Loaded(NamedTuple):
    """What was read of the status file."""

    deliverables: Deliverables
    """None yet, of today, without a usable file."""
    warnings: tuple[str, ...] = ()
    """A sentence for each thing that is odd; of a broken file one, which is `broken`."""
    broken: str | None = None
    """Why a file that is there cannot be used. What was to be read of it is unknown, so that
    nothing may be concluded from `deliverables`."""


class Changed(NamedTuple, Generic[T]):
    """What a change has come to."""

    deliverables: Deliverables
    value: T
    """What the change gave besides."""
    warnings: tuple[str, ...] = ()
    """As of `Loaded`; and where a broken file was moved to."""


class Called(NamedTuple):
    """What a tool call has come to."""

    result: ToolResult
    change: StatusChange | None = None
    warnings: tuple[str, ...] = ()


class DeliverableStore:
    """The deliverables of the project at `root`. Making one touches no disk."""

    def __init__(self, root: Path, *, lock_timeout: float = LOCK_TIMEOUT) -> None:
        self.path = root / STATUS_FILE
        self._lock = root / LOCK_FILE
        self._lock_timeout = lock_timeout
        self._turn = threading.Lock()
        """Threads wait here: a file lock is polled, and would make them wait in vain."""

    def exists(self) -> bool:
        """Whether there is a file, usable or not (AUT-103)."""
        return os.path.lexists(self.path)

    def load(self, *, now: datetime) -> Loaded:
        """What the file says; a missing or broken one is no error (AUT-103, AUT-104).

        It needs no lock, as a file is replaced in one step.
        """
        today = _day(now)
        try:
            deliverables, odd = parse_status(read_regular(self.path), today=today)
        except FileNotFoundError:
            return Loaded(Deliverables.none_yet(today))
        except OSError as error:
            why = f"it cannot be read ({error.strerror or error})"
        except ValueError as error:
            why = str(error)
        else:
            return Loaded(deliverables, tuple(f"{STATUS_FILE}: {sentence}" for sentence in odd))
        broken = f"{STATUS_FILE} is broken: {why}"
        return Loaded(Deliverables.none_yet(today), (broken,), broken)

    def change(
        self, step: Callable[[Deliverables], tuple[Deliverables, T]], *, now: datetime
    ) -> Changed[T]:
        """Read, let `step` make new deliverables of what is there, and write them (AUT-106).

        Nobody else changes the file meanwhile. The very same object back means that there is
        nothing to write; else `updated_at` becomes today. A broken file is moved to
        `status.json.broken-<time>` beside it before another takes its place (AUT-104).

        Raises:
            StorageError: it cannot be written, or others have held the lock for too long. Also what
                `step` raises; then nothing was written.
        """
        with self._exclusive():
            loaded = self.load(now=now)
            deliverables, value = step(loaded.deliverables)
            if deliverables is loaded.deliverables:
                return Changed(deliverables, value, loaded.warnings)
            deliverables = deliverables.updated(_day(now))
            warnings = loaded.warnings
            if loaded.broken is not None:
                warnings += (self._move_broken(now),)
            self._write(deliverables)
        return Changed(deliverables, value, warnings)

    def call(
        self,
        tool: str,
        given: object,
        *,
        now: datetime,
        strict: bool = False,
        verified: VerifiedFile | None = None,
    ) -> Called:
        """Call one of the tools of `cuggino.domain.deliverable_tools`, and keep what it changed.

        Raises:
            StorageError: as `change` and `VerifiedFile.read`.
        """

        def step(before: Deliverables) -> tuple[Deliverables, Called]:
            known = verified.read() if verified is not None else None
            performed = perform(
                tool, given, before, today=_day(now), verification=known, strict=strict
            )
            after = performed.verification
            if verified is not None and after is not None and after is not known:
                verified.write(after)
            return performed.deliverables, Called(performed.result, performed.change)

        if tool_named(tool) == "list":
            loaded = self.load(now=now)
            return step(loaded.deliverables)[1]._replace(warnings=loaded.warnings)
        changed = self.change(step, now=now)
        return changed.value._replace(warnings=changed.warnings)

    def _move_broken(self, now: datetime) -> str:
        real = Path(os.path.realpath(self.path))
        name = f"{real.name}.broken-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
        with suppress(FileNotFoundError):
            name = move_into(real, real.parent, name, operation="keep broken status").name
        return f"the broken {STATUS_FILE} is kept as {name}"

    def _write(self, deliverables: Deliverables) -> None:
        with storing("write deliverables", self.path):
            rewrite(self.path, render_status(deliverables))

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        operation = "lock deliverables"
        lock = FileLock(self._lock)
        with self._turn:
            with storing(operation, self._lock):
                _make_uncommitted(self._lock.parent)
                try:
                    lock.acquire(timeout=self._lock_timeout, poll_interval=_POLL)
                except Timeout:
                    raise StorageError(
                        operation,
                        f"{self.path} has been in use by another process for "
                        f"{self._lock_timeout:g} s",
                        hint="try again; if it stays so, end the other cuggino of this project",
                    ) from None
            try:
                yield
            finally:
                lock.release()


def _day(now: datetime) -> date:
    return now.astimezone(UTC).date()


def _make_uncommitted(folder: Path) -> None:
    """Make the folder, with what keeps all of it out of commits."""
    ignore = folder / ".gitignore"
    if not ignore.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), ignore.open("x", encoding="utf-8") as file:
            file.write("*\n")
