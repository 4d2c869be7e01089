"""HEAD and the references of a repository, read from its files: costs no process."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from cuggino.files import readable
from cuggino.git.program import Git
from cuggino.operators import Flow
from cuggino.sandbox import git_folders

SYMBOLIC = "ref: "
"""What stands before the name of a reference in a file in which it stands for a commit."""

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NAMED = re.compile(r"ref:\s*(refs/[^\x00-\x20\x7f]+)")
_LONGEST = 4096
"""Bytes of the longest reference."""


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
    value = head_of(git_dir)
    for _ in range(4):
        if not value.startswith(SYMBOLIC):
            break
        name = value.removeprefix(SYMBOLIC)
        value = ref_in(common / name) or _value(dict(packed_refs(common)).get(name, ""))
    return value if _COMMIT.fullmatch(value) else None


def head_of(git_dir: Path) -> str:
    """Return what HEAD names: `ref: refs/heads/main` or a commit; "" if git would read neither."""
    return ref_in(git_dir / "HEAD")


def ref_in(file: Path) -> str:
    """Return what a file of a reference names: `ref: refs/heads/main`, a commit or ""."""
    with suppress(OSError):  # a link, as old versions of git made HEAD
        return _value(f"{SYMBOLIC}{file.readlink()}")
    return _value(os.fsdecode(readable(file, biggest=_LONGEST)))


def packed_refs(common: Path) -> Iterator[tuple[str, str]]:
    """Yield the references that are packed into one file, each with its commit."""
    for line in os.fsdecode(readable(common / "packed-refs")).split("\n"):
        value, _, name = line.partition(" ")
        if name and value[:1] not in "#^":
            yield name, value


def commit_being_merged(git_dir: Path) -> str:
    """Return the commit of a merge that is under way, "" without one."""
    return ref_in(git_dir / "MERGE_HEAD")


def is_ancestor(git: Git, commit: str, of: str = "HEAD") -> Flow[bool | None]:
    """Return whether a commit is the other one or part of its history; None if git cannot tell."""
    said = yield from git.run("merge-base", "--is-ancestor", commit, of)
    return {0: True, 1: False}.get(said.code)


def _value(text: str) -> str:
    text = text.strip()
    if named := _NAMED.fullmatch(text):
        return f"{SYMBOLIC}{named[1]}"
    return text if _COMMIT.fullmatch(text) else ""
