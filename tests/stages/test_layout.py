"""Locations of the parts of a repository: found without git in an ordinary one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from cuggino import run
from cuggino.errors import ProcessError
from cuggino.git import Git, Layout, layout, layout_of as layout_by
from cuggino.operators import Flow, emit, flow
from tests.git_commands import note_git
from tests.git_project import GitProject


def layout_of(folder: Path) -> Layout:
    """Return the layout of the repository around the folder, without the cache."""
    layout._layouts.clear()

    def story() -> Flow[None]:
        yield from emit((yield from layout_by(Git(cwd=folder))))

    found = run(flow(story))
    assert isinstance(found, Layout)
    return found


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
    monkeypatch.setattr(layout, "ordinary_repository", lambda _folder: None)
    assert layout_of(folder) == found
    assert ("sub/" if make is within else "") == found.prefix


@pytest.mark.parametrize("make", [lambda project, _: project.root, worktree, separate])
def test_locks_are_where_git_makes_them(
    make: Callable[[GitProject, Path], Path], project: GitProject, tmp_path: Path
) -> None:
    """A killed git leaves locks of the index, of HEAD and of the branch."""
    folder = make(project, tmp_path)
    names = ("index.lock", "HEAD.lock", "refs/heads/some/branch.lock")
    paths = [GitProject.git(project, "-C", str(folder), *_PATH, name).strip() for name in names]
    assert [(folder / path).resolve() for path in paths] == [
        *layout_of(folder).locks("some/branch")
    ]


_PATH = ("rev-parse", "--git-path")


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
