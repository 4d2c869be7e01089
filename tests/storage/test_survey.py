"""Snapshots of the backlog."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cuggino.storage import Backlog, Workspace
from cuggino.storage.moving import visible_entries


def filled(folder: Path) -> Workspace:
    """A workspace with the items `a.md` and `b.md` and an empty file."""
    workspace = Workspace(folder)
    workspace.open()
    for name, text in (("b.md", "x"), ("a.md", "x"), ("empty.md", "")):
        (workspace.backlog / name).write_text(text)
    return workspace


def test_items_and_problems_come_from_one_listing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is listed once for both."""
    backlog = Backlog(filled(tmp_path))
    looked: list[Path] = []

    def note(folder: Path) -> list[os.DirEntry[str]]:
        looked.append(folder)
        return visible_entries(folder)

    monkeypatch.setattr("cuggino.storage.backlog.visible_entries", note)
    assert (["a.md", "b.md"], {"empty.md": "empty"}) == backlog.survey()
    assert 1 == len(looked)


def test_a_file_deleted_during_the_listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file deleted after the listing is neither an item nor a problem."""

    def listed(folder: Path) -> list[os.DirEntry[str]]:
        entries = visible_entries(folder)
        (folder / "a.md").unlink()
        return entries

    backlog = Backlog(filled(tmp_path))
    monkeypatch.setattr("cuggino.storage.backlog.visible_entries", listed)
    assert (["b.md"], {"empty.md": "empty"}) == backlog.survey()


def test_an_item_that_cannot_be_read_is_not_archived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unreadable item may have changed, so it stays."""
    workspace = filled(tmp_path)
    backlog = Backlog(workspace)
    digest = backlog.digest("a.md")
    assert digest is not None

    def refuse(_path: Path) -> str | None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("cuggino.storage.backlog.digest_of", refuse)
    assert not backlog.archive("a.md", "approved", digest)
    assert backlog.is_there("a.md")
    assert [] == list(workspace.archive.iterdir())
