"""The current commit of a repository, read from its files: costs no process."""

from __future__ import annotations

import os
import re
from pathlib import Path

from cuggino.files import readable
from cuggino.sandbox import git_folders

_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def commit_of(folder: Path) -> str | None:
    """Return the current commit of the repository around `folder`.

    None before the first commit, without a repository, and if its files do not show it.
    """
    own, *common = git_folders(folder.absolute()) or (None,)
    return None if own is None else commit_at_head(own, common[0] if common else own)


def commit_at_head(git_dir: Path, common: Path) -> str | None:
    """Return the commit that `HEAD` in `git_dir` stands for; None if the files do not show it.

    `common` holds the references; a worktree shares it with its repository.
    """
    name = "HEAD"
    for _ in range(5):
        folder = git_dir if name == "HEAD" else common
        text = _first_line(folder / name) or _packed(common, name)
        if not text.startswith("ref: "):
            return text if _HASH.fullmatch(text) else None
        name = text.removeprefix("ref: ").strip()
    return None


def _packed(common: Path, name: str) -> str:
    for line in readable(common / "packed-refs").splitlines():
        if line.endswith(b" " + os.fsencode(name)):
            return line.split(b" ")[0].decode("ascii", "replace")
    return ""


def _first_line(path: Path) -> str:
    return os.fsdecode(readable(path).partition(b"\n")[0])
