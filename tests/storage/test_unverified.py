"""The file of jobs that no run has verified."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.errors import StorageError
from cuggino.storage.jobs import UnverifiedJobs


def test_ids_round_trip(tmp_path: Path) -> None:
    """IDs are read back and replaced by the next write; the folder is created."""
    file = UnverifiedJobs(tmp_path / "a" / "jobs.json")
    assert frozenset() == file.read()
    file.write(["J2", "J1", "J2"])
    assert frozenset({"J1", "J2"}) == file.read()
    file.write([])
    assert frozenset() == file.read()


def test_the_same_ids_write_nothing(tmp_path: Path) -> None:
    """Without a change the file is left alone."""
    file = UnverifiedJobs(tmp_path / "jobs.json")
    file.write(["J1"])
    before = file.path.stat().st_ino
    file.write(["J1"])
    assert before == file.path.stat().st_ino
    file.write(["J2"])
    assert before != file.path.stat().st_ino


@pytest.mark.parametrize("content", ["", "{", "{}", "1", "\udcff"])
def test_invalid_content_is_empty(content: str, tmp_path: Path) -> None:
    """A corrupt file names no job, and is replaced by the next write."""
    file = UnverifiedJobs(tmp_path / "jobs.json")
    file.path.write_text(content, errors="surrogateescape")
    assert frozenset() == file.read()
    file.write(["J1"])
    assert frozenset({"J1"}) == file.read()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    """An unwritable path is an error that names the file."""
    (tmp_path / "a").write_text("")
    with pytest.raises(StorageError, match=r"jobs\.json"):
        UnverifiedJobs(tmp_path / "a" / "jobs.json").write(["J1"])
