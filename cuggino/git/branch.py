"""The current branch of a project, read from git's files (LOP-040, LOP-041).

No process is started, because the branch is checked before every iteration.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from cuggino.errors import ConfigError
from cuggino.git.head import SYMBOLIC, head_of
from cuggino.sandbox import git_folders

_BRANCHES = f"{SYMBOLIC}refs/heads/"
_IN_A_TABLE = ".invalid"
_IN_NO_NAME = re.compile(
    r"^[/-]|^$|/$|//|\.\.|(?:^|/)\.|\.lock(?:/|$)|[\x00-\x20\x7f~^:?*\[\\]|@\{"
)
"""What git accepts in no name of a branch, but an agent may write into HEAD."""


class BranchRefused(ConfigError):
    """A branch on which the loop does not run."""

    def __init__(self, branch: str) -> None:
        name = "main/master" if branch in ("main", "master") else branch
        super().__init__(
            f"Cannot run loop on {name} branch. Create a feature branch first.",
            hint="git switch -c NAME, or --allow-main",
        )


def current_branch(folder: Path) -> str | None:
    """Return the branch of the repository that contains the folder.

    Returns None outside of a repository, with a detached HEAD, and if the files do not tell: git
    keeps its refs in tables, or a file cannot be read.
    """
    here = folder.resolve()
    for place in (here, *here.parents):
        git = place / ".git"
        if os.path.isfile(git):  # noqa: PTH113 - a folder that may not be searched is no error
            git = next(iter(git_folders(place)), git)
        if os.path.lexists(git / "HEAD"):  # else git continues with the parent, too
            head = head_of(git)
            branch = head.removeprefix(_BRANCHES)
            is_one = branch not in (head, _IN_A_TABLE) and _IN_NO_NAME.search(branch) is None
            return branch if is_one else None
    return None


def protected_branch(folder: Path, protected: Iterable[str]) -> str | None:
    """Return the folder's branch if it is one of these, by exact name, else None."""
    branch = current_branch(folder)
    return branch if branch in set(protected) else None
