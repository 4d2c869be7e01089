"""git: its commands as streams, the state of a repository through GitPython.

Commands that may take long, run hooks or prompt go through `process_lines`, so that they can be
disposed with every process they started.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reactivex import Observable

from cuggino.sources.process import process_lines, process_output

_QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "GCM_INTERACTIVE": "never",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}
"""No editor, no password prompt, English output: nobody is there to answer."""

_ELSEWHERE = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GPG_TTY",
)
"""Settings of another git, such as the one whose hook or alias started this program."""


def git_lines(
    *args: str,
    cwd: Path,
    stdin: bytes | None = None,
    merge_stderr: bool = False,
    env: Mapping[str, str] | None = None,
) -> Observable[bytes]:
    """Run `git args...` and emit its output lines, with `merge_stderr` standard error too.

    Without a terminal, so that a prompt fails instead of waiting. `env` is added to the
    environment of this process.
    """
    return process_lines(
        ["git", *args], cwd=cwd, env=git_environment(env), stdin=stdin, merge_stderr=merge_stderr
    )


def git_output(
    *args: str,
    cwd: Path,
    stdin: bytes | None = None,
    merge_stderr: bool = False,
    env: Mapping[str, str] | None = None,
    sweep: bool = True,
) -> Observable[bytes]:
    """Run `git args...` like `git_lines`, but emit the whole output at once.

    Use `sweep=False` for a command that only reads and so leaves no process behind.
    """
    return process_output(
        ["git", *args],
        cwd=cwd,
        env=git_environment(env),
        stdin=stdin,
        merge_stderr=merge_stderr,
        sweep=sweep,
    )


def git_environment(more: Mapping[str, str] | None) -> dict[str, str]:
    """Return this process's environment for a git that asks nobody, with `more` added."""
    whole = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    return whole | _QUIET | dict(more or {})


def has_own_ssh() -> bool:
    """Return whether the environment configures how git calls ssh."""
    return bool(os.environ.get("GIT_SSH_COMMAND") or os.environ.get("GIT_SSH"))


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

    Raises:
        FileNotFoundError: git itself is not installed.
    """
    # GitPython costs 85 ms to import, and runs git at import.
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    import git

    try:
        repo = git.Repo(folder, search_parent_directories=True)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError):
        return None
    try:
        with repo:
            if repo.bare:
                return None
            return RepositoryState(
                root=Path(repo.working_tree_dir or folder),
                branch=None if repo.head.is_detached else repo.head.ref.name,
                head=repo.head.commit.hexsha if repo.head.is_valid() else None,
                dirty=repo.is_dirty(),
            )
    except git.GitCommandNotFound as error:
        raise FileNotFoundError("git") from error
