"""Helpers for tests of snapshots: the whole work tree, and going back to an earlier one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from cuggino import run
from cuggino.events import SnapshotTaken
from cuggino.git import MAX_FILE
from cuggino.stages import (
    GitSnapshots,
    Snapshot,
    Undone,
    UndoPlan,
    find_snapshot,
    undo_plan,
    undo_stage,
)
from tests.git_project import GitProject

APART = frozenset({".git", ".cuggino"})


def tree_of(root: Path) -> dict[str, tuple[str, bytes]]:
    """Return type and executable bit, and the content, of every file below the folder."""
    found: dict[str, tuple[str, bytes]] = {}
    for folder, folders, names in os.walk(root):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        folders[:] = [name for name in folders if name not in {*APART, *links}]
        for name in (*names, *links):
            path = Path(folder, name)
            status = path.lstat()
            place = os.fsdecode(os.path.relpath(path, root))
            if stat.S_ISLNK(status.st_mode):
                found[place] = ("link", os.fsencode(path.readlink()))
            else:
                kind = "program" if status.st_mode & stat.S_IXUSR else "file"
                found[place] = (kind, path.read_bytes())
    return found


def snapshots_of(project: GitProject, max_file: int = MAX_FILE) -> GitSnapshots:
    return GitSnapshots(project.root, project.root / ".cuggino/snapshots", max_file=max_file)


def take(snapshots: GitSnapshots, stage: str = "implementing-1", name: str = "one") -> Snapshot:
    """Take a snapshot and return it as it is listed."""
    taken = run(snapshots.take(name, stage))
    assert isinstance(taken, SnapshotTaken), taken
    listed = run(snapshots.all())
    assert listed is not None
    return next(one for one in listed if one.ref == taken.ref)


def plan(snapshots: GitSnapshots, snapshot: Snapshot) -> UndoPlan:
    planned = run(undo_plan(snapshots, snapshot))
    assert planned is not None
    return planned


def undo(snapshots: GitSnapshots, snapshot: Snapshot) -> Undone:
    undone = run(undo_stage(snapshots, plan(snapshots, snapshot)))
    assert undone is not None
    return undone


def undo_latest(snapshots: GitSnapshots, name: str | None = None) -> Undone:
    listed = run(snapshots.all())
    assert listed is not None
    return undo(snapshots, find_snapshot(listed, name))
