"""The branch of a project, read from git's own files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cuggino.config.plan_build import PlanBuildConfig
from cuggino.git.branch import (
    BranchRefused,
    current_branch,
    protected_branch,
)
from tests.vectors import each, rows

ROWS = {row["id"]: row for row in rows("lopen_state") if row["kind"] == "on_main_branch"}

PROTECTED = PlanBuildConfig().protected_branches


def laid_out(row: dict[str, Any], root: Path) -> Path:
    """Return the folder of the case."""
    if row.get("head") is not None:
        (root / ".git").mkdir()
        (root / ".git/HEAD").write_text(row["head"])
    if "gitfile" in row:
        (root / ".git").write_text(row["gitfile"].replace("<DIR>", str(root)))
        worktree = root / "real/.git/worktrees/w"
        worktree.mkdir(parents=True)
        (worktree / "HEAD").write_text(row["worktree_head"])
    folder = root / str(row.get("cwd", "."))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def git(folder: Path, *args: str) -> None:
    """Run git without this machine's configuration."""
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for role in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{role}_NAME": "A", f"GIT_{role}_EMAIL": "a@example.com"}
    subprocess.run(["git", *args], cwd=folder, env=env, check=True, capture_output=True)


@pytest.mark.parametrize("case", ROWS)
def test_protected_branches(case: str, tmp_path: Path) -> None:
    """Each recorded folder is on a protected branch or not, as its case expects."""
    row = ROWS[case]
    folder = laid_out(row, tmp_path)
    assert row["expected"] == (protected_branch(folder, PROTECTED) is not None)


def test_real_repositories(tmp_path: Path) -> None:
    """A repository, worktree, subfolder and detached HEAD are read as git does."""
    real = tmp_path / "real"
    (real / "deep/er").mkdir(parents=True)
    git(real, "init", "--initial-branch=main")
    assert "main" == current_branch(real) == protected_branch(real / "deep/er", PROTECTED)
    git(real, "commit", "--allow-empty", "-m", "feat: begin")
    git(real, "worktree", "add", "-b", "feature/x", "../tree")
    git(real, "checkout", "-b", "fix/main")
    assert ("feature/x", None) == (
        current_branch(tmp_path / "tree"),
        protected_branch(real, PROTECTED),
    )
    git(tmp_path / "tree", "checkout", "main")
    assert "main" == protected_branch(tmp_path / "tree", PROTECTED)
    git(tmp_path / "tree", "checkout", "--detach")
    assert current_branch(tmp_path / "tree") is None


def test_custom_protected_branches(tmp_path: Path) -> None:
    """The caller's list of branches matches exact names."""
    laid_out({"head": "ref: refs/heads/release/1\n"}, tmp_path)
    assert "release/1" == protected_branch(tmp_path, ["main", "release/1"])
    assert protected_branch(tmp_path, ["release", "1", "Release/1"]) is None
    assert protected_branch(tmp_path, []) is None


@pytest.mark.parametrize(
    "head",
    ["", "ref:", "ref: refs/tags/main", "refs/heads/main", "\0", "ref: refs/heads/.invalid\n"],
)
def test_invalid_references(head: str, tmp_path: Path) -> None:
    """Anything but a reference to a branch gives None."""
    assert current_branch(laid_out({"head": head}, tmp_path)) is None


def test_a_head_that_is_a_link(tmp_path: Path) -> None:
    """HEAD may be a symlink to the branch, as in old repositories."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/HEAD").symlink_to("refs/heads/master")
    assert "master" == protected_branch(tmp_path, PROTECTED)


def test_odd_things_named_git(tmp_path: Path) -> None:
    """A `.git` that leads to no HEAD is skipped in favor of the parent's."""
    laid_out({"head": "ref: refs/heads/main"}, tmp_path)
    for name in ("empty", "pipe", "garbage", "lost", "relative"):
        (tmp_path / name).mkdir()
    (tmp_path / "empty/.git").mkdir()
    (tmp_path / "pipe/.git").mkdir()
    os.mkfifo(tmp_path / "pipe/.git/HEAD")
    (tmp_path / "garbage/.git").write_bytes(b"\xff\0")
    (tmp_path / "lost/.git").write_text("gitdir: ../nowhere")
    (tmp_path / "relative/.git").write_text("gitdir: ../.git\n")
    found = {path.name: current_branch(path) for path in tmp_path.iterdir() if path.is_dir()}
    hidden = {name for name, branch in found.items() if branch is None}
    assert {"pipe"} == hidden - {".git"}
    assert {"main"} == {found[name] for name in ("empty", "garbage", "lost", "relative")}


@each("branch, named", [("main", "main/master"), ("master", "main/master"), ("rel", "rel")])
def test_the_refusal(branch: str, named: str) -> None:
    """The error has the original's text for its two branches, and names any other."""
    expected = f"Cannot run loop on {named} branch. Create a feature branch first."
    assert expected == BranchRefused(branch).message


@pytest.mark.parametrize(
    "name",
    ["../../../elsewhere/Cargo", "/elsewhere", "a//b", "a/.b", "a.lock", "a\0b", "a b", "-a", ""],
)
def test_no_name_of_a_branch(name: str, tmp_path: Path) -> None:
    """What an agent writes into HEAD names no lock elsewhere, which would be removed."""
    folder = laid_out({"head": f"ref: refs/heads/{name}\n"}, tmp_path)
    assert current_branch(folder) is None
