"""The positions of the trunk and the user's branch, and the transactions that move refs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cuggino.errors import ConfigError, ProcessFailed
from cuggino.git import (
    EACH_REF,
    Git,
    Layout,
    Said,
    checked_out,
    commits_of_refs,
    is_ancestor,
    layout_of,
)
from cuggino.operators import Flow
from cuggino.sandbox import Views
from cuggino.stages.slots.refs import KEPT, TRUNK

FOLLOWED = "refs/cuggino/followed"
"""Prefix of a ref named after the user's branch: the commit up to which the branch has followed the
trunk."""
DETACHED = f"{FOLLOWED}/detached"
"""The ref below it if no branch was checked out at the start."""
MOVING_FROM = "refs/cuggino/following/from"
MOVING_TO = "refs/cuggino/following/to"
"""The two commits between which the user's files are being moved, during the move."""
AGAIN_FROM = "refs/cuggino/again/from"
AGAIN_TO = "refs/cuggino/again/to"
"""The landings to repeat on a branch that was rewritten, the first one excluded."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """The repository of a project."""

    git: Git
    """Git in the top folder of the repository."""
    layout: Layout


@dataclass(frozen=True, kw_only=True)
class Position:
    """The refs of a project at one moment; an unknown commit is ""."""

    head: str
    at: str
    """The branch that is checked out, "" if HEAD is detached."""
    trunk: str
    branch: str
    """The branch that follows the trunk, "" if none does."""
    followed: str
    tip: str
    """The commit of that branch, "" if it is gone."""
    moving: tuple[str, str] | None
    again: tuple[str, str] | None


def place_of(project: Path, views: Views | None = None) -> Flow[Place]:
    """Find the repository.

    Raises:
        ConfigError: there is none.
    """
    git = Git(cwd=project, views=views)
    try:
        layout = yield from layout_of(git)
    except ProcessFailed as error:
        raise ConfigError(
            f"several slots require a git repository, and {project} is in none",
            hint="run `git init` and commit what is there",
        ) from error
    return Place(git=git.at(layout.top), layout=layout)


def position(place: Place) -> Flow[Position]:
    """Read the refs."""
    at = yield from checked_out(place.git, place.layout)
    here = (f"refs/heads/{at}",) if at else ()
    refs = commits_of_refs((yield from place.git.must(*EACH_REF, *_READ, *here)).text)
    named = next((ref for ref in refs if ref.startswith(f"{FOLLOWED}/heads/")), None)
    branch = named.removeprefix(f"{FOLLOWED}/heads/") if named else ""
    head = refs.get(here[0], "") if here else (yield from commit_named("HEAD", place.git))
    tip = head if branch == at else ""
    if branch and branch != at:
        tip = yield from commit_named(f"refs/heads/{branch}", place.git)
    return Position(
        head=head,
        at=at,
        trunk=refs.get(TRUNK, ""),
        branch=branch,
        followed=refs.get(named or DETACHED, ""),
        tip=tip,
        moving=_pair(refs, MOVING_FROM, MOVING_TO),
        again=_pair(refs, AGAIN_FROM, AGAIN_TO),
    )


_READ = (TRUNK, FOLLOWED, MOVING_FROM, MOVING_TO, AGAIN_FROM, AGAIN_TO)


def _pair(refs: dict[str, str], one: str, other: str) -> tuple[str, str] | None:
    return (refs[one], refs[other]) if one in refs and other in refs else None


def commit_named(name: str, git: Git) -> Flow[str]:
    """Return the commit that a revision names, "" if there is none."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    said = yield from git.run(*words)
    return "" if said.code else said.text


def contains(commit: str, other: str, git: Git) -> Flow[bool]:
    """Return whether `other` is the commit or one of its ancestors."""
    if commit == other:
        return True
    return (yield from is_ancestor(git, other, commit)) is True


def move_refs(*commands: str, git: Git, why: str = "cuggino") -> Flow[Said]:
    """Move all of these refs or none; the commands are those of `git update-ref --stdin`."""
    stdin = "".join(f"{command}\n" for command in commands).encode("utf-8", "surrogateescape")
    words = ("update-ref", "-m", why, "--stdin")
    return (yield from git.run(*words, stdin=stdin))


def followed_ref(branch: str) -> str:
    """Return the ref of the commit up to which the branch has followed."""
    return f"{FOLLOWED}/heads/{branch}" if branch else DETACHED


def old_trunk_ref(commit: str) -> str:
    """Return the ref that keeps a replaced trunk."""
    return f"{KEPT}/trunk/{commit[:12]}"


def users_of(branch: str, place: Place) -> Flow[str]:
    """Return where a branch is in use, so that moving it would harm; "" if it is free."""
    ref = f"refs/heads/{branch}"
    listed = yield from place.git.must("worktree", "list", "--porcelain")
    folder = ""
    for line in listed.text.split("\n"):
        if line.startswith("worktree "):
            folder = line.removeprefix("worktree ")
        elif line == f"branch {ref}":
            return f"{branch} is checked out in {folder}"
    common = place.layout.common
    for own in (common, *_linked(common)):
        if any(_says(own / name, ref) for name in _REBASES):
            return f"{branch} is being rebased"
        if _says(own / "BISECT_START", branch):
            return f"{branch} is being bisected"
    return ""


_REBASES = ("rebase-merge/head-name", "rebase-apply/head-name")


def _linked(common: Path) -> Iterable[Path]:
    return sorted((common / "worktrees").glob("*"))


def _says(file: Path, text: str) -> bool:
    with suppress(OSError):
        return os.fsdecode(file.read_bytes()).strip() == text
    return False


def locks_of_refs(place: Place, branch: str) -> Iterator[Path]:
    """Yield the locks that a killed move of refs can leave."""
    common = place.layout.common
    refs = (TRUNK, followed_ref(branch), MOVING_FROM, MOVING_TO, AGAIN_FROM, AGAIN_TO)
    for ref in refs:
        yield common / f"{ref}.lock"
    yield common / "packed-refs.lock"
    if branch:
        yield common / f"refs/heads/{branch}.lock"
