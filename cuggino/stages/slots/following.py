"""The user's branch follows the trunk."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from reactivex import Observable, operators as ops

from cuggino.events import WatchFollowDelayed, WatchFollowed, WatchFollowHealed
from cuggino.folders import watch_file_count
from cuggino.git import Said, failed, gist
from cuggino.operators import Flow, emit
from cuggino.operators.merge_now import merge_now
from cuggino.stages.slots.healing import heal
from cuggino.stages.slots.position import (
    MOVING_FROM,
    MOVING_TO,
    Place,
    Position,
    followed_ref,
    move_refs,
    position,
    users_of,
)

_FORWARD = (
    *("merge", "--ff-only", "--no-overwrite-ignore", "--no-autostash", "--no-squash"),
    *("--no-stat", "--quiet"),
)
_REFUSALS: Mapping[str, str] = MappingProxyType(
    {
        "Your local changes": "your uncommitted changes are in the way",
        "untracked working tree files": "your untracked files are in the way",
        "Updating the following directories": "your untracked files are in the way",
        "not uptodate": "your uncommitted changes are in the way",
        "index.lock": "another git command is at work",
        "You have not concluded": "your merge is not concluded",
        "unmerged files": "your merge has conflicts",
        "Not possible to fast-forward": "the branch has just moved",
    }
)
"""Git's messages when it refuses a fast-forward before touching anything, each with the reason."""
_SETTLE = 1.0
"""Seconds after the last change of the user, whose git may still be at work."""


def follow_branch(place: Place, now: Position) -> Flow[None]:
    """Move the user's branch to the trunk, which contains it, and emit the outcome.

    Where the branch is checked out in the project, its files are moved with it by
    `git merge --ff-only`: changes elsewhere in the tree stay, and a changed, untracked or ignored
    file in the way refuses all of it. Hooks do not run: what just landed may have changed them. A
    branch that is not checked out anywhere is moved without any file.
    """
    if now.at == now.branch:
        yield from _move_files(place, now)
        return
    if used := (yield from users_of(now.branch, place)):
        yield from emit(delayed(now, used))
        return
    moved = yield from move_refs(
        f"update refs/heads/{now.branch} {now.trunk} {now.tip}",
        f"update {followed_ref(now.branch)} {now.trunk}",
        git=place.git,
        why="cuggino: follow",
    )
    if moved.code:
        yield from emit(delayed(now, gist(moved.errors)))
        return
    yield from emit(WatchFollowed(branch=now.branch, commit=now.trunk))


def _move_files(place: Place, now: Position) -> Flow[None]:
    # The record by which a killed fast-forward is found and healed.
    recorded = yield from move_refs(
        f"update {MOVING_FROM} {now.tip}", f"update {MOVING_TO} {now.trunk}", git=place.git
    )
    if recorded.code:
        raise failed(("update-ref",), recorded.code, recorded.words)
    # Not interrupted: what is half moved would stay so until the next start.
    ended = yield from place.git.to_end(*_FORWARD, now.trunk)
    if ended.code == 0:
        yield from move_refs(
            f"update {followed_ref(now.branch)} {now.trunk}",
            f"delete {MOVING_FROM}",
            f"delete {MOVING_TO}",
            git=place.git,
        )
        yield from emit(WatchFollowed(branch=now.branch, commit=now.trunk))
        return
    reason, paths = _refusal(ended)
    if paths or reason in _REFUSALS.values():
        yield from move_refs(f"delete {MOVING_FROM}", f"delete {MOVING_TO}", git=place.git)
    else:  # a full disk, a folder that cannot be written: some files may have been moved
        healed = yield from heal(place, (yield from position(place)))
        if isinstance(healed, WatchFollowHealed):
            yield from emit(healed)
    yield from emit(delayed(now, reason, paths))


def _refusal(ended: Said) -> tuple[str, tuple[str, ...]]:
    text = os.fsdecode(ended.output)
    lines = text.split("\n")
    paths = tuple(line.removeprefix("\t") for line in lines if line.startswith("\t"))
    known = (reason for words, reason in _REFUSALS.items() if words in text)
    return next(known, gist(text) or f"git merge exited with code {ended.code}"), paths


def changes_of_user(
    place: Place, delayed: WatchFollowDelayed, changes: Callable[[Path], Observable[object]]
) -> Observable[object]:
    """Emit when the user has switched or moved a branch, committed, or changed a file in the way.

    `changes` watches a folder. Files in folders that are not there yet are not watched.
    """
    at = place.layout
    refs = (at.common / "packed-refs", at.common / "refs/heads" / delayed.branch)
    files = (at.git_dir / "HEAD", at.index, *refs, *(at.top / path for path in delayed.paths))
    folders = {file.parent for file in files if file.parent.is_dir()}

    def state(_: Path) -> int:
        return hash(tuple(map(_stamp, files)))

    watched = merge_now(*map(changes, sorted(folders)))
    states = watch_file_count(at.top, settle=_SETTLE, changes=lambda _: watched, count=state)
    return states.pipe(ops.skip(1))


def _stamp(file: Path) -> tuple[int, ...] | None:
    with suppress(OSError):
        found = file.lstat()
        return found.st_ino, found.st_size, found.st_mtime_ns
    return None


def delayed(now: Position, reason: str, paths: tuple[str, ...] = ()) -> WatchFollowDelayed:
    """Return the event of a branch that cannot follow yet."""
    return WatchFollowDelayed(branch=now.branch, commit=now.trunk, reason=reason, paths=paths)
