"""Commits of a real git that fail, hang or are disposed, and locks of a git that was killed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from reactivex import interval, operators as ops

from cuggino import run
from cuggino.events import CommitFailed, CommitPerformed
from cuggino.git import commit_obstacles
from cuggino.stages import GitRepository, commit_to
from cuggino.testing import no_leaks
from tests.git_project import EXCLUDED, GitProject, commit, failure, is_alive, merging

pytestmark = pytest.mark.usefixtures("impatient")


def test_a_failing_hook_tells_why(project: GitProject) -> None:
    """The event has the hook's words, nothing is committed, the changes are kept."""
    project.hook("pre-commit", "echo 'lint: a.txt is ugly' >&2; exit 3")
    project.write("a.txt")
    message = failure(project)
    assert message.startswith("git commit exited with code 1")
    assert "lint: a.txt is ugly" in message
    assert 0 == project.count()
    assert (project.root / "a.txt").exists()


def test_a_hook_that_prints_does_not_disturb(project: GitProject) -> None:
    """The words of a hook that passes are no part of the hash."""
    project.hook("pre-commit", "echo out; echo err >&2")
    project.hook("post-commit", "echo out; echo err >&2")
    project.write("a.txt")
    event = commit(project)
    assert isinstance(event, CommitPerformed)
    assert project.git("rev-parse", "--short", "HEAD").strip() == event.commit_hash


@pytest.mark.real_agent
def test_a_hook_that_hangs_is_ended(project: GitProject, tmp_path: Path) -> None:
    """At the timeout the hook and its children are ended, and the index is not locked."""
    project.hook("pre-commit", f"sleep 600 & echo $! > {tmp_path}/pid; wait")
    project.write("a.txt")
    with no_leaks():
        assert "git commit was ended after 5 s" == failure(project, timeout=5)
    assert not is_alive(int((tmp_path / "pid").read_text()))
    assert [] == list((project.root / ".git").glob("*.lock"))
    (project.root / ".git/hooks/pre-commit").unlink()
    assert isinstance(commit(project), CommitPerformed)


def test_a_hook_that_ignores_signals_leaves_no_lock(project: GitProject) -> None:
    """A hook that only SIGKILL ends, does so, and the next commit works."""
    project.hook("pre-commit", "trap '' INT TERM; sleep 600")
    project.write("a.txt")
    with no_leaks():
        assert "git commit was ended after 3 s" == failure(project, timeout=3)
    assert [] == list((project.root / ".git").glob("*.lock"))


def test_a_signature_that_waits_is_ended(project: GitProject, tmp_path: Path) -> None:
    """A signing program that waits for a password is ended at the timeout."""
    signer = tmp_path / "gpg"
    signer.write_text("#!/bin/sh\nexec sleep 600\n")
    signer.chmod(0o755)
    project.git("config", "commit.gpgsign", "true")
    project.git("config", "gpg.program", str(signer))
    project.write("a.txt")
    with no_leaks():
        assert "git commit was ended after 3 s" == failure(project, timeout=3)
    assert 0 == project.count()


def test_an_editor_is_not_opened(project: GitProject) -> None:
    """No configured editor is waited for."""
    project.git("config", "core.editor", "sleep 600")
    project.git("config", "commit.verbose", "true")
    project.write("a.txt")
    assert isinstance(commit(project), CommitPerformed)


def test_no_repository(project: GitProject, tmp_path: Path) -> None:
    """In a folder without a repository the commit fails with git's words, and has no head."""
    plain = tmp_path / "plain"
    plain.mkdir()
    assert "not a git repository" in failure(project, cwd=plain)
    assert run(GitRepository(plain).head()) is None


