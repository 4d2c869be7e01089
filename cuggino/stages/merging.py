"""Merging a commit into the work of a slot, with conflicts left for an agent to resolve."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from cuggino.errors import ProcessError, ProcessFailed
from cuggino.files import BIGGEST, read_regular, remove, storing
from cuggino.git import (
    UNMERGED,
    Git,
    commit_being_merged,
    is_ancestor,
    layout_of,
    make_commit,
    unmerged_files,
)
from cuggino.operators import Flow, ask
from cuggino.sandbox import git_folders
from cuggino.stages.acts import act

LONGEST_DIFF = 20_000
"""Characters of each side's diff, and of its commit messages."""

_ASIDE = "cuggino-aside"


class Merge(NamedTuple):
    """The commit is part of the work now, unless there are conflicts."""

    paths: tuple[str, ...] = ()
    """The files in conflict, relative to the folder."""
    ours: str = ""
    """The work's changes to them since the two sides diverged, and the reasons."""
    theirs: str = ""
    """The other commit's changes to them, and the reasons."""
    landed: str = ""
    """The messages of all commits that came with the other commit."""


def merge_flow(git: Git, commit: str, message: str, keep: Sequence[str]) -> Flow[Merge]:
    """Merge the commit into the current one; conflicts, if any, are left in the work tree.

    The paths in `keep` stay as they are in the work tree, as they are not part of the work. A
    merge that an earlier process left unfinished is restarted.

    Raises:
        ProcessError: git cannot merge, for a reason other than conflicts.
    """
    cwd = git.cwd
    was_merging = yield from is_merging(git)
    if not was_merging and (yield from is_ancestor(git, commit)):
        return Merge()
    paths: list[str] = []
    aside = (yield from layout_of(git)).git_dir / _ASIDE
    moved: list[str] = []
    for path in keep:
        state = ("status", "--porcelain", "--untracked-files=all", "--", f":(literal){path}")
        if path != "." and (yield from git.must(*state)).text:
            moved.append(path)
    for number, path in enumerate(moved):
        yield from ask(act(partial(_move, cwd / path, aside / str(number))))
        yield from _restore(git, path)
    try:
        if was_merging:  # git refuses while there are files that it would overwrite
            yield from git.must("merge", "--abort")
        words = ("merge", "--no-ff", "--no-verify-signatures", "--cleanup=whitespace")
        given = ("-m", message, commit)
        yield from make_commit(git, lambda more: git.must(*words, *more, *given, merge_stderr=True))
    except ProcessFailed:
        paths = yield from unmerged(git)
        if not paths:
            raise
    finally:
        for number, path in enumerate(moved):
            _put_back(aside / str(number), cwd / path)
    if not paths:
        return Merge()
    ours = yield from _side(git, commit, "HEAD", paths)
    theirs = yield from _side(git, "HEAD", commit, paths)
    log = ("log", "--first-parent", "--format=%B", f"HEAD..{commit}")
    landed = (yield from git.must(*log)).text
    top = (yield from layout_of(git)).top
    return Merge(
        tuple(os.path.relpath(top / path, cwd) for path in paths), ours, theirs, _cut(landed)
    )


def is_merging(git: Git) -> Flow[bool]:
    """Return whether a merge is under way."""
    with suppress(ProcessError):
        return bool(commit_being_merged((yield from layout_of(git)).git_dir))
    return False


def merge_under_way(folder: Path) -> str | None:
    """Return the commit that is being merged in the folder, if any."""
    for git in git_folders(folder)[:1]:
        return commit_being_merged(git) or None
    return None


def go_on_merging(folder: Path, commit: str) -> None:
    """Make git treat the files in the folder as an unfinished merge with the commit.

    Raises:
        StorageError: a file of git cannot be written.
    """
    for git in git_folders(folder)[:1]:
        with storing("go on merging", git):
            (git / "MERGE_HEAD").write_text(f"{commit}\n", encoding="ascii")


def unmerged(git: Git) -> Flow[list[str]]:
    """Return the files in conflict, relative to the top of the repository."""
    return unmerged_files((yield from git.must(*UNMERGED)).fields)


def stage_resolution(
    git: Git, commit: str, paths: Sequence[str], left_out: Sequence[str]
) -> Flow[None]:
    """Stage the resolved conflicts; paths in `left_out` are staged as they are in the commit.

    `paths` were in conflict: git does not know that in another slot that has taken over the work.

    Raises:
        ProcessError: a conflict is left.
    """
    cwd = git.cwd
    top = (yield from layout_of(git)).top
    unresolved = yield from unmerged(git)
    known = dict.fromkeys([*(cwd / path for path in paths), *(top / path for path in unresolved)])
    found = yield from ask(act(lambda: [path for path in known if is_marked(path)]))
    if found:
        marked = [os.path.relpath(path, cwd) for path in found]
        raise ProcessError("git", f"conflict markers are left in {', '.join(marked)}")
    if unresolved:
        specs = [f":(top,literal){path}" for path in unresolved]
        yield from git.must("add", "--all", "--", *specs)
    for path in left_out:
        only = f":(literal){path}"
        if (yield from git.must("diff", "--cached", "--name-only", commit, "--", only)).text:
            yield from git.must("reset", "--quiet", commit, "--", only)


def is_marked(path: Path) -> bool:
    """Return whether the file still has conflict markers."""
    try:
        lines = read_regular(path, biggest=BIGGEST).splitlines()
    except (OSError, ValueError):
        return False
    opened = any(line.startswith(b"<<<<<<< ") for line in lines)
    return opened and any(line.startswith(b">>>>>>> ") for line in lines)


def _side(git: Git, other: str, one: str, paths: Sequence[str]) -> Flow[str]:
    """Return the commit messages and the diff of one side since it left the other one."""
    specs = [f":(top,literal){path}" for path in paths]
    log = ("log", "--format=%B", f"{other}..{one}", "--", *specs)
    said = (yield from git.must(*log)).text
    plain = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--text", f"{other}...{one}")
    diff = (yield from git.must(*plain, "--", *specs)).text
    words = "\n".join(line for line in said.splitlines() if line.strip())
    return f"{_cut(words)}\n\n{_cut(diff)}".strip()


def _cut(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()  # a file may hold bytes that are not text
    return text if len(text) <= LONGEST_DIFF else f"{text[:LONGEST_DIFF]}\n[...]"


def _restore(git: Git, path: str) -> Flow[None]:
    """Restore the path in the work tree from the current commit."""
    if (yield from git.must("ls-tree", "--name-only", "HEAD", "--", path)).text:
        yield from git.must("checkout", "--quiet", "HEAD", "--", f":(literal){path}")


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    remove(target)
    if os.path.lexists(source):
        source.rename(target)


def _put_back(source: Path, target: Path) -> None:
    if os.path.lexists(source):
        remove(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
