"""A repository in which git was killed: its locks are put away, and commits work again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cuggino import run
from cuggino.events import CommitPerformed
from cuggino.stages import GitRepository
from tests.git_project import GitProject, commit, failure

pytestmark = pytest.mark.usefixtures("impatient")
LOCKS = ("index.lock", "HEAD.lock", "refs/heads/main.lock")
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def recovered(folder: Path, since: datetime = LONG_AGO) -> list[str]:
    """Return the removed locks."""
    removed = run(GitRepository(folder).recover(since))
    assert removed is not None
    return removed


def locked(project: GitProject, folder: Path) -> list[str]:
    """Create the leftovers of a git killed during a commit."""
    paths = [str((folder / name).resolve()) for name in LOCKS]
    for path in paths:
        Path(path).touch()
    project.write("a.txt")
    assert "lock" in failure(project)
    return paths


@pytest.mark.parametrize("where", [".", "folder"])
def test_the_locks_of_a_commit(project: GitProject, where: str) -> None:
    """Those of the index, of HEAD and of the branch are removed, from a folder of it as well."""
    (project.root / "folder").mkdir()
    paths = locked(project, project.root / ".git")
    assert paths == recovered(project.root / where)
    assert isinstance(commit(project), CommitPerformed)
    assert [] == recovered(project.root)


def test_on_no_branch(project: GitProject) -> None:
    """Without a branch only the other locks exist, and are removed."""
    project.write("b.txt")
    assert isinstance(commit(project), CommitPerformed)
    project.git("checkout", "--quiet", "--detach")
    paths = locked(project, project.root / ".git")
    assert paths[:2] == recovered(project.root)


def test_in_a_worktree(project: GitProject, tmp_path: Path) -> None:
    """A worktree has its own locks, beside that of its branch."""
    project.write("b.txt")
    assert isinstance(commit(project), CommitPerformed)
    project.git("worktree", "add", "--quiet", "-b", "other", str(tmp_path / "tree"))
    own = project.root / ".git/worktrees/tree/index.lock"
    branch = project.root / ".git/refs/heads/other.lock"
    others = project.root / ".git/index.lock"
    for lock in (own, branch, others):
        lock.touch()
    assert {str(own.resolve()), str(branch.resolve())} == {*recovered(tmp_path / "tree")}
    assert others.exists()


def test_locks_from_before(project: GitProject) -> None:
    """A lock older than the run stays, and git reports it."""
    locked(project, project.root / ".git")
    assert [] == recovered(project.root, datetime.now(UTC) + timedelta(hours=1))
    assert "index.lock" in failure(project)
