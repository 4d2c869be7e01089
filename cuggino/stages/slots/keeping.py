"""Work that is left in a slot: found, and kept under refs of the user's repository."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from cuggino.errors import ProcessFailed
from cuggino.events import WatchWorkKept
from cuggino.files import storing
from cuggino.git import (
    EACH_REF,
    IDENTITY,
    MODULE,
    STATUS,
    Git,
    changed_files,
    commits_of_refs,
    diff_trees,
)
from cuggino.operators import Flow
from cuggino.stages.slots.copying import copy_lfs
from cuggino.stages.slots.folder import Slot
from cuggino.stages.slots.record import SlotRecord, record_path
from cuggino.stages.slots.refs import (
    ATTEMPTS,
    BASES,
    CANDIDATES,
    KEPT,
    TRUNK,
    kept_ref,
    kept_refs,
)

UNCOMMITTED = "Cuggino-Kept: uncommitted"
"""The trailer of a commit that holds uncommitted work."""

_CHANGES = "uncommitted changes"
_COMMITS = "commits that have not landed"
_OTHERS = "branches, stashes or kept work in it"
_LEAVING = "refs/cuggino/leaving"


class NotKept(Exception):
    """Work that no commit can hold, such as a repository within the slot."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """Work in a slot that has not landed."""

    commit: str
    reason: str


def is_ours(path: str) -> bool:
    """Return whether a path is in the workspace of cuggino."""
    return path == ".cuggino" or ".cuggino/" in path


def changes(slot: Slot, specs: str) -> Flow[tuple[str, ...]]:
    """Return the changed files in the slot, except the specifications and `.cuggino`.

    They are the entries that `changed_files` parses.
    """
    left_out = [f":(exclude,literal){path}" for path in _excluded(slot, specs)]
    words = (*STATUS, "--untracked-files=normal", "--", ".", *left_out)
    return tuple((yield from slot.git.must(*words)).fields)


def known_refs(git: Git) -> Flow[dict[str, str]]:
    """Return the refs of the user's repository by which work is safe: their commits by name."""
    where = (TRUNK, CANDIDATES, KEPT, ATTEMPTS, BASES, "refs/heads")
    return commits_of_refs((yield from git.must(*EACH_REF, *where)).text)


def left_in(
    slot: Slot, record: SlotRecord, known: Mapping[str, str], specs: str
) -> Flow[list[str]]:
    """Return the kinds of work in the slot that no ref of the user's repository holds.

    Raises:
        ProcessError: git cannot read the slot.
    """
    found = []
    if set((yield from changes(slot, specs))) - set(record.dirt):
        found.append(_CHANGES)
    head = (yield from slot.git.must("rev-parse", "--verify", "HEAD")).text
    if not (yield from _is_safe(slot, head, known)):
        found.append(_COMMITS)
    for commit in (yield from _tips(slot)):
        if commit != head and not (yield from _is_safe(slot, commit, known)):
            return [*found, _OTHERS]
    return found


def leftovers(
    slot: Slot, record: SlotRecord, known: Mapping[str, str], specs: str
) -> Flow[tuple[str, list[Leftover]]]:
    """Return the commit with the work in the slot, and what no ref of the user's repository holds.

    Uncommitted files become a commit that only this process knows of; the files stay as they are.

    Raises:
        ProcessError: git cannot read the slot.
        NotKept: a commit cannot hold the work.
    """
    work = head = (yield from slot.git.must("rev-parse", "--verify", "HEAD")).text
    found = []
    dirty = set((yield from changes(slot, specs))) - set(record.dirt)
    if dirty:
        for entry in changed_files(dirty):
            if not entry.is_untracked and (slot.root / entry.path).is_dir():
                raise NotKept(f"there are changes within the submodule {entry.path}")
        work = yield from _stored(slot, head, specs)
        found.append(Leftover(work, _CHANGES))
    elif not (yield from _is_safe(slot, head, known)):
        found.append(Leftover(head, _COMMITS))
    for commit in (yield from _tips(slot)):
        if commit != head and not (yield from _is_safe(slot, commit, known)):
            found.append(Leftover(commit, _OTHERS))
    return work, found


def keep(
    slot: Slot, record: SlotRecord, known: Mapping[str, str], found: list[Leftover]
) -> Flow[list[WatchWorkKept]]:
    """Store the leftovers under refs of the item; return what was not kept before."""
    item = record.item or slot.root.name
    last = max(numbered(known, item), default=0)
    events, specs, refs = [], [], []
    for one in {one.commit: one for one in found}.values():
        if one.commit in known.values():
            continue
        last += 1
        ref = kept_ref(item, last)
        refs.append(f"update {_LEAVING}/{last} {one.commit}\n")
        specs.append(f"+{_LEAVING}/{last}:{ref}")
        events.append(
            WatchWorkKept(ref=ref, slot=slot.number, filename=record.item, reason=one.reason)
        )
    if events:
        stdin = "".join(refs).encode()
        yield from slot.git.must("update-ref", "--stdin", stdin=stdin)
        yield from copy_lfs(slot)
        yield from slot.project_git.fetch(slot.root, *specs)
    return events


