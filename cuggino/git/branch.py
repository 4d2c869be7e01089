"""The current branch of a project, read from git's files (LOP-040, LOP-041).

No process is started, because the branch is checked before every iteration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from cuggino.errors import ConfigError
from cuggino.files import read_regular

_LONGEST = 64 * 1024
_BRANCHES = "refs/heads/"
_IN_A_TABLE = ".invalid"
_IN_NO_NAME = re.compile(
    r"^[/-]|^$|/$|//|\.\.|(?:^|/)\.|\.lock(?:/|$)|[\x00-\x20\x7f~^:?*\[\\]|@\{"
)
"""What git accepts in no name of a branch, but an agent may write into HEAD."""


class BranchRefused(ConfigError):
    """A branch on which the loop does not run (LOP-040)."""

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
        if (head := _head_of(place / ".git")) is not None:
            branch = head.removeprefix(_BRANCHES)
            is_one = branch not in (head, _IN_A_TABLE) and _IN_NO_NAME.search(branch) is None
            return branch if is_one else None
    return None


def protected_branch(folder: Path, protected: Iterable[str]) -> str | None:
    """Return the folder's branch if it is one of these, by exact name, else None."""
    branch = current_branch(folder)
    return branch if branch in set(protected) else None


def _head_of(git: Path) -> str | None:
    """Return the ref in HEAD, "" if unknown, or None if this is not a repository."""
    try:
        if git.is_file():  # a worktree, or a submodule: it names the folder
            named = _text(git)
            if not named.startswith("gitdir:"):
                return ""
            git = git.parent / named.removeprefix("gitdir:").strip()
        head = git / "HEAD"
        if head.is_symlink():  # as old versions of git made it
            return head.readlink().as_posix()
        if not head.exists():
            return None  # git continues with the parent, too
        text = _text(head)
    except (OSError, ValueError):
        return ""
    return text.removeprefix("ref:").strip() if text.startswith("ref:") else ""


def _text(path: Path) -> str:
    return read_regular(path, biggest=_LONGEST).decode("utf-8", "surrogateescape").strip()
