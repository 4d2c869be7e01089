"""Repositories within a repository, which may have settings that an agent has written."""

from __future__ import annotations

from pathlib import Path

from cuggino.git.listings import MODULE, index_files
from cuggino.git.program import Git
from cuggino.git.settings import starts_program
from cuggino.operators import Flow
from cuggino.sandbox import git_folders, settings_in


def linked_repositories(git: Git) -> Flow[list[str]]:
    """Return the paths of repositories that the index links to, such as submodules."""
    listed = (yield from git.must("ls-files", "--stage", "-z")).fields
    return [file.path for file in index_files(listed) if file.mode == MODULE]


def starting_programs(folder: Path) -> bool:
    """Return whether git would start programs that the repository's own settings name."""
    if not (folder / ".git").exists():
        return False
    files = (own / name for own in git_folders(folder) for name in ("config", "config.worktree"))
    return any(starts_program(*setting) for file in files for setting in settings_in(file))


def distrusted_repositories(git: Git) -> Flow[list[str]]:
    """Return the linked repositories that git must not enter without a view."""
    return [
        path for path in (yield from linked_repositories(git)) if starting_programs(git.cwd / path)
    ]