def test_no_author(project: GitProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a known author the commit fails with git's message."""
    for name in ("name", "email"):
        project.git("config", "--unset", f"user.{name}")
    project.git("config", "user.useConfigOnly", "true")
    project.write("a.txt")
    assert "git commit exited with code 128" in failure(project)


@pytest.mark.usefixtures("impatient")
def test_a_locked_index(project: GitProject) -> None:
    """A lock of the index fails the commit, and stays in place."""
    project.write("a.txt")
    lock = project.write(".git/index.lock", "")
    assert "index.lock" in failure(project)
    assert lock.exists()


def test_a_conflict(project: GitProject) -> None:
    """Unresolved conflicts are neither committed nor marked as resolved."""
    merging(project)
    project.write("other")
    assert "unresolved merge conflicts in a" == failure(project)
    assert "UU a\n?? other\n" == project.git("status", "--porcelain")


def test_a_nested_repository(project: GitProject) -> None:
    """It is named, and not committed."""
    GitProject(project.root / "nested")
    assert "nested/ is a repository of its own" in failure(project)


def test_git_is_not_installed(
    project: GitProject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without git a commit fails, and the head is None."""
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert "cannot start git" in failure(project)
    assert run(GitRepository(project.root).head()) is None


def test_other_errors_stay_errors(project: GitProject) -> None:
    """An error that is not git's is the error of the stage."""

    class Broken:
        def head(self) -> None:
            raise NotImplementedError

        def commit(self, message: str, *, exclude: tuple[Path, ...] = ()) -> None:
            raise ZeroDivisionError(message)

    with pytest.raises(ZeroDivisionError):
        run(commit_to(Broken(), "work", iteration=1))  # type: ignore[arg-type]


def test_disposal_ends_the_hook(project: GitProject) -> None:
    """A commit that is disposed while its hook runs leaves no process and no lock."""
    project.hook("pre-commit", "echo started > started; sleep 600")
    project.write("a.txt")
    repository = GitRepository(project.root, exclude=EXCLUDED)
    started = interval(0.01).pipe(ops.filter(lambda _: (project.root / "started").exists()))
    with no_leaks():
        assert run(repository.commit("work").pipe(ops.take_until(started))) is None
    assert [] == list((project.root / ".git").glob("*.lock"))


class TestSubmodule:
    """Changes within a submodule are left for a person to commit there."""

    LEFT = "submodule lib/módule has uncommitted changes; commit them there"

    @pytest.fixture
    def module(self, project: GitProject, tmp_path: Path) -> GitProject:
        """A submodule of the project, with one commit."""
        inner = GitProject(tmp_path / "inner")
        inner.write("m.txt")
        assert isinstance(commit(inner), CommitPerformed)
        allow = ("-c", "protocol.file.allow=always")
        project.git(*allow, "submodule", "--quiet", "add", str(inner.root), "lib/módule")
        assert isinstance(commit(project), CommitPerformed)
        return GitProject(project.root / "lib/módule")

    @pytest.mark.parametrize("file", ["m.txt", "new.txt"])
    def test_alone(self, project: GitProject, module: GitProject, file: str) -> None:
        """With nothing else to commit, the commit fails for it."""
        module.write(file, "changed\n")
        assert self.LEFT == failure(project)
        assert 1 == project.count()

    def test_beside_others(self, project: GitProject, module: GitProject) -> None:
        """The rest is committed after a report of the remaining changes."""
        module.write("m.txt", "changed\n")
        project.write("a.txt")
        events: list[object] = []
        run(commit_to(GitRepository(project.root), "work", iteration=2), events.append)
        told, made = events
        assert CommitFailed(iteration=2, message=self.LEFT) == told
        assert isinstance(made, CommitPerformed)
        assert "a.txt" in project.committed()

    def test_known_before(self, project: GitProject, module: GitProject) -> None:
        """Uncommitted changes are reported before a run; a new commit of the submodule is not."""
        module.write("m.txt", "changed\n")
        (found,) = commit_obstacles(project.root)
        assert "uncommitted changes within a submodule, lib/módule" == found.what
        assert isinstance(commit(module), CommitPerformed)
        assert [] == list(commit_obstacles(project.root))

    def test_committed_in_there(self, project: GitProject, module: GitProject) -> None:
        """A new commit of the submodule is committed, and is not a failure."""
        module.write("m.txt", "changed\n")
        assert isinstance(commit(module), CommitPerformed)
        assert isinstance(commit(project), CommitPerformed)
        assert "" == project.git("status", "--porcelain")

    def test_from_a_folder(self, project: GitProject, module: GitProject) -> None:
        """A folder of the project finds it by its own path."""
        module.write("m.txt", "changed\n")
        assert self.LEFT.replace("lib/", "") == failure(project, cwd=project.root / "lib")


# -- a repository in which git was killed: its locks are put away, and commits work again


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


def test_locks_of_an_agent(project: GitProject) -> None:
    """The locks of a git that was ended with its agent do not keep its work from a commit."""
    repository = GitRepository(project.root)
    project.write("b.txt")
    for name in LOCKS:
        (project.root / ".git" / name).touch()
    made = run(repository.commit("Work"))
    assert made is not None
    assert "Work" == project.git("log", "-1", "--format=%s").strip()


def test_locks_from_before(project: GitProject) -> None:
    """A lock older than the run stays, and git reports it."""
    locked(project, project.root / ".git")
    assert [] == recovered(project.root, datetime.now(UTC) + timedelta(hours=1))
    assert "index.lock" in failure(project)
