"""Changes by people: items, specifications, and answers to questions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cuggino.errors import ConfigError, FileChanged, StorageError
from cuggino.storage import (
    LONGEST,
    Backlog,
    Workspace,
    answer_issue,
    move_item,
    read_written,
    rewrite,
    spec_files,
)

AT = datetime(2026, 11, 23, tzinfo=UTC)


def fill(workspace: Workspace, *names: str) -> None:
    """Write items that hold their own names."""
    for name in names:
        (workspace.backlog / name).write_text(name)


def order(workspace: Workspace) -> list[tuple[str, str]]:
    """Return the items in their order, each with its content."""
    return [(name, (workspace.backlog / name).read_text()) for name in Backlog(workspace).items()]


class TestRewrite:
    def test_text(self, tmp_path: Path) -> None:
        """The text is written with one line break at its end; a new digest is returned."""
        path = tmp_path / "a.md"
        path.write_text("one\n")
        before = read_written(path)
        after = rewrite(path, "two\r\nlines\r\n\r\n", digest=before.digest)
        assert b"two\nlines\n" == path.read_bytes()
        assert read_written(path) == after
        assert before.digest != after.digest

    def test_line_endings_are_kept(self, tmp_path: Path) -> None:
        """A file with the line endings of Windows keeps them."""
        path = tmp_path / "a.md"
        path.write_bytes(b"one\r\ntwo\r\n")
        rewrite(path, "one\r\nthree", digest=read_written(path).digest)
        assert b"one\r\nthree\r\n" == path.read_bytes()

    def test_a_changed_file_is_not_overwritten(self, tmp_path: Path) -> None:
        """A file that someone else saved meanwhile stays as it is."""
        path = tmp_path / "a.md"
        path.write_text("one\n")
        shown = read_written(path)
        path.write_text("by an editor\n")
        with pytest.raises(FileChanged, match="has changed since it was shown"):
            rewrite(path, "by the page\n", digest=shown.digest)
        assert "by an editor\n" == path.read_text()

    def test_a_missing_file_is_not_created(self, tmp_path: Path) -> None:
        """A file that is gone is an error, not a new file."""
        with pytest.raises(StorageError, match="is gone"):
            rewrite(tmp_path / "a.md", "text", digest="")
        assert [] == list(tmp_path.iterdir())

    def test_blank(self, tmp_path: Path) -> None:
        """A blank text is refused, and the file unchanged."""
        path = tmp_path / "a.md"
        path.write_text("one\n")
        with pytest.raises(ConfigError, match="the text is empty"):
            rewrite(path, " \n", digest=read_written(path).digest)
        assert "one\n" == path.read_text()

    @pytest.mark.parametrize("content", [b"\xff", b"a\0b", b"x" * (LONGEST + 1)])
    def test_not_editable(self, tmp_path: Path, content: bytes) -> None:
        """A file whose text could not be given back exactly is not edited."""
        path = tmp_path / "a.md"
        path.write_bytes(content)
        with pytest.raises(StorageError, match="cannot be edited here"):
            read_written(path)


class TestMove:
    @pytest.mark.parametrize(
        ("name", "up", "moved", "after"),
        [
            ("003-c.md", True, "002-c.md", ["001-a.md", "002-c.md", "003-b.md"]),
            ("001-a.md", False, "002-a.md", ["001-b.md", "002-a.md", "003-c.md"]),
            ("001-a.md", True, "001-a.md", ["001-a.md", "002-b.md", "003-c.md"]),
            ("003-c.md", False, "003-c.md", ["001-a.md", "002-b.md", "003-c.md"]),
        ],
    )
    def test_numbers_are_exchanged(
        self,
        workspace: Workspace,
        backlog: Backlog,
        name: str,
        up: bool,
        moved: str,
        after: Sequence[str],
    ) -> None:
        """An item takes the number of its neighbor, and the neighbor its own."""
        fill(workspace, "001-a.md", "002-b.md", "003-c.md")
        assert moved == move_item(backlog, name, up=up)
        assert list(after) == backlog.items()
        assert [item[-4:] for item in after] == [text[-4:] for _, text in order(workspace)]

    def test_a_kept_item_is_passed_over(self, workspace: Workspace, backlog: Backlog) -> None:
        """An item at work keeps its name; its neighbors exchange theirs around it."""
        fill(workspace, "001-a.md", "002-b.md", "003-c.md")
        assert "001-c.md" == move_item(backlog, "003-c.md", up=True, keep=["002-b.md"])
        assert ["001-c.md", "002-b.md", "003-a.md"] == backlog.items()
        with pytest.raises(ConfigError, match=r"002-b\.md is at work"):
            move_item(backlog, "002-b.md", up=True, keep=["002-b.md"])

    def test_names_without_numbers(self, workspace: Workspace, backlog: Backlog) -> None:
        """Without distinct numbers all items get new ones, in their order."""
        fill(workspace, "b.md", "001-a.md", "001-z.md")
        assert "002-b.md" == move_item(backlog, "b.md", up=True)
        assert [
            ("001-a.md", "001-a.md"),
            ("002-b.md", "b.md"),
            ("003-z.md", "001-z.md"),
        ] == order(workspace)

    def test_the_same_words(self, workspace: Workspace, backlog: Backlog) -> None:
        """Two items with the same words change places without losing either."""
        fill(workspace, "001-x.md", "002-x.md")
        move_item(backlog, "002-x.md", up=True)
        assert ["002-x.md", "001-x.md"] == [text for _, text in order(workspace)]

    def test_gone(self, backlog: Backlog) -> None:
        """An item that is gone is an error."""
        with pytest.raises(StorageError, match="is gone"):
            move_item(backlog, "001-a.md", up=True)


class TestAnswer:
    def test_first_and_second(self, workspace: Workspace, tmp_path: Path) -> None:
        """Answers are added at the end of one specification; the issues are archived."""
        specs = tmp_path / "docs" / "specs"
        for number in (1, 2):
            workspace.write_spec_issue(f"# Question {number}\n\nWhich?")
            (issue,) = workspace.issues()
            archived = answer_issue(workspace, issue, f"This {number}.\r\n", specs=specs, at=AT)
            assert archived.endswith(f"-resolved-{issue.name}")
        text = (specs / "decisions.md").read_text()
        assert 1 == text.count("# Decisions\n")
        assert text.endswith(
            "\n## 2026-11-23: Question 2\n\n> # Question 2\n>\n> Which?\n\nThis 2.\n"
        )
        assert "\n\nThis 1.\n\n## " in text
        assert [] == workspace.issues()

    def test_twice(self, workspace: Workspace, tmp_path: Path) -> None:
        """A second answer to a settled question is an error, and not written."""
        workspace.write_spec_issue("Which?")
        (issue,) = workspace.issues()
        answer_issue(workspace, issue, "This.", specs=tmp_path, at=AT)
        before = (tmp_path / "decisions.md").read_text()
        with pytest.raises(StorageError, match="is gone"):
            answer_issue(workspace, issue, "That.", specs=tmp_path, at=AT)
        assert before == (tmp_path / "decisions.md").read_text()

    def test_a_link_is_not_followed(self, workspace: Workspace, tmp_path: Path) -> None:
        """If the specification is a link, nothing is written and the issue stays."""
        workspace.write_spec_issue("Which?")
        (issue,) = workspace.issues()
        elsewhere = tmp_path / "elsewhere"
        elsewhere.write_text("")
        (tmp_path / "decisions.md").symlink_to(elsewhere)
        with pytest.raises(StorageError):
            answer_issue(workspace, issue, "This.", specs=tmp_path, at=AT)
        assert "" == elsewhere.read_text()
        assert [issue] == workspace.issues()

    def test_blank(self, workspace: Workspace, tmp_path: Path) -> None:
        """A blank answer settles nothing."""
        workspace.write_spec_issue("Which?")
        (issue,) = workspace.issues()
        with pytest.raises(ConfigError, match="the answer is empty"):
            answer_issue(workspace, issue, " \n", specs=tmp_path, at=AT)
        assert [issue] == workspace.issues()


def test_spec_files(tmp_path: Path) -> None:
    """Text files are listed in order, without hidden ones and links."""
    for name in ("b.md", "a/z.txt", ".hidden.md", ".git/x.md", "logo.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "link.md").symlink_to("b.md")
    assert ["b.md", "a/z.txt"] == spec_files(tmp_path)
