"""The current commit, read from the files of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.git import commit_of, current_branch
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


@pytest.mark.parametrize("name", ["plain", "a\u00a0b", "a\u2028b", "a\x85b", "\udcff"])
def test_a_branch_with_odd_characters(name: str, project: GitProject) -> None:
    """Names with characters that Unicode counts as blanks or line ends are read as git does."""
    project.write("a.txt")
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "first")
    commit = project.git("rev-parse", "HEAD").strip()
    project.git("switch", "--quiet", "--create", name)
    assert [name, commit] == [current_branch(project.root), commit_of(project.root)]
    project.git("pack-refs", "--all")
    assert [name, commit] == [current_branch(project.root), commit_of(project.root)]
