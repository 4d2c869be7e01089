"""A journal on a full or failing disk."""

from __future__ import annotations

import errno
import io
import os
import resource
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cuggino.errors import StorageError
from cuggino.events import Event, Progress, RunContinued, RunStarted
from cuggino.storage.journal import Journal, iter_entries

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
STARTED = RunStarted(run_id="0193-a", kind="run", command="cuggino run")


def events(path: Path) -> list[Event]:
    return [entry.event for entry in iter_entries(path)]


class Disk(io.FileIO):
    """A disk with limited room: a write takes what fits, and the next one fails."""

    room = 1 << 20

    def write(self, data: Any) -> int:
        if self.room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = super().write(bytes(data)[: self.room])
        self.room -= taken
        return taken


@pytest.mark.parametrize("room", [0, 1, 50, 100])
def test_a_full_disk(tmp_path: Path, room: int) -> None:
    """A partial line on a full disk is cut immediately, and writing resumes with free space."""
    made = Journal.create(tmp_path, STARTED, at=AT)
    made.close()
    good = made.path.read_bytes()
    disk = Disk(made.path, "ab")
    journal = Journal(made.path, disk, run_id="0193-a", seq=1, length=len(good), sync=True)
    disk.room = room
    for _ in range(2):
        with pytest.raises(StorageError, match=r"0193-a\.jsonl: No space left") as caught:
            journal.append(Progress(content="x" * 200), at=AT)
        assert "write journal" == caught.value.operation
        assert good == made.path.read_bytes()
    disk.room = 1 << 20
    assert 2 == journal.append(Progress(content="small"), at=AT).seq
    journal.close()
    assert [STARTED, Progress(content="small")] == events(made.path)


class StubbornDisk(Disk):
    """A full disk that cannot truncate either."""

    def truncate(self, size: int | None = None, /) -> int:
        if self.room == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().truncate(size)


def test_a_disk_that_cannot_truncate(tmp_path: Path) -> None:
    """A partial line that cannot be cut immediately is cut before the next write."""
    made = Journal.create(tmp_path, STARTED, at=AT)
    made.close()
    good = made.path.read_bytes()
    disk = StubbornDisk(made.path, "ab")
    journal = Journal(made.path, disk, run_id="0193-a", seq=1, length=len(good), sync=True)
    disk.room = 10
    with pytest.raises(StorageError, match="No space left"):
        journal.append(RunContinued(), at=AT)
    assert len(good) + 10 == made.path.stat().st_size
    with pytest.raises(StorageError, match="Input/output error"):
        journal.append(RunContinued(), at=AT)
    disk.room = 1 << 20
    journal.append(RunContinued(), at=AT)
    journal.close()
    assert [STARTED, RunContinued()] == events(made.path)


def test_no_room_for_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal whose first line cannot be written does not exist."""
    monkeypatch.setattr(Disk, "room", 5)
    monkeypatch.setattr("cuggino.storage.journal.writer.io.FileIO", Disk)
    with pytest.raises(StorageError, match="No space left"):
        Journal.create(tmp_path, STARTED, at=AT)
    assert [] == list(tmp_path.iterdir())


def test_a_limit_of_the_system(tmp_path: Path) -> None:
    """A file size limit hit within a line leaves only whole lines."""
    journal = Journal.create(tmp_path, STARTED, at=AT)
    good = journal.path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(good) + 100, hard))
    try:
        with pytest.raises(StorageError, match="File too large"):
            journal.append(Progress(content="x" * 200), at=AT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert good == journal.path.read_bytes()
    journal.append(RunContinued(), at=AT)
    journal.close()
    assert [STARTED, RunContinued()] == events(journal.path)


def test_a_folder_that_cannot_be_created(tmp_path: Path) -> None:
    """A journal without a possible folder is an error with the path of the file."""
    (tmp_path / "journal").write_text("a file\n")
    with pytest.raises(StorageError, match=r"journal/0193-a\.jsonl: ") as caught:
        Journal.create(tmp_path / "journal", STARTED, at=AT)
    assert "write journal" == caught.value.operation
