"""Snapshots of a few changes, which are stored without git."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from random import Random

import pytest

from cuggino.git import work_tree
from cuggino.stages import GitSnapshots
from tests.git_commands import note_git
from tests.git_project import GitProject
from tests.stages.trees import snapshots_of, take, tree_of, undo


@pytest.fixture
def filled(project: GitProject) -> GitProject:
    """A repository with a commit."""
    project.write(".gitignore", "*.log\n")
    for name in ("a.txt", "src/b.txt", "src/deep/c.txt", "src-x", "src0/d.txt", "other/e.txt"):
        project.write(name, name)
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "first")
    return project


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The git commands of snapshots that are run from now on."""
    return note_git(monkeypatch)


def test_it_costs_one_process(filled: GitProject, commands: list[str]) -> None:
    """One `git status` finds the changes; they are stored without another process."""
    snapshots = snapshots_of(filled)
    filled.write("src/b.txt", "first")
    take(snapshots)
    commands.clear()
    filled.write("src/b.txt", "second")
    filled.write("src/new.txt", "new")
    taken = take(snapshots)
    assert ["status", "for-each-ref"] == commands
    filled.git("add", "src/new.txt")
    take(snapshots)
    take(snapshots)
    rest = ["status", "ls-files", "for-each-ref", "status", "for-each-ref"]
    assert ["status", "for-each-ref", *rest] == commands
    (filled.root / "src/b.txt").unlink()
    undo(snapshots, taken)
    assert "second" == (filled.root / "src/b.txt").read_text()


def test_many_changes_are_stored_by_git(
    filled: GitProject, commands: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above a number or a size git stores them, and only later changes are left."""
    monkeypatch.setattr(work_tree, "_FEW_FILES", 3)
    monkeypatch.setattr(work_tree, "_FEW_BYTES", 100)
    snapshots = snapshots_of(filled)
    filled.write("src/b.txt", "first")
    take(snapshots)
    for count in range(4):
        filled.write(f"src/{count}.txt")
    commands.clear()
    take(snapshots)
    assert ["status", "update-index", "write-tree", "for-each-ref"] == commands
    filled.write("src/b.txt", "x" * 101)
    take(snapshots)
    assert ["status", "update-index", "write-tree", "for-each-ref"] == commands[4:]
    filled.write("src/b.txt", "second")
    assert "second" == filled.git("show", f"{take(snapshots).ref}:src/b.txt")
    assert ["status", "for-each-ref"] == commands[8:]


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(n, marks=pytest.mark.real_agent) for n in range(2, 6))]
)
def test_the_same_tree_as_of_git(
    filled: GitProject, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """After any changes to files, folders and links, the tree is the one that git stores."""
    random = Random(seed)
    ours = snapshots_of(filled)
    gits = GitSnapshots(filled.root, filled.root / ".cuggino/snapshots-2")
    take(ours, name="ours")
    for number in range(12):
        for _ in range(random.randint(1, 4)):
            _change(filled.root, random)
        before = take(ours, f"s-{number}", "ours")
        with monkeypatch.context() as patch:
            patch.setattr(work_tree, "_FEW_FILES", -1)
            expected = take(gits, f"s-{number}", "gits")
        trees = filled.git("rev-parse", f"{before.ref}^{{tree}}", f"{expected.ref}^{{tree}}")
        assert 1 == len(set(trees.split())), trees
    filled.git("fsck", "--strict", "--no-dangling")
    now = tree_of(filled.root)
    for _ in range(5):
        _change(filled.root, random)
    undo(ours, before)
    assert now == tree_of(filled.root)


_NAMES = ("a", "a.txt", "src", "src-x", "src0", "b.txt", "deep", "sp ace", "ä", "new\nline")


def _change(root: Path, random: Random) -> None:
    """Write, link, remove or replace something."""
    path = root.joinpath(*random.choices(_NAMES, k=random.randint(1, 3)))
    for place in (*reversed(path.relative_to(root).parents[:-1]), path.relative_to(root)):
        here = root / place
        if here.is_symlink() or (here.exists() and (here == path or not here.is_dir())):
            shutil.rmtree(here) if here.is_dir() and not here.is_symlink() else here.unlink()
    act = random.randrange(6)
    if act:
        path.parent.mkdir(parents=True, exist_ok=True)
    if act == 1:
        path.symlink_to(random.choice(_NAMES))
    elif act > 1:
        path.write_bytes(os.urandom(random.randint(0, 40)))
        path.chmod(0o755 if act == 2 else 0o644)


def test_packed_trees(filled: GitProject, commands: list[str]) -> None:
    """A tree that git has packed is left to git; the ones after it are not."""
    take(snapshots_of(filled))
    filled.git("gc", "--quiet", "--prune=now")
    snapshots = snapshots_of(filled)
    commands.clear()
    for text, stored_by_git in (("first", True), ("second", False)):
        filled.write("src/deep/c.txt", text)
        assert text == filled.git("show", f"{take(snapshots).ref}:src/deep/c.txt")
        assert stored_by_git == ("write-tree" in commands)
        commands.clear()
