"""The backlog: its items, and moving them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from uuid import UUID

import pytest

from cuggino.errors import StorageError
from cuggino.storage import Backlog, Workspace


def drop(workspace: Workspace, name: str, text: str = "do it") -> str:
    """Write an item and return the digest of its bytes."""
    (workspace.backlog / name).write_text(text)
    return hashlib.sha256(text.encode()).hexdigest()


def names(folder: Path) -> list[str]:
    """Return all names in the folder, including hidden files."""
    return sorted(path.name for path in folder.iterdir())


class TestItems:
    def test_they_are_sorted_by_name(self, workspace: Workspace, backlog: Backlog) -> None:
        """Visible files are the items, sorted by name."""
        for name in ("b.md", "010-x.md", "002-y.md", ".hidden.md", "z"):
            drop(workspace, name)
        assert ["002-y.md", "010-x.md", "b.md", "z"] == backlog.items()
        assert {} == backlog.problems()

    def test_problems(self, workspace: Workspace, backlog: Backlog) -> None:
        """Folders, pipes, dangling links and blank files are problems, each with a reason."""
        drop(workspace, "good.md")
        drop(workspace, "empty.md", "")
        drop(workspace, "blank.md", " \n\t\n" * 50_000)
        (workspace.backlog / "folder").mkdir()
        (workspace.backlog / ".git").mkdir()
        os.mkfifo(workspace.backlog / "pipe")
        (workspace.backlog / "dangling").symlink_to("nowhere")
        (workspace.backlog / "link.md").symlink_to("good.md")
        assert ["good.md", "link.md"] == backlog.items()
        assert {
            "blank.md": "empty",
            "dangling": "cannot be read: No such file or directory",
            "empty.md": "empty",
            "folder": "a folder",
            "pipe": "not a regular file",
        } == backlog.problems()

    def test_an_unreadable_file(
        self, workspace: Workspace, backlog: Backlog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A file that cannot be opened is a problem with the system's reason."""
        drop(workspace, "secret.md")

        def refuse(*_args: object, **_kwargs: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("cuggino.storage.backlog.open", refuse, raising=False)
        assert {"secret.md": "cannot be read: Permission denied"} == backlog.problems()
        assert [] == backlog.items()

    def test_a_name_that_is_not_utf8(self, workspace: Workspace, backlog: Backlog) -> None:
        """A file whose name is not UTF-8 is a problem with an escaped name."""
        try:
            drop(workspace, os.fsdecode(b"caf\xe9.md"))
        except OSError:
            pytest.skip("this file system takes UTF-8 names only")
        assert [] == backlog.items()
        assert {"caf\N{REPLACEMENT CHARACTER}.md": "its name is not UTF-8"} == backlog.problems()

    def test_a_change_is_detected(self, workspace: Workspace, backlog: Backlog) -> None:
        """An emptied file is not an item until it is filled again."""
        drop(workspace, "a.md")
        assert ["a.md"] == backlog.items()
        drop(workspace, "a.md", "")
        assert [] == backlog.items()
        drop(workspace, "a.md", "again")
        assert ["a.md"] == backlog.items()

    def test_a_known_item_is_not_read_again(
        self, workspace: Workspace, backlog: Backlog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A known file is opened again only after a change."""
        drop(workspace, "a.md")
        assert ["a.md"] == backlog.items()
        opened: list[Path] = []

        def note(path: str, mode: str, *, buffering: int) -> object:
            opened.append(Path(path))
            return open(path, mode, buffering=buffering)  # noqa: PTH123

        monkeypatch.setattr("cuggino.storage.backlog.open", note, raising=False)
        assert ["a.md"] == backlog.items()
        assert [] == opened
        os.utime(workspace.backlog / "a.md", (1, 1))
        assert ["a.md"] == backlog.items()
        assert [workspace.backlog / "a.md"] == opened

    def test_without_a_folder(self, tmp_path: Path) -> None:
        """A backlog that is missing or a file has no items and no problems."""
        backlog = Backlog(Workspace(tmp_path))
        assert ([], {}, {}) == (backlog.items(), backlog.problems(), backlog.parked())
        (tmp_path / ".cuggino").write_text("a file")
        assert ([], {}, {}) == (backlog.items(), backlog.problems(), backlog.parked())

    def test_digest(self, workspace: Workspace, backlog: Backlog) -> None:
        """The digest is the SHA-256 of the bytes; missing files and other things have none."""
        assert drop(workspace, "a.md", "x") == backlog.digest("a.md")
        assert backlog.digest("gone.md") is None
        os.mkfifo(workspace.backlog / "pipe")
        (workspace.backlog / "folder").mkdir()
        assert (None, None) == (backlog.digest("pipe"), backlog.digest("folder"))

    @pytest.mark.parametrize("name", ["", ".", "..", "../x", "/etc/passwd", "a/b", "a\0b"])
    def test_names_stay_inside(self, backlog: Backlog, name: str) -> None:
        """Anything but a plain file name is rejected everywhere."""
        for deed in (backlog.path, backlog.digest, backlog.remove, backlog.unpark):
            with pytest.raises(StorageError, match="is not a file name in"):
                deed(name)


class TestArchive:
    def test_an_unchanged_item_is_moved(self, workspace: Workspace, backlog: Backlog) -> None:
        """The item becomes `<uuid7>-<outcome>-<name>` in the archive, byte for byte."""
        digest = drop(workspace, "001-a.md", "x\r\n")
        assert backlog.archive("001-a.md", "approved", digest)
        (name,) = names(workspace.archive)
        assert 7 == UUID(name[:36]).version
        assert "-approved-001-a.md" == name[36:]
        assert b"x\r\n" == (workspace.archive / name).read_bytes()
        assert [] == names(workspace.backlog)

    def test_a_changed_item_stays(self, workspace: Workspace, backlog: Backlog) -> None:
        """An edited or missing item is not moved."""
        digest = drop(workspace, "a.md", "old")
        drop(workspace, "a.md", "new")
        assert not backlog.archive("a.md", "approved", digest)
        assert not backlog.archive("gone.md", "approved", digest)
        assert (["a.md"], []) == (names(workspace.backlog), names(workspace.archive))

    def test_an_edit_at_the_last_moment(
        self, workspace: Workspace, backlog: Backlog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An edit between the check and the move puts the item back."""
        digest = drop(workspace, "a.md", "old")
        monkeypatch.setattr(Backlog, "digest", lambda *_: digest)
        drop(workspace, "a.md", "edited")
        assert not backlog.archive("a.md", "approved", digest)
        assert "edited" == (workspace.backlog / "a.md").read_text()
        assert [] == names(workspace.archive)

    def test_missing_at_the_last_moment(
        self, workspace: Workspace, backlog: Backlog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An item that disappears between the check and the move leaves no archive entry."""
        monkeypatch.setattr(Backlog, "digest", lambda *_: "d")
        assert not backlog.archive("a.md", "approved", "d")
        assert [] == names(workspace.archive)


class TestParking:
    def test_park_and_unpark(self, workspace: Workspace, backlog: Backlog) -> None:
        """A parked item has its reason beside it; an unparked one returns without it."""
        drop(workspace, "a.md", "text")
        assert "a.md" == backlog.park("a.md", "the agent\nwas ill\n")
        assert ["a.md", "a.md.reason.txt"] == names(workspace.parked)
        assert {"a.md": "the agent\nwas ill"} == backlog.parked()
        assert [] == backlog.items()
        assert "a.md" == backlog.unpark("a.md")
        assert ([], ["a.md"]) == (names(workspace.parked), backlog.items())
        assert "text" == (workspace.backlog / "a.md").read_text()

    def test_taken_names(self, workspace: Workspace, backlog: Backlog) -> None:
        """For a taken name, parking and unparking use a similar free one."""
        for n in range(3):
            drop(workspace, "a.md", f"text {n}")
            assert ["a.md", "a-2.md", "a-3.md"][n] == backlog.park("a.md", f"reason {n}")
        expected = {"a-2.md": "reason 1", "a-3.md": "reason 2", "a.md": "reason 0"}
        assert expected == backlog.parked()
        drop(workspace, "a-2.md", "new")
        assert "a-2-2.md" == backlog.unpark("a-2.md")
        texts = {name: backlog.path(name).read_text() for name in backlog.items()}
        assert {"a-2.md": "new", "a-2-2.md": "text 1"} == texts

    def test_an_item_named_like_a_reason(self, workspace: Workspace, backlog: Backlog) -> None:
        """An item named like another one's reason file is parked as an item."""
        drop(workspace, "a.md.reason.txt", "mine")
        assert "a.md.reason.txt.md" == backlog.park("a.md.reason.txt", "why")
        assert {"a.md.reason.txt.md": "why"} == backlog.parked()

    def test_a_missing_reason(self, workspace: Workspace, backlog: Backlog) -> None:
        """An item without a readable reason is parked."""
        (workspace.parked / "a.md").write_text("x")
        assert {"a.md": "no reason recorded"} == backlog.parked()

    def test_missing_items(self, workspace: Workspace, backlog: Backlog) -> None:
        """Parking a missing item does nothing; unparking or removing it is an error."""
        assert backlog.park("a.md", "why") is None
        assert [] == names(workspace.parked)
        with pytest.raises(StorageError, match=r"parked/a\.md is gone"):
            backlog.unpark("a.md")
        with pytest.raises(StorageError, match=r"backlog/a\.md is gone"):
            backlog.remove("a.md")
        assert ([], []) == (names(workspace.backlog), names(workspace.archive))
