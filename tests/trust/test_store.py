"""Commands that a user has accepted: by project and command, in the user's own folder."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cuggino.errors import StorageError
from cuggino.trust import TrustStore

AT = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrustStore:
    monkeypatch.setattr("cuggino.trust.store.is_started_by_run", lambda: False)
    return TrustStore(tmp_path / "state" / "trust")


def project(folder: Path, **settings: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / ".cuggino.json").write_text(json.dumps(settings))
    return folder


def test_only_what_is_new_is_unseen(tmp_path: Path, store: TrustStore) -> None:
    """Accepted commands stay accepted when others are added, changed or removed."""
    place = project(tmp_path / "a", checkCommand="make", setupCommand="npm ci")
    assert not store.is_trusted(place)
    store.accept(place, store.unseen(place), at=AT)
    assert store.is_trusted(place)
    project(place, checkCommand="make all", setupCommand="npm ci")
    (new,) = store.unseen(place)
    assert "make all" == new.text
    store.accept(place, [new], at=AT)
    project(place, checkCommand="make", setupCommand="npm ci")
    assert store.is_trusted(place)


def test_the_same_command_elsewhere(tmp_path: Path, store: TrustStore) -> None:
    """A command is accepted for one folder, however that is spelled, as it starts other files."""
    here = project(tmp_path / "a", checkCommand="make")
    there = project(tmp_path / "b", checkCommand="make")
    store.accept(here, store.unseen(here), at=AT)
    (tmp_path / "link").symlink_to(here)
    assert store.is_trusted(tmp_path / "link")
    assert not store.is_trusted(there)


def test_without_commands(tmp_path: Path, store: TrustStore) -> None:
    """A project without commands is trusted, and nothing is written for it."""
    place = project(tmp_path / "a")
    assert store.is_trusted(place)
    store.accept(place, store.unseen(place), at=AT)
    assert not store.folder.exists()


def test_listing_and_revoking(tmp_path: Path, store: TrustStore) -> None:
    """Accepted projects are listed by path, and can be forgotten."""
    for name in "ba":
        place = project(tmp_path / name, checkCommand="make")
        store.accept(place, store.unseen(place), at=AT)
    first, second = store.projects()
    assert (tmp_path / "a", tmp_path / "b") == (first.project, second.project)
    assert ((".cuggino.json: checkCommand",), AT.isoformat()) == (first.places, first.since)
    assert [True, False] == [store.revoke(tmp_path / "a") for _ in range(2)]
    assert ([tmp_path / "b"], False) == (
        [each.project for each in store.projects()],
        store.is_trusted(tmp_path / "a"),
    )


def test_no_command_is_stored(tmp_path: Path, store: TrustStore) -> None:
    """Only digests are stored, for the user alone: a command may contain a password."""
    place = project(tmp_path / "a", checkCommand="PASS=hunter2 make")
    store.accept(place, store.unseen(place), at=AT)
    (file,) = store.folder.iterdir()
    assert "hunter2" not in file.read_text()
    assert 0o600 == file.stat().st_mode & 0o777


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 2}', '{"version":1,"seen":7}'])
def test_a_broken_file(tmp_path: Path, store: TrustStore, content: str) -> None:
    """A file that cannot be read is none, and is replaced."""
    place = project(tmp_path / "a", checkCommand="make")
    store.accept(place, store.unseen(place), at=AT)
    (file,) = store.folder.iterdir()
    file.write_text(content)
    assert not store.is_trusted(place)
    assert [] == store.projects()
    store.accept(place, store.unseen(place), at=AT)
    assert store.is_trusted(place)


def test_the_file_of_another_project(tmp_path: Path, store: TrustStore) -> None:
    """The file names its project: one that was renamed accepts nothing for another."""
    here = project(tmp_path / "a", checkCommand="make")
    there = project(tmp_path / "b", checkCommand="make")
    store.accept(here, store.unseen(here), at=AT)
    (file,) = store.folder.iterdir()
    store.accept(there, store.unseen(there), at=AT)
    (other,) = {*store.folder.iterdir()} - {file}
    file.replace(other)
    assert not store.is_trusted(there)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """The error names the file."""
    (tmp_path / "file").write_text("")
    place = project(tmp_path / "a", checkCommand="make")
    store = TrustStore(tmp_path / "file" / "trust")
    with pytest.raises(StorageError, match="Not a directory"):
        store.accept(place, store.unseen(place), at=AT)
