"""The backlog: adding and removing items by command."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from cuggino.errors import ConfigError, StorageError
from cuggino.storage import Backlog, Workspace
from tests.storage.test_backlog import drop, names


class TestAdding:
    def test_numbering(self, workspace: Workspace, backlog: Backlog) -> None:
        """A new item's number follows the highest in the backlog, parked items and archive."""
        assert "001-add-a-login-page.md" == backlog.add("Add a login page!", "With a form.\n")
        added = (workspace.backlog / "001-add-a-login-page.md").read_bytes()
        assert b"# Add a login page!\n\nWith a form.\n" == added
        assert "002-b.md" == backlog.add(" b\n")
        assert b"# b\n" == (workspace.backlog / "002-b.md").read_bytes()
        drop(workspace, "041-x.md")
        backlog.park("041-x.md", "why")
        assert "042-c.md" == backlog.add("c")
        backlog.remove("042-c.md")
        assert "043-d.md" == backlog.add("d")
        digest = backlog.digest("043-d.md")
        assert digest is not None
        backlog.archive("043-d.md", "max-iterations", digest)
        drop(workspace, "7-of-9.md")
        assert "044-e.md" == backlog.add("e")

    def test_a_thousand_items(self, workspace: Workspace, backlog: Backlog) -> None:
        """Items are processed in the order of their addition, beyond the 999th."""
        drop(workspace, "101-old.md")
        drop(workspace, "998-old.md")
        added = [backlog.add(title) for title in ("z", "y", "x")]
        assert ["999-z.md", "999001-y.md", "999002-x.md"] == added
        assert ["101-old.md", "998-old.md", *added] == backlog.items()

    @pytest.mark.parametrize(
        ("title", "name"),
        [
            ("Größe / Länge", "001-größe-länge.md"),
            ("../../etc/passwd", "001-etc-passwd.md"),
            ("?!", "001-item.md"),
            ("x" * 300, f"001-{'x' * 48}.md"),
            ("\x1b[2J wipe", "001-2j-wipe.md"),
            ("日本語 " * 40, None),
        ],
    )
    def test_names_from_titles(self, backlog: Backlog, title: str, name: str | None) -> None:
        """The name has the letters and digits of the title, in any script, up to a limit."""
        added = backlog.add(title)
        assert name is None or name == added
        assert [added] == backlog.items()
        assert "/" not in added

    def test_a_full_disk(
        self, workspace: Workspace, backlog: Backlog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A failed write leaves no empty item that a watch would pick up."""

        def full(_path: Path, _text: str) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("cuggino.storage.backlog.write_atomic", full)
        with pytest.raises(StorageError, match="No space left on device"):
            backlog.add("Log in")
        assert [] == names(workspace.backlog)

    def test_a_blank_title(self, backlog: Backlog) -> None:
        """An item needs a title."""
        with pytest.raises(ConfigError, match="the title is empty"):
            backlog.add(" \n ")
        assert [] == backlog.items()

    def test_removed_is_archived(self, workspace: Workspace, backlog: Backlog) -> None:
        """A removed item is in the archive."""
        drop(workspace, "a.md", "text")
        name = backlog.remove("a.md")
        assert name.endswith("-removed-a.md")
        assert "text" == (workspace.archive / name).read_text()
        assert [] == backlog.items()

    def test_a_parked_one_can_be_removed(self, workspace: Workspace, backlog: Backlog) -> None:
        """Removal falls back to a parked item if the backlog has none of the name."""
        drop(workspace, "a.md", "parked")
        backlog.park("a.md", "why")
        drop(workspace, "a.md", "new")
        assert "new" == (workspace.archive / backlog.remove("a.md")).read_text()
        assert "parked" == (workspace.archive / backlog.remove("a.md")).read_text()
        assert [] == names(workspace.parked)
