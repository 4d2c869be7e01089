"""The files of trees, as git lists and compares them."""

from __future__ import annotations

from cuggino.git.listings import Difference, Listed, differences, tree_files
from cuggino.git.program import Git
from cuggino.operators import Flow


def diff_trees(git: Git, before: str, after: str) -> Flow[list[Difference]]:
    """Return the files that differ between two trees or commits, submodules included.

    Raises:
        ProcessError: git does not have them.
    """
    words = ("diff-tree", "-r", "-z", "--no-renames", "--ignore-submodules=none", before, after)
    return differences((yield from git.must(*words)).fields)


def files_of(git: Git, tree: str) -> Flow[list[Listed]]:
    """Return the files of a tree or commit.

    Raises:
        ProcessError: git does not have it.
    """
    words = ("ls-tree", "-r", "-z", "--full-tree", tree)
    return tree_files((yield from git.must(*words)).fields)
