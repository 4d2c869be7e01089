"""Fingerprints of a repository: the changes that count as another state, and those that do not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cuggino import run
from cuggino.stages.fingerprint import fingerprint_stage
from tests.git_project import GitProject
from tests.stages.fingerprints import LATER, commit_all, fill, fingerprint


@pytest.fixture
def filled(project: GitProject) -> GitProject:
    return fill(project)


CHANGES: dict[str, Callable[[GitProject], object]] = {
    "a changed file": lambda p: p.write("a.txt", "x\n"),
    "a changed file of the same length": lambda p: p.write("a.txt", "z\n"),
    "a staged change": lambda p: (p.write("a.txt", "y\n"), p.git("add", "a.txt")),
    "an untracked file": lambda p: p.write("new.txt"),
    "an untracked file with other content": lambda p: p.write("new.txt", "other\n"),
    "an untracked file elsewhere": lambda p: p.write("sub/new.txt"),
    "an empty untracked file": lambda p: p.write("empty", ""),
    "a deleted file": lambda p: (p.root / "a.txt").unlink(),
    "a renamed file": lambda p: (p.root / "a.txt").rename(p.root / "c.txt"),
    "an executable file": lambda p: (p.root / "a.txt").chmod(0o755),
    "an untracked executable": lambda p: p.write("tool").chmod(0o755),
    "a link": lambda p: (p.root / "link").symlink_to("a.txt"),
    "a link to nothing": lambda p: (p.root / "link").symlink_to("nowhere"),
    "a link to itself": lambda p: (p.root / "link").symlink_to("link"),
    "a folder in place of a file": lambda p: (p.git("rm", "a.txt"), p.write("a.txt/x")),
    "a repository within": lambda p: GitProject(p.root / "inner").write("x"),
}


class TestInARepository:
    @pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
    def test_a_change_its_commit_and_its_revert(
        self, filled: GitProject, change: Callable[[GitProject], object]
    ) -> None:
        """A change gives another state, its commit the same one, its revert the former one."""
        before = fingerprint(filled.root)
        change(filled)
        after = fingerprint(filled.root)
        assert before != after
        assert after == fingerprint(filled.root)
        if not (filled.root / "inner").exists():  # such a one is committed without its files
            commit_all(filled)
            assert after == fingerprint(filled.root)
            filled.git("revert", "--no-edit", "HEAD")
            assert 3 == filled.count()
            assert before == fingerprint(filled.root)

    def test_all_these_changes_differ(self, filled: GitProject, tmp_path: Path) -> None:
        """No two of the changes lead to the same state."""
        states = set()
        for number, change in enumerate(CHANGES.values()):
            copy = GitProject(tmp_path / str(number))
            copy.git("pull", "--quiet", str(filled.root), "main")
            change(copy)
            states.add(fingerprint(copy.root))
        assert len(CHANGES) == len(states)

    def test_a_revert_without_a_commit(self, filled: GitProject) -> None:
        """A change that is taken back, staged or not, leaves the former state."""
        before = fingerprint(filled.root)
        filled.write("a.txt", "x\n")
        filled.git("add", "a.txt")
        filled.write("a.txt", "a\n")
        assert before == fingerprint(filled.root)
        filled.write("new.txt").unlink()
        assert before == fingerprint(filled.root)

    def test_times_are_no_content(self, filled: GitProject) -> None:
        """Files that were touched, tracked or not, are the same files."""
        filled.write("new.txt")
        before = fingerprint(filled.root)
        for name in ("a.txt", "sub/b.txt", "new.txt", ".gitignore"):
            os.utime(filled.root / name, (LATER, LATER))
        assert before == fingerprint(filled.root)

    def test_history_is_no_content(self, filled: GitProject) -> None:
        """Commits without a change, other messages and other branches are the same state."""
        before = fingerprint(filled.root)
        filled.git("commit", "--quiet", "--allow-empty", "--message", "nothing")
        assert before == fingerprint(filled.root)
        filled.git("checkout", "--quiet", "-b", "other")
        assert before == fingerprint(filled.root)

    def test_what_is_only_forgotten_by_the_index_is_there(self, filled: GitProject) -> None:
        """A file that is removed from the index alone is still the same file."""
        before = fingerprint(filled.root)
        filled.git("rm", "--quiet", "--cached", "a.txt")
        assert before == fingerprint(filled.root)

    def test_excluded_and_ignored_files_do_not_count(self, filled: GitProject) -> None:
        """Specs, the workspace and ignored files change nothing; their namesakes do."""
        before = fingerprint(filled.root)
        for name in (".specs/s.md", ".cuggino/wip/x.md", "build.log", "sub/other.log"):
            filled.write(name, "2\n")
        assert before == fingerprint(filled.root)
        filled.git("add", "--force", ".specs", ".cuggino")
        filled.git("commit", "--quiet", "--message", "specs")
        filled.write(".specs/s.md", "3\n")
        assert before == fingerprint(filled.root)
        filled.write(".specs2/s.md")
        assert before != fingerprint(filled.root)

    def test_an_exclusion_of_everything_is_none(self, filled: GitProject) -> None:
        """When the specs are the project itself, its files still count."""
        stage = fingerprint_stage(filled.root, exclude=(Path(), filled.root), plan=None)
        before = run(stage)
        filled.write("a.txt", "x\n")
        assert before != run(stage)

    def test_before_the_first_commit(self, project: GitProject) -> None:
        """Without a commit the files count, staged or not, and the first commit is not a change."""
        empty = fingerprint(project.root)
        assert empty == fingerprint(project.root)
        project.write("a.txt")
        first = fingerprint(project.root)
        assert empty != first
        project.git("add", "a.txt")
        assert first == fingerprint(project.root)
        commit_all(project)
        assert first == fingerprint(project.root)
