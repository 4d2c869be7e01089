"""The file of the jobs that no run has verified."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.errors import StorageError
from cuggino.storage.unverified import UnverifiedJobs


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """Ids come back, and are replaced by those that are written next; the folder is made."""
    file = UnverifiedJobs(tmp_path / "a" / "jobs.json")
    assert frozenset() == file.read()
    file.write(["J2", "J1", "J2"])
    assert frozenset({"J1", "J2"}) == file.read()
    file.write([])
    assert frozenset() == file.read()


def test_the_same_again_writes_nothing(tmp_path: Path) -> None:
    """The file is left as it is when nothing has changed."""
    file = UnverifiedJobs(tmp_path / "jobs.json")
    file.write(["J1"])
    before = file.path.stat().st_ino
    file.write(["J1"])
    assert before == file.path.stat().st_ino
    file.write(["J2"])
    assert before != file.path.stat().st_ino


@pytest.mark.parametrize("content", ["", "{", "{}", "1", "\udcff"])
def test_anything_else_is_nothing(content: str, tmp_path: Path) -> None:
    """A file that somebody has spoilt names no job, and is replaced by the next write."""
    file = UnverifiedJobs(tmp_path / "jobs.json")
    file.path.write_text(content, errors="surrogateescape")
    assert frozenset() == file.read()
    file.write(["J1"])
    assert frozenset({"J1"}) == file.read()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    """It is one error that names the file."""
    (tmp_path / "a").write_text("")
    with pytest.raises(StorageError, match=r"jobs\.json"):
        UnverifiedJobs(tmp_path / "a" / "jobs.json").write(["J1"])
