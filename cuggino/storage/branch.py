"""The branch that a project is on, as the files of git say (LOP-040, LOP-041).

Nothing is started for it: it is asked before every iteration.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cuggino.errors import ConfigError
from cuggino.storage.reading import read_regular

PROTECTED_BRANCHES = ("main", "master")
"""Where the loop does not run, unless the configuration says otherwise."""

_LONGEST = 64 * 1024
_BRANCHES = "refs/heads/"
_IN_A_TABLE = ".invalid"


class BranchRefused(ConfigError):
    """The loop does not run on this branch (LOP-040)."""

    def __init__(self, branch: str) -> None:
        name = "main/master" if branch in PROTECTED_BRANCHES else branch
        super().__init__(
            f"Cannot run loop on {name} branch. Create a feature branch first.",
            hint="git switch -c NAME, or --allow-main",
        )


def current_branch(folder: Path) -> str | None:
    """The branch of the repository that the folder is in.

    None in no repository, with a detached HEAD, and where these files do not tell: where git keeps
    its refs in tables, or a file cannot be read.
    """
    here = folder.resolve()
    for place in (here, *here.parents):
        if (head := _head_of(place / ".git")) is not None:
            branch = head.removeprefix(_BRANCHES)
            return branch if branch not in (head, _IN_A_TABLE) else None
    return None


def protected_branch(folder: Path, protected: Iterable[str] = PROTECTED_BRANCHES) -> str | None:
    """The branch of the folder when it is one of these, by its exact name; else None."""
    branch = current_branch(folder)
    return branch if branch in set(protected) else None


def _head_of(git: Path) -> str | None:
    """What HEAD refers to, empty when that is nothing known; None when this is no repository."""
    try:
        if git.is_file():  # a worktree, or a submodule: it names the folder
            named = _text(git)
            if not named.startswith("gitdir:"):
                return ""
            git = git.parent / named.removeprefix("gitdir:").strip()
        head = git / "HEAD"
        if head.is_symlink():  # as git did long ago
            return head.readlink().as_posix()
        if not head.exists():
            return None  # git looks further up, too
        text = _text(head)
    except (OSError, ValueError):
        return ""
    return text.removeprefix("ref:").strip() if text.startswith("ref:") else ""


def _text(path: Path) -> str:
    return read_regular(path, biggest=_LONGEST).decode("utf-8", "surrogateescape").strip()
