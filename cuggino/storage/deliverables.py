"""The deliverables of a project: `.autonoe/status.json` (AUT-100 to AUT-106).

The loop and the server behind an agent's tools read and write the file concurrently. Every change
is read, made and written under a lock shared by threads and processes. The lock is
`.cuggino/locks/status.lock` in the project: in `.autonoe/` it would be committed with the status,
and processes may have different temporary folders. A `.gitignore` beside it keeps it out of all
commits.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Generic, NamedTuple, TypeVar

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from cuggino.domain import (
    Deliverable,
    DeliverableChange,
    Deliverables,
    ToolAnswer,
    Verification,
    perform_tool,
    tool_named,
)
from cuggino.edited_files import (
    InvalidFile,
    matching,
    parse_content,
    read_content,
    validated,
)
from cuggino.errors import ConfigError, StorageError
from cuggino.files import read_regular, render_json, storing, write_atomic
from cuggino.kept_files import Kept, KeptFile
from cuggino.protection import expected
from cuggino.storage.moving import move_into

SPEC_FILE = "SPEC.md"
"""The specification of a project with deliverables."""

STATUS_FILE = ".autonoe/status.json"
"""The path of the file in a project."""

BROKEN_HINT = "correct the file or restore it; without it, the deliverables are planned again"

LOCK_FILE = ".cuggino/locks/status.lock"

LOCK_TIMEOUT = 60.0
"""Seconds to wait for other processes that change the file; a change takes milliseconds."""

_POLL = 0.005

T = TypeVar("T")


class LoadedDeliverables(NamedTuple):
    """The contents of the status file."""

    deliverables: Deliverables
    """Empty without a usable file."""
    warnings: tuple[str, ...] = ()
    """One sentence per invalid value; for a broken file one, `broken`."""
    broken: str | None = None
    """The reason why an existing file is unusable; `deliverables` is then meaningless."""


class Changed(NamedTuple, Generic[T]):
    """The result of a change."""

    deliverables: Deliverables
    value: T
    """The second value that the change returned."""
    warnings: tuple[str, ...] = ()
    """Same as in `LoadedDeliverables`, plus the new name of a broken file."""


class Called(NamedTuple):
    """The result of a tool call."""

    result: ToolAnswer
    change: DeliverableChange | None = None
    warnings: tuple[str, ...] = ()

    def answer(self) -> dict[str, object]:
        """Return the answer for the agent, with the problems of the file."""
        told = {"warnings": list(self.warnings)} if self.warnings else {}
        return self.result.as_json() | told


class DeliverableStore:
    """The deliverables of the project at `root`. Creating one does not touch the disk."""

    def __init__(self, root: Path, *, lock_timeout: float = LOCK_TIMEOUT) -> None:
        self.path = root / STATUS_FILE
        self._lock = root / LOCK_FILE
        self._lock_timeout = lock_timeout
        self._turn = threading.Lock()
        """Serializes the threads of this process, because the file lock is polled."""

    def exists(self) -> bool:
        """Return whether the file exists, usable or not."""
        return os.path.lexists(self.path)

    def load(self, *, now: datetime) -> LoadedDeliverables:
        """Return the contents of the file, which may be missing or broken.

        It takes no lock, because the file is replaced atomically. While a session runs that could
        write it, the file has what this process has written, whatever the disk says.
        """
        today = _day(now)
        deliverables, odd = Deliverables.none_yet(today), tuple[str, ...]()
        try:
            content = read_content(self.path)
            if content is not None:
                deliverables, odd = parse_status(content, today=today)
        except InvalidFile as error:
            broken = f"{STATUS_FILE} is broken: {error}"
            return LoadedDeliverables(deliverables, (broken,), broken)
        return LoadedDeliverables(deliverables, tuple(f"{STATUS_FILE}: {each}" for each in odd))

    def check(self) -> None:
        """Check that the file is usable, if it is there.

        Raises:
            ConfigError: it is broken.
        """
        broken = self.load(now=datetime.now(UTC)).broken
        if broken is not None:
            raise ConfigError(broken, hint=BROKEN_HINT)

    def change(
        self, step: Callable[[Deliverables], tuple[Deliverables, T]], *, now: datetime
    ) -> Changed[T]:
        """Read the deliverables, pass them through `step`, and write the result.

        The lock is held meanwhile. If `step` returns the same object, nothing is written; otherwise
        `updated_at` becomes today. A broken file is moved to `status.json.broken-<time>` beside it
        before it is replaced.

        Raises:
            StorageError: it cannot be written, or the lock was held for too long. Also whatever
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
        """Call one of the tools of `cuggino.domain.deliverable_tools`, and save the changes.

        Raises:
            StorageError: as `change` and `VerifiedFile.read`.
        """

        def step(before: Deliverables) -> tuple[Deliverables, Called]:
            known = verified.read() if verified is not None else None
            performed = perform_tool(
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
            write_atomic(self.path, render_status(deliverables), follow_links=True)

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
                        hint="try again, or stop the other cuggino of this project",
                    ) from None
            try:
                yield
            finally:
                lock.release()


