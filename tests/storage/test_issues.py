"""Spec issues, findings, and the memory of dismissed ones."""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cuggino.errors import StorageError
from cuggino.storage import Issue, Workspace

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)


def test_they_are_listed_in_order(workspace: Workspace) -> None:
    """Spec issues come first, then findings, each in order of time."""
    finding = workspace.write_tbd_item("\n## A finding\nmore")
    issues = [workspace.write_spec_issue(f"Issue {n}\n\ntext") for n in range(2)]
    (workspace.spec_issues / ".hidden").write_text("x")
    (workspace.spec_issues / "folder").mkdir()
    expected = [
        ("spec-issue", issues[0], "Issue 0"),
        ("spec-issue", issues[1], "Issue 1"),
        ("tbd", finding, "A finding"),
    ]
    found = workspace.issues()
    assert expected == [(issue.kind, issue.name, issue.title) for issue in found]
    assert workspace.tbd / finding == found[2].path


def test_without_folders(tmp_path: Path) -> None:
    """A workspace that was never opened has no issues and no memory."""
    assert ([], "") == (Workspace(tmp_path).issues(), Workspace(tmp_path).read_memory())


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("", "(empty)"),
        ("\n#\n \n", "(empty)"),
        ("\ufffe\n", "\ufffe"),
        ("x" * 5_000_000, "x" * 200 + "..."),
        ("#hashtag", "hashtag"),
    ],
)
def test_titles(workspace: Workspace, text: str, title: str) -> None:
    """The title is the first line with text, truncated, and never an error."""
    workspace.write_tbd_item(text)
    assert [title] == [issue.title for issue in workspace.issues()]


def test_resolved_is_archived(workspace: Workspace) -> None:
    """A resolved issue is in the archive, and not in the memory."""
    workspace.write_spec_issue("text")
    (issue,) = workspace.issues()
    name = workspace.resolve(issue)
    assert name.endswith(f"-resolved-{issue.name}")
    assert "text" == (workspace.archive / name).read_text()
    assert ([], "") == (workspace.issues(), workspace.read_memory())


def test_dismissed_is_remembered(workspace: Workspace) -> None:
    """Each dismissed issue is in the archive, and in the memory with date, reason and text."""
    workspace.write_tbd_item("# Two names\n\nfor one thing")
    workspace.write_tbd_item("y" * 3000)
    first, second = workspace.issues()
    name = workspace.dismiss(first, "both\nare fine", at=AT)
    assert "-dismissed-" in name
    assert (workspace.archive / name).exists()
    expected = """\
# Memory

What was discussed and dismissed. The audit agent reads this and does not raise it again.

## 2026-03-01: Two names

Dismissed: both are fine

> # Two names
>
> for one thing
"""
    assert expected == workspace.read_memory()
    workspace.dismiss(second, "no", at=AT)
    memory = workspace.read_memory()
    assert memory.startswith(expected)
    assert memory.endswith("> " + "y" * 1000 + " ...\n")
    assert [] == workspace.issues()


def test_manual_memory_is_kept(workspace: Workspace) -> None:
    """Text that a person wrote into the memory is kept."""
    workspace.memory.write_text("Never mention tabs.\n")
    workspace.write_tbd_item("Tabs")
    workspace.dismiss(workspace.issues()[0], "see above", at=AT)
    assert workspace.read_memory().startswith("Never mention tabs.\n\n## 2026-03-01: Tabs\n")


def test_a_missing_issue(workspace: Workspace) -> None:
    """A missing issue is an error, and is not remembered."""
    issue = Issue(kind="tbd", name="x.md", path=workspace.tbd / "x.md", title="x")
    with pytest.raises(StorageError, match=r"x\.md is gone"):
        workspace.resolve(issue)
    with pytest.raises(StorageError, match=r"x\.md is gone"):
        workspace.dismiss(issue, "why", at=AT)
    assert "" == workspace.read_memory()


def test_a_full_disk(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the memory cannot be written, it is unchanged and the issue stays."""
    workspace.memory.write_text("Mine.\n")
    workspace.write_tbd_item("text")
    (issue,) = workspace.issues()

    def refuse(_handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(StorageError, match="No space left on device"):
            workspace.dismiss(issue, "why", at=AT)
    assert "Mine.\n" == workspace.read_memory()
    assert [issue] == workspace.issues()