def numbered(known: Mapping[str, str], item: str) -> dict[int, str]:
    """Return the refs of an item's kept work by their numbers; landings name theirs otherwise."""
    mine = f"{kept_refs(item)}/"
    names = ((name.removeprefix(mine), name) for name in known if name.startswith(mine))
    return {int(last): name for last, name in names if last.isdecimal() and len(last) < 7}


def is_uncommitted(git: Git, commit: str) -> Flow[bool]:
    """Return whether the commit was made by cuggino to keep uncommitted files."""
    words = ("log", "-1", "--format=%(trailers:key=Cuggino-Kept)", commit)
    return UNCOMMITTED in (yield from git.must(*words)).text


def set_aside(slot: Slot, record: SlotRecord, reason: str) -> WatchWorkKept:
    """Move a slot away that git cannot clean, with everything in it.

    Raises:
        StorageError: it cannot be moved.
    """
    home = slot.root.parent
    taken = (home / f"kept-{slot.root.name}-{number}" for number in range(1, 10_000))
    free = next(folder for folder in taken if not os.path.lexists(folder))
    with storing("move", slot.root):
        slot.root.rename(free)
        with suppress(FileNotFoundError):
            record_path(slot.root).rename(record_path(free))
    return WatchWorkKept(
        ref=str(free),
        slot=slot.number,
        filename=record.item,
        reason=f"the slot is set aside: {reason}",
    )


def _excluded(slot: Slot, specs: str) -> Iterator[str]:
    within = slot.folder.relative_to(slot.root)
    for path in (".cuggino", specs):
        place = os.path.normpath(within / path)
        if place != "." and not place.startswith(("..", "/")):
            yield place


def _stored(slot: Slot, head: str, specs: str) -> Flow[str]:
    """Return a commit with the files of the slot as they are; its index stays untouched."""
    git = slot.root / ".git"
    index = git / "cuggino-index"
    with storing("copy", index):
        index.unlink(missing_ok=True)
        if (git / "index").is_file():
            shutil.copyfile(git / "index", index)
    env = {"GIT_INDEX_FILE": os.fspath(index)}
    left_out = [f":(literal){path}" for path in _excluded(slot, specs)]
    try:
        # `add` fails on an excluded path that is ignored, as `.cuggino` is.
        words = ("-c", "advice.addEmbeddedRepo=false", "add", "--all", "--", ".")
        yield from slot.git.must(*words, env=env)
        if left_out:
            back = ("reset", "--quiet", head, "--", *left_out)
            yield from slot.git.must(*back, env=env)
        tree = (yield from slot.git.must("write-tree", env=env)).text
    finally:
        index.unlink(missing_ok=True)
    yield from _check_repositories(slot, head, tree)
    # The same work gives the same commit, so that it is kept once.
    when = (yield from slot.git.must("log", "-1", "--format=%ct +0000", head)).text
    dates = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
    text = f"Uncommitted work in slot {slot.number}\n\n{UNCOMMITTED}\n".encode()
    words = ("commit-tree", tree, "-p", head, "-F", "-")
    return (yield from slot.git.must(*words, env={**IDENTITY, **dates}, stdin=text)).text


def _check_repositories(slot: Slot, head: str, tree: str) -> Flow[None]:
    """Refuse a tree with commits of other repositories that `head` does not have."""
    for one in (yield from diff_trees(slot.git, head, tree)):
        if one.mode == MODULE:
            raise NotKept(f"{one.path} is a repository of its own")


def _tips(slot: Slot) -> Flow[list[str]]:
    """Return the commits of branches and stashes in the slot, and those that hands left in it."""
    where = ("refs/heads", "refs/stash", TRUNK, CANDIDATES, KEPT)
    listed = yield from slot.git.must(*EACH_REF, *where)
    refs = commits_of_refs(listed.text)
    tips = [*refs.values()]
    if "refs/stash" in refs:
        all_of_them = ("--walk-reflogs", "--format=%H", "refs/stash", "--")
        tips += (yield from slot.git.must("log", *all_of_them)).text.split()
    return list(dict.fromkeys(tips))


def _is_safe(slot: Slot, commit: str, known: Mapping[str, str]) -> Flow[bool]:
    """Return whether a ref of the user's repository holds the commit."""
    commits = set(known.values())
    if commit in commits:
        return True
    words = ("rev-list", "--max-count=1", "--ignore-missing", "--stdin")
    stdin = "".join((commit, *(f"\n^{one}" for one in sorted(commits)), "\n")).encode()
    if not (yield from slot.git.must(*words, stdin=stdin)).text:
        return True
    return (yield from _has_nothing_new(slot, commit, known.get(TRUNK)))


def _has_nothing_new(slot: Slot, commit: str, trunk: str | None) -> Flow[bool]:
    """Return whether others have landed the same changes, so that the item had nothing to land."""
    if trunk is None:
        return False
    try:
        words = ("rev-list", "--min-parents=2", "--max-count=1", commit, f"^{trunk}")
        if (yield from slot.git.must(*words)).text:
            return False
        listed = (yield from slot.git.must("cherry", trunk, commit)).text
    except ProcessFailed:  # a trunk that a shallow clone does not have
        return False
    return not any(line.startswith("+") for line in listed.splitlines())
