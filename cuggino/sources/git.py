"""git: its commands as streams.

Commands that may take long, run hooks or prompt go through `process_lines`, so that they can be
disposed with every process they started.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from reactivex import Observable

from cuggino.sandbox import Enclosure
from cuggino.sources.environment import current_environment
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
"""No editor, no password prompt, English output, as git runs unattended."""

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
    enclosure: Enclosure | None = None,
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
        enclosure=enclosure,
    )


def git_environment(more: Mapping[str, str] | None) -> dict[str, str]:
    """Return this process's environment for a git that never prompts, with `more` added."""
    whole = current_environment()
    for name in _ELSEWHERE:
        whole.pop(name, None)
    return {**whole, **_QUIET, **(more or {})}


def has_own_ssh() -> bool:
    """Return whether the environment configures how git calls ssh."""
    return bool(os.environ.get("GIT_SSH_COMMAND") or os.environ.get("GIT_SSH"))
