"""The `.cuggino` folder: its folders, its lock, what is stored in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from cuggino.errors import ConfigError, StorageError
from cuggino.storage import Workspace, read_focus, read_text_file
from cuggino.storage.atomic import write_atomic
from cuggino.storage.focus import BIGGEST
from tests.vectors import rows


class TestFolders:
    def test_they_are_made(self, tmp_path: Path) -> None:
        """Opening makes the folders of the original and two more, and again without an error."""
        (row,) = (row for row in rows("cuggino_config") if row["op"] == "folders")
        for _ in range(2):
            Workspace(tmp_path).open()
        made = [".cuggino", *(p.relative_to(tmp_path).as_posix() for p in tmp_path.glob("*/[!.]*"))]
        more = [".cuggino/archive", ".cuggino/parked"]
        assert sorted([*row["expected"], *more]) == sorted(made)

    def test_making_one_touches_nothing(self, tmp_path: Path) -> None:
        """A workspace that nobody opened is not on the disk."""
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
    def test_a_file_in_a_folders_place(
        self, tmp_path: Path, place: str, deed: Callable[[Workspace], object]
    ) -> None:
        """Where a folder cannot be made, the error names what was tried and the place."""
        file = tmp_path / place
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine")
        with pytest.raises(StorageError) as caught:
            deed(Workspace(tmp_path))
        assert str(file) in caught.value.message
        assert "mine" == file.read_text()


class TestSession:
    def test_its_files_go_at_the_end(self, tmp_path: Path) -> None:
        """Whatever ends a session removes its files, and no others."""
        workspace = Workspace(tmp_path)
        workspace.open()
        other = workspace.wip / "left-over.md"
        other.write_text("of a killed run")
        with pytest.raises(ZeroDivisionError), workspace.session() as session:
            for file in session.files:
                file.write_text("x")
            raise ZeroDivisionError
        assert [other] == list(workspace.wip.iterdir())

    def test_ids_are_ordered_in_time(self, tmp_path: Path) -> None:
        """Session ids are version 7 UUIDs, which sort by time."""
        ids = []
        for _ in range(3):
            with Workspace(tmp_path).session() as session:
                ids.append(session.id)
        assert sorted(set(ids)) == ids
        assert {7} == {UUID(made).version for made in ids}


class TestItems:
    def test_spec_issues_are_ordered_in_time(self, tmp_path: Path) -> None:
        """Each issue is a file of its own, named so that the names sort by time."""
        workspace = Workspace(tmp_path)
        names = [workspace.write_spec_issue(f"issue {n}") for n in range(50)]
        assert sorted(set(names)) == names
        assert all(UUID(re.sub(r"\.md$", "", name)).version == 7 for name in names)
        assert [f"issue {n}" for n in range(50)] == [
            (workspace.spec_issues / name).read_text() for name in names
        ]
        assert sorted(names) == sorted(file.name for file in workspace.spec_issues.iterdir())

    def test_findings_have_a_folder_of_their_own(self, tmp_path: Path) -> None:
        """A finding of the audit is stored in `tbd`, as it is."""
        workspace = Workspace(tmp_path)
        name = workspace.write_tbd_item("späße\r\n")
        assert "späße\r\n".encode() == (workspace.tbd / name).read_bytes()


class TestAtomicWriting:
    def test_the_new_text_takes_the_place(self, tmp_path: Path) -> None:
        """The file has the new text byte for byte, and nothing lies beside it."""
        file = tmp_path / "file.md"
        for text in ("old", "new\r\n\n"):
            write_atomic(file, text)
        assert b"new\r\n\n" == file.read_bytes()
        assert [file] == list(tmp_path.iterdir())

    @pytest.mark.parametrize("method", ["replace", "open"])
    def test_a_failure_leaves_the_old_text(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
    ) -> None:
        """If writing or renaming fails the old text is there, and nothing lies beside it."""
        file = tmp_path / "file.md"
        write_atomic(file, "old")

        def fail(*_args: object, **_kwargs: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(Path, method, fail)
            with pytest.raises(OSError, match="No space left"):
                write_atomic(file, "new")
        assert "old" == file.read_text()
        assert [file] == list(tmp_path.iterdir())


class TestFocus:
    def test_a_text_is_taken_as_it_is(self, tmp_path: Path) -> None:
        """A focus without `@` in front is what the agent is told."""
        for text in ("add a page", " padded ", "mail a@b.c", "two\nlines"):
            assert text == read_focus(text, tmp_path)

    def test_a_file_is_read(self, tmp_path: Path) -> None:
        """`@path` becomes the path and the content of the file, relative to the project."""
        (tmp_path / "deep").mkdir()
        (tmp_path / "deep/page.md").write_text("\n# Page\n\nblue\n")
        expected = "The file `deep/page.md`, which says:\n\n# Page\n\nblue"
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
    def test_what_cannot_be_used(self, tmp_path: Path, focus: str, words: str) -> None:
        """A blank focus, a missing file and a blank one are errors with a hint, and code 2."""
        (tmp_path / "blank.md").write_text(" \n")
        with pytest.raises(ConfigError, match=words) as caught:
            read_focus(focus, tmp_path)
        assert caught.value.hint
        assert 2 == caught.value.code

    def test_a_named_file(self, tmp_path: Path) -> None:
        """The error of another option's file names that option."""
        with pytest.raises(ConfigError, match=r"^--review: .*gone\.md cannot be read"):
            read_text_file(tmp_path / "gone.md", what="--review")

    def test_a_file_beyond_every_model(self, tmp_path: Path) -> None:
        """What no agent can be told is refused unread; what just fits is told whole."""
        page = tmp_path / "page.md"
        page.write_text("è" * BIGGEST)
        assert BIGGEST == len(read_text_file(page, what="--focus"))
        page.write_text("è" * (BIGGEST + 1))
        with pytest.raises(ConfigError, match="too large"):
            read_focus("@page.md", tmp_path)
