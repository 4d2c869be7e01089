"""The state of a repository, through GitPython."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from cuggino.git.settings import looking_environment
from cuggino.sandbox import outside_path


@dataclass(frozen=True, slots=True)
class RepositoryState:
    """The state of a git repository."""

    root: Path
    branch: str | None
    """None when HEAD is detached."""
    head: str | None
    """None before the first commit."""
    dirty: bool
    """Tracked files are modified."""


def repository_state(folder: Path) -> RepositoryState | None:
    """Return the state of the repository around `folder`; None without one, or in a bare one.

    Programs that the repository names are not started (`looking_environment`), so files with a
    custom filter may count as modified. Changes inside submodules do not count.

    Raises:
        FileNotFoundError: git itself is not installed.
    """
    program = shutil.which("git", path=outside_path(folder, os.environ.get("PATH", "")))
    if program is None:
        raise FileNotFoundError("git")
    # GitPython costs 85 ms to import, and runs git at import: no program of the project's.
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    os.environ["GIT_PYTHON_GIT_EXECUTABLE"] = program
    import git

    git.refresh(program)
    try:
        repo = git.Repo(folder, search_parent_directories=True)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError):
        return None
    try:
        with repo:
            if repo.bare:
                return None
            repo.git.update_environment(**looking_environment(folder))
            return RepositoryState(
                root=Path(repo.working_tree_dir or folder),
                branch=None if repo.head.is_detached else repo.head.ref.name,
                head=repo.head.commit.hexsha if repo.head.is_valid() else None,
                dirty=repo.is_dirty(submodules=False),
            )
    except git.GitCommandNotFound as error:
        raise FileNotFoundError("git") from error