def _bytes(path: Path) -> bytes:
    """Return what the file holds, or what it must hold while a session runs."""
    known = expected(path)
    return read_regular(path) if known is None else known


def _day(now: datetime) -> date:
    return now.astimezone(UTC).date()


def _make_uncommitted(folder: Path) -> None:
    """Create the folder, with a `.gitignore` that excludes all of it."""
    ignore = folder / ".gitignore"
    if not ignore.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), ignore.open("x", encoding="utf-8") as file:
            file.write("*\n")


class _Item(BaseModel):
    """A deliverable in the file; unknown keys are kept."""

    model_config = ConfigDict(strict=True, alias_generator=to_camel)

    id: Annotated[str, matching(r"[\s\S]*\S[\s\S]*", "must not be blank")]
    description: str | None = None
    acceptance_criteria: list[str] | None = None
    passed: bool | None = None
    blocked: bool | None = None
    deprecated_at: str | None = None


class _StatusFile(BaseModel):
    model_config = ConfigDict(strict=True, alias_generator=to_camel)

    created_at: str | None = None
    updated_at: str | None = None
    deliverables: list[_Item]


def parse_status(content: bytes, *, today: date) -> tuple[Deliverables, tuple[str, ...]]:
    """Return the deliverables in a status file, and a warning per contradiction.

    Missing values get defaults: today for dates, "" for texts, false for flags. A file with a value
    of a wrong type is rejected as a whole.

    Raises:
        InvalidFile: it is unusable; the message names the reason and the place.
    """
    raw = parse_content(content)
    if not isinstance(raw, dict):
        raise InvalidFile("not a JSON object")
    file = validated(_StatusFile, raw)
    warnings: list[str] = []
    items: dict[str, Deliverable] = {}
    for number, (item, fields) in enumerate(
        zip(file.deliverables, raw["deliverables"], strict=True)
    ):
        if item.id in items:
            raise InvalidFile(f'deliverables[{number}] has the id of another one, "{item.id}"')
        if item.passed and item.blocked:
            warnings.append(f'deliverable "{item.id}" is passed and blocked; passed counts')
        items[item.id] = Deliverable(
            id=item.id,
            description=item.description or "",
            acceptance_criteria=tuple(item.acceptance_criteria or ()),
            status="passed" if item.passed else "blocked" if item.blocked else "pending",
            deprecated_at=item.deprecated_at or None,
            fields=fields,
        )
    deliverables = Deliverables(
        created_at=today.isoformat() if file.created_at is None else file.created_at,
        updated_at=today.isoformat() if file.updated_at is None else file.updated_at,
        items=tuple(items.values()),
        fields=raw,
    )
    return deliverables, tuple(warnings)


def render_status(deliverables: Deliverables) -> str:
    """Return the file's text: indented by two, without a final newline, keys in their order."""
    return render_json(
        {
            **deliverables.fields,
            "createdAt": deliverables.created_at,
            "updatedAt": deliverables.updated_at,
            "deliverables": [_object(item) for item in deliverables.items],
        }
    )


def _object(item: Deliverable) -> Mapping[str, object]:
    known: dict[str, object] = {
        "id": item.id,
        "description": item.description,
        "acceptanceCriteria": list(item.acceptance_criteria),
        "passed": item.status == "passed",
        "blocked": item.status == "blocked",
    }
    if item.deprecated_at is not None:
        known["deprecatedAt"] = item.deprecated_at
    return {**item.fields, **known}


class _Verified(Kept):
    all: tuple[str, ...]
    verified: tuple[str, ...]


class VerifiedFile:
    """A JSON file with the ids to verify and the verified ones.

    The loop creates it after the session that compares deliverables and specification; the server
    marks what the agents of the next sessions verify.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = KeptFile(path, _Verified, "verified deliverables")

    def start(self, ids: Iterable[str]) -> Verification:
        """Start with these ids to verify, and none verified.

        Raises:
            StorageError: it cannot be written.
        """
        verification = Verification(all=tuple(ids))
        self.write(verification)
        return verification

    def read(self) -> Verification | None:
        """Return the verification, or None without a file.

        Raises:
            StorageError: it cannot be read, or is invalid.
        """
        found = self._file.read()
        if found is None:
            return None
        return Verification(all=found.all, verified=frozenset(found.verified))

    def write(self, verification: Verification) -> None:
        """Write the verification. The caller must hold the lock of the store."""
        done = tuple(item for item in verification.all if item in verification.verified)
        self._file.write(_Verified(all=verification.all, verified=done))
