"""Locations of the parts of a repository: found without git in an ordinary one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from reactivex import operators as ops

from cuggino import run
from cuggino.errors import ProcessError
from cuggino.git import WorkTree, work_tree
from cuggino.git.work_tree import Layout
from cuggino.operators import Flow, flow
from tests.git_commands import note_git
from tests.git_project import GitProject


def layout_of(folder: Path) -> Layout:
    """Return the layout of the repository around the folder, without the cache."""
    work_tree._layouts.clear()
    found: list[Layout] = []

    def story() -> Flow[None]:
        found.append((yield from WorkTree(folder, folder / ".cuggino/snapshots").layout()))

    run(flow(story).pipe(ops.default_if_empty(None)))
    return found[0]


def moved(project: GitProject, tmp_path: Path) -> Path:
    """The `.git` is a link to another folder."""
    shutil.move(project.root / ".git", tmp_path / "kept")
    (project.root / ".git").symlink_to(tmp_path / "kept")
    return project.root


def linked(project: GitProject, tmp_path: Path) -> Path:
    (tmp_path / "link").symlink_to(project.root)
    return tmp_path / "link"


def worktree(project: GitProject, tmp_path: Path) -> Path:
    project.write("a.txt")
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "first")
    project.git("worktree", "add", "--quiet", str(tmp_path / "other"))
    return tmp_path / "other"


def separate(project: GitProject, tmp_path: Path) -> Path:
    project.git("init", "--quiet", f"--separate-git-dir={tmp_path / 'apart'}")
    return project.root


def elsewhere(project: GitProject, tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    project.git("config", "core.worktree", str(tmp_path / "tree"))
    return project.root


def within(project: GitProject, _tmp_path: Path) -> Path:
    (project.root / "sub").mkdir()
    return project.root / "sub"


@pytest.mark.parametrize(
    "make",
    [lambda project, _: project.root, moved, linked, worktree, separate, elsewhere, within],
    ids=["usual", "moved", "linked", "worktree", "separate", "elsewhere", "within"],
)
def test_it_is_what_git_says(
    make: Callable[[GitProject, Path], Path],
    project: GitProject,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both ways to find a layout give the same."""
    folder = make(project, tmp_path)
    found = layout_of(folder)
    monkeypatch.setattr(work_tree, "ordinary_repository", lambda _folder: None)
    assert layout_of(folder) == found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands that git is asked with."""
    return note_git(monkeypatch)


def test_git_is_not_asked_about_a_usual_repository(project: GitProject, asked: list[str]) -> None:
    layout_of(project.root)
    assert ["config"] == asked


def test_git_is_asked_about_another_work_tree(project: GitProject, asked: list[str]) -> None:
    project.git("config", "core.worktree", "..")
    layout_of(project.root)
    assert ["config", "rev-parse"] == asked


def test_git_decides_whether_it_trusts_another_owner(
    project: GitProject, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    layout_of(project.root)
    assert ["config", "rev-parse"] == asked


def test_a_repository_without_a_work_tree(project: GitProject) -> None:
    """A bare one has no layout, although its folder looks like any other."""
    project.git("config", "core.bare", "true")
    with pytest.raises(ProcessError):
        layout_of(project.root)


@pytest.mark.parametrize(
    "setting",
    [("core.repositoryformatversion", "2"), ("extensions.unheardof", "true")],
    ids=["version", "extension"],
)
def test_a_repository_that_this_git_cannot_read(
    project: GitProject, setting: tuple[str, str]
) -> None:
    """It has no layout, so that no snapshot is written to it."""
    project.git("config", "core.repositoryformatversion", "1")
    project.git("config", *setting)
    with pytest.raises(ProcessError):
        layout_of(project.root)


def test_a_head_that_is_a_link(project: GitProject, tmp_path: Path, asked: list[str]) -> None:
    """Git decides whether to accept it."""
    shutil.move(project.root / ".git/HEAD", project.root / ".git/kept")
    (project.root / ".git/HEAD").symlink_to("refs/heads/main")
    with suppress(ProcessError):
        layout_of(project.root)
    assert ["config", "rev-parse"] == asked
