"""The current commit, read from the files of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.git import commit_of
from tests.git_project import GitProject, isolate_git


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    isolate_git(monkeypatch, tmp_path / "home")
    return GitProject(tmp_path / "project")


def test_the_current_commit(project: GitProject) -> None:
    """It matches git's, on a branch, packed, detached, below the top, and in a worktree."""
    assert commit_of(project.root) is None
    file = project.write("below/a.txt")
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "first")
    first = project.git("rev-parse", "HEAD").strip()
    assert first == commit_of(project.root) == commit_of(file.parent)
    project.git("pack-refs", "--all")
    assert first == commit_of(project.root)
    tree = project.root.parent / "tree"
    project.git("worktree", "add", "--quiet", "-b", "other", str(tree))
    project.git("commit", "--quiet", "--allow-empty", "--message", "second", cwd=tree)
    second = project.git("rev-parse", "HEAD", cwd=tree).strip()
    assert [first, second] == [commit_of(project.root), commit_of(tree)]
    project.git("checkout", "--quiet", "--detach", cwd=tree)
    assert second == commit_of(tree)


def test_no_commit(project: GitProject) -> None:
    """Outside a repository, and where HEAD is unreadable, the commit is None."""
    assert commit_of(project.root.parent) is None
    head = project.root / ".git" / "HEAD"
    for text in ("", "ref: HEAD\n", "ref: refs/heads/missing\n", "no commit\n"):
        head.write_text(text)
        assert commit_of(project.root) is None
