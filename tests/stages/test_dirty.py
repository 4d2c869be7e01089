"""Commits in a dirty work tree: what a person has not committed stays out until it changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cuggino import run
from cuggino.events import CommitPerformed, DirtyFilesCommitted, Event
from cuggino.stages import GitRepository, commit_to
from tests.git_project import GitProject, make_once


@pytest.fixture
def mine(project: GitProject) -> GitProject:
    """A repository in which a person has changed files in every way."""

    def make() -> None:
        for name in ("changed", "gone", "staged", "removed", "same", "sub/deep"):
            project.write(name, "old\n")
        project.git("add", "--all")
        project.git("commit", "--quiet", "--message", "first")
        project.write("changed", "mine\n")
        (project.root / "gone").unlink()
        project.write("staged", "mine\n")
        project.write("added", "mine\n")
        project.git("add", "staged", "added")
        project.git("rm", "--quiet", "removed")
        project.write("untracked", "mine\n")
        project.write("sub/deep", "mine\n")

    make_once("dirty", project.root, make)
    return project


DIRTY = {"changed", "gone", "staged", "added", "removed", "untracked", "sub/deep"}


def look(project: GitProject, folder: str = ".") -> dict[str, str]:
    states = run(GitRepository(project.root / folder).dirty())
    assert states is not None
    return states


def commit(project: GitProject, dirty: dict[str, str], folder: str = ".") -> list[Event]:
    """Commit, and return the events."""
    seen: list[Event] = []
    repository = GitRepository(project.root / folder)
    run(commit_to(repository, "work", iteration=1, dirty=dirty), seen.append)
    return seen


def changes(project: GitProject) -> set[str]:
    """Return what the latest commit has changed."""
    shown = project.git("show", "--format=", "--name-only", "--no-renames", "-z")
    return set(shown.split("\0")) - {""}


def test_dirty_files(mine: GitProject) -> None:
    """All changed files are dirty, staged or not, and the missing ones have an empty state."""
    states = look(mine)
    assert DIRTY == set(states)
    assert {"gone", "removed"} == {name for name, state in states.items() if not state}


def test_they_stay_out(mine: GitProject) -> None:
    """A commit holds what was changed since; a person's files stay as they are, staged ones too."""
    dirty = look(mine)
    before = mine.git("status", "--porcelain")
    mine.write("same", "work\n")
    mine.write("new", "work\n")
    (event,) = commit(mine, dirty)
    assert isinstance(event, CommitPerformed)
    assert {"same", "new"} == changes(mine)
    assert before == mine.git("status", "--porcelain")


def test_without_work_there_is_no_commit(mine: GitProject) -> None:
    """A person's files alone are not committed."""
    assert [] == commit(mine, look(mine))
    assert 1 == mine.count()


@pytest.mark.parametrize("name", sorted(DIRTY))
def test_a_file_that_both_changed(mine: GitProject, name: str) -> None:
    """It is committed, and an event names it first."""
    dirty = look(mine)
    mine.write(name, "both\n")
    mixed, performed = commit(mine, dirty)
    assert isinstance(mixed, DirtyFilesCommitted)
    assert (name,) == mixed.paths
    assert isinstance(performed, CommitPerformed)
    assert {name} == changes(mine)


def test_a_removed_file(mine: GitProject) -> None:
    """A dirty file that was removed since is committed as removed."""
    dirty = look(mine)
    (mine.root / "changed").unlink()
    mixed, _ = commit(mine, dirty)
    assert isinstance(mixed, DirtyFilesCommitted)
    assert "changed" not in mine.committed()


def test_a_reverted_file(mine: GitProject) -> None:
    """Of a dirty file that was reverted there is nothing to commit."""
    dirty = look(mine)
    mine.git("checkout", "--quiet", "changed", "gone")
    assert [] == commit(mine, dirty)


def test_times_do_not_matter(mine: GitProject) -> None:
    """A file that was only touched, or written with the same content, is unchanged."""
    dirty = look(mine)
    os.utime(mine.root / "changed", (1, 1))
    mine.write("untracked", "mine\n")
    assert [] == commit(mine, dirty)


def test_the_executable_bit_matters(mine: GitProject) -> None:
    """Another executable bit is a change."""
    dirty = look(mine)
    (mine.root / "changed").chmod(0o755)
    assert 2 == len(commit(mine, dirty))


def test_links_and_odd_names(mine: GitProject) -> None:
    """Links count with their target, and any name will do."""
    (mine.root / "link").symlink_to("same")
    odd = Path(os.fsdecode(os.fsencode(mine.root) + b"/o\xffd\n*"))
    odd.write_text("mine\n")
    dirty = look(mine)
    assert "o\\xffd\n*" in dirty
    assert [] == commit(mine, dirty)
    (mine.root / "link").unlink()
    (mine.root / "link").symlink_to("changed")
    odd.write_text("both\n")
    mixed, _ = commit(mine, dirty)
    assert isinstance(mixed, DirtyFilesCommitted)
    assert {"link", "o\\xffd\n*"} == set(mixed.paths)


def test_a_project_in_a_folder(mine: GitProject) -> None:
    """Paths are relative to the project, and files beside it do not count."""
    dirty = look(mine, "sub")
    assert {"deep"} == set(dirty)
    mine.write("sub/new", "work\n")
    commit(mine, dirty, "sub")
    assert {"sub/new"} == changes(mine)


def test_thousands_of_staged_files(mine: GitProject) -> None:
    """However many files stay out, git is asked once."""
    for number in range(3000):
        mine.write(f"many/{'x' * 150}{number}", "mine\n")
    mine.git("add", "many")
    dirty = look(mine)
    mine.write("new", "work\n")
    commit(mine, dirty)
    assert {"new"} == changes(mine)


def test_before_the_first_commit(project: GitProject) -> None:
    """Also without any commit yet, a person's files stay out."""
    project.write("mine")
    dirty = look(project)
    project.write("work")
    commit(project, dirty)
    assert {"work"} == project.committed()


def test_without_a_repository(tmp_path: Path, project: GitProject) -> None:
    """Nothing is dirty, and nothing is an ancestor that could be lost."""
    plain = tmp_path / "plain"
    plain.mkdir()
    assert {} == run(GitRepository(plain).dirty())
    assert run(GitRepository(plain).is_ancestor("0" * 40)) is True


def test_ancestors(mine: GitProject) -> None:
    """A commit is lost once the branch is at another one that does not follow it."""
    first = mine.git("rev-parse", "HEAD").strip()
    repository = GitRepository(mine.root)
    assert run(repository.is_ancestor(first)) is True
    mine.git("commit", "--quiet", "--message", "second")
    assert run(repository.is_ancestor(first)) is True
    mine.git("commit", "--quiet", "--amend", "--message", "other")
    assert run(repository.is_ancestor(first)) is True
    mine.git("checkout", "--quiet", "--orphan", "fresh")
    mine.git("commit", "--quiet", "--message", "fresh")
    assert run(repository.is_ancestor(first)) is False
