"""The `.cuggino` folder: its folders, its lock and its files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from cuggino.errors import ConfigError, StorageError
from cuggino.storage import Workspace, read_focus, read_text_file
from cuggino.storage.focus import BIGGEST
from tests.vectors import rows


class TestFolders:
    def test_they_are_created(self, tmp_path: Path) -> None:
        """Opening creates the original's folders and two more, repeatedly without an error."""
        (row,) = (row for row in rows("cuggino_config") if row["op"] == "folders")
        for _ in range(2):
            Workspace(tmp_path).open()
        made = [".cuggino", *(p.relative_to(tmp_path).as_posix() for p in tmp_path.glob("*/[!.]*"))]
        more = [".cuggino/archive", ".cuggino/parked"]
        assert sorted([*row["expected"], *more]) == sorted(made)

    def test_an_unopened_workspace(self, tmp_path: Path) -> None:
        """A workspace that was never opened does not exist on disk."""
        Workspace(tmp_path)
        assert [] == list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        ("place", "deed"),
        [
            (".cuggino", lambda w: w.open()),
            (".cuggino", lambda w: w.lock().__enter__()),
            (".cuggino", lambda w: w.write_spec_issue("x")),
            (".cuggino/wip", lambda w: w.open()),
            (".cuggino/spec-issues", lambda w: w.write_spec_issue("x")),
            (".cuggino/tbd", lambda w: w.write_tbd_item("x")),
        ],
    )
    def test_a_file_in_place_of_a_folder(
        self, tmp_path: Path, place: str, deed: Callable[[Workspace], object]
    ) -> None:
        """The error names the operation and the path."""
        file = tmp_path / place
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine")
        with pytest.raises(StorageError) as caught:
            deed(Workspace(tmp_path))
        assert str(file) in caught.value.message
        assert "mine" == file.read_text()


class TestSession:
    def test_its_files_are_removed_at_the_end(self, tmp_path: Path) -> None:
        """However a session ends, its files are removed, and no others."""
        workspace = Workspace(tmp_path)
        workspace.open()
        other = workspace.wip / "left-over.md"
        other.write_text("of a killed run")
        with pytest.raises(ZeroDivisionError), workspace.session() as session:
            for file in session.files:
                file.parent.mkdir(exist_ok=True)
                file.write_text("x")
            raise ZeroDivisionError
        assert [other] == list(workspace.wip.iterdir())

    def test_ids_are_ordered_in_time(self, tmp_path: Path) -> None:
        """Session IDs are version 7 UUIDs, which sort by time."""
        ids = []
        for _ in range(3):
            with Workspace(tmp_path).session() as session:
                ids.append(session.id)
        assert sorted(set(ids)) == ids
        assert {7} == {UUID(made).version for made in ids}


class TestItems:
    def test_spec_issues_are_ordered_in_time(self, tmp_path: Path) -> None:
        """Each issue is a separate file whose name sorts by time."""
        workspace = Workspace(tmp_path)
        names = [workspace.write_spec_issue(f"issue {n}") for n in range(50)]
        assert sorted(set(names)) == names
        assert all(UUID(re.sub(r"\.md$", "", name)).version == 7 for name in names)
        assert [f"issue {n}" for n in range(50)] == [
            (workspace.spec_issues / name).read_text() for name in names
        ]
        assert sorted(names) == sorted(file.name for file in workspace.spec_issues.iterdir())

    def test_findings_have_a_separate_folder(self, tmp_path: Path) -> None:
        """A finding of the audit is stored verbatim in `tbd`."""
        workspace = Workspace(tmp_path)
        name = workspace.write_tbd_item("späße\r\n")
        assert "späße\r\n".encode() == (workspace.tbd / name).read_bytes()


class TestFocus:
    def test_a_text_is_used_verbatim(self, tmp_path: Path) -> None:
        """A focus without a leading `@` is passed to the agent."""
        for text in ("add a page", " padded ", "mail a@b.c", "two\nlines"):
            assert text == read_focus(text, tmp_path)

    def test_a_file_is_read(self, tmp_path: Path) -> None:
        """`@path` becomes the path and the content of the file, relative to the project."""
        (tmp_path / "deep").mkdir()
        (tmp_path / "deep/page.md").write_text("\n# Page\n\nblue\n")
        expected = "The file `deep/page.md`, with this content:\n\n# Page\n\nblue"
        assert expected == read_focus("@deep/page.md", tmp_path)
        absolute = tmp_path / "deep/page.md"
        assert f"`{absolute}`" in read_focus(f"@{absolute}", tmp_path / "deep")

    @pytest.mark.parametrize(
        ("focus", "words"),
        [
            ("", "the focus is empty"),
            (" \n", "the focus is empty"),
            ("@missing.md", "--focus @missing.md: .* cannot be read: No such file or directory"),
            ("@", "--focus @: .* cannot be read: Is a directory"),
            ("@blank.md", "--focus @blank.md: .* is empty"),
        ],
    )
    def test_invalid_focus(self, tmp_path: Path, focus: str, words: str) -> None:
        """A blank focus, a missing file and a blank one are errors with a hint, and code 2."""
        (tmp_path / "blank.md").write_text(" \n")
        with pytest.raises(ConfigError, match=words) as caught:
            read_focus(focus, tmp_path)
        assert caught.value.hint
        assert 2 == caught.value.code

    def test_a_file_of_another_option(self, tmp_path: Path) -> None:
        """The error of another option's file names that option."""
        with pytest.raises(ConfigError, match=r"^--review: .*gone\.md cannot be read"):
            read_text_file(tmp_path / "gone.md", what="--review")

    def test_an_oversized_file(self, tmp_path: Path) -> None:
        """A file too large for any model is rejected unread; one that just fits is passed whole."""
        page = tmp_path / "page.md"
        page.write_text("è" * BIGGEST)
        assert BIGGEST == len(read_text_file(page, what="--focus"))
        page.write_text("è" * (BIGGEST + 1))
        with pytest.raises(ConfigError, match="too large"):
            read_focus("@page.md", tmp_path)


def test_session_files_behind_a_link_are_no_leftovers(tmp_path: Path) -> None:
    """Leftovers are removed, but not in a folder that a link leads to."""
    other, here = Workspace(tmp_path / "other"), Workspace(tmp_path / "here")
    with other.session() as session:
        session.keep = True
    here.folder.mkdir(parents=True)
    here.wip.symlink_to(other.wip)
    assert ([session.id], []) == (other.sessions(), here.sessions())


def test_a_desk_keeps_work_in_its_folder_and_all_else_at_home(tmp_path: Path) -> None:
    """Two desks are held at once, beside their home; what they store is found at home."""
    home = Workspace(tmp_path / "home")
    home.open()
    first, second = (home.desk(tmp_path / name) for name in ("1", "2"))
    with home.lock(), first.session() as one, second.session() as two:
        assert tmp_path / "1" / ".cuggino" / "wip" == one.session_file.parent
        assert tmp_path / "2" / ".cuggino" / "wip" == two.session_file.parent
        first.remember_setup("make")
        first.write_spec_issue("# Unclear")
        second.write_tbd_item("# Odd")
    assert all(ws.knows_setup("make") for ws in (first, second, home))
    assert ["Unclear", "Odd"] == [issue.title for issue in home.issues()]
    assert (home.journal, home.memory, home.prompts) == (
        first.journal,
        first.memory,
        first.prompts,
    )
    assert not (tmp_path / "1" / ".cuggino" / "tbd").exists()
