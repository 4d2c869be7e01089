"""Copies of files that git does not carry into a slot, made in small steps."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from cuggino.domain import is_cache
from cuggino.errors import ProcessFailed
from cuggino.files import remove, storing
from cuggino.git import STATUS, Git, changed_files, layout_of
from cuggino.operators import Flow, pause
from cuggino.sandbox import Views, top_of
from cuggino.stages.slots.folder import Slot

INCLUDED = ".worktreeinclude"
"""Patterns, as in `.gitignore`, of ignored files that a slot needs too, such as `.env`."""

_CHUNK = 1 << 20
_SLICE = 64
"""Files examined before the scheduler may run other work."""


def copy_specs(slot: Slot, specs: str) -> Flow[None]:
    """Make the specifications in the slot those of the project, committed or not.

    Specifications outside of the project, or behind a link that leaves it, are not copied.
    """
    source = (slot.project / specs).resolve()
    target = slot.folder / specs
    if Path(specs).is_absolute() or slot.folder.is_relative_to(target) or not _is_in(slot, target):
        return
    if source.is_dir():
        yield from _mirror(source, target.resolve())
    elif source.is_file():
        yield from _copy(source, target.resolve())
    else:
        with storing("remove", target):
            remove(target)


def copy_included(slot: Slot) -> Flow[None]:
    """Copy the files that `.worktreeinclude` names and git ignores from the project."""
    for path in (yield from included_files(slot.project_git)):
        if _is_in(slot, slot.folder / path):
            yield from _copy(slot.project / path, slot.folder / path)


def included_files(git: Git) -> Flow[list[str]]:
    """Return the files that `.worktreeinclude` names and git ignores."""
    if not (git.cwd / INCLUDED).is_file():
        return []
    words = ("ls-files", "-z", "--others", "--ignored", f"--exclude-per-directory={INCLUDED}")
    named = (yield from git.must(*words)).fields
    paths = [path for path in named if not path.startswith(".cuggino/")]
    try:
        stdin = os.fsencode("\0".join(paths))
        return (yield from git.must("check-ignore", "-z", "--stdin", stdin=stdin)).fields
    except ProcessFailed as error:
        if error.child_exit_code != 1:  # none of them
            raise
        return []


def missing_ignored(
    project: Path, folder: Path, *, views: Views | None = None
) -> Flow[tuple[str, ...]]:
    """Return the ignored files of the project that a checkout of it in `folder` lacks.

    A folder that git ignores as a whole is one entry, with a slash at its end. Caches of compilers
    and tests are left out.

    Raises:
        ProcessError: git cannot read the project.
    """
    project = project.resolve()
    words = (*STATUS, "--ignored=traditional", "--untracked-files=normal", "--", ".")
    listed = yield from Git(cwd=project, views=views).must(*words)
    within = project.relative_to(top_of(project)).as_posix()
    prefix = "" if within == "." else f"{within}/"
    ignored = [one for one in changed_files(listed.fields) if one.state == "!!"]
    paths = [one.path.removeprefix(prefix) for one in ignored]
    wanted = (path for path in paths if not (path.startswith(".cuggino/") or is_cache(path)))
    return tuple(path for path in wanted if not os.path.lexists(folder / path))


def copy_lfs(slot: Slot) -> Flow[None]:
    """Give the project the large files of LFS in the slot; git fetches only pointers to them."""
    source = slot.root / ".git" / "lfs" / "objects"
    if not source.is_dir():
        return
    target = (yield from layout_of(slot.project_git)).common / "lfs" / "objects"
    for path in _files(source):
        there = target / path.relative_to(source)
        if there.exists():
            continue
        with storing("copy", path):
            there.parent.mkdir(parents=True, exist_ok=True)
            try:
                there.hardlink_to(path)
            except OSError:  # another file system
                beside = there.with_name(f"{there.name}.cuggino-new")
                shutil.copyfile(path, beside)
                beside.replace(there)
        yield from pause(0)


def _mirror(source: Path, target: Path) -> Flow[None]:
    """Make a folder the same as another: files, links and modes, and nothing else."""
    folders = [(source, target)]
    while folders:
        here, there = folders.pop()
        with storing("copy", here):
            if there.is_symlink() or not there.is_dir():
                remove(there)
                there.mkdir(parents=True)
            wanted = {entry.name: entry for entry in os.scandir(here)}
            for name in {entry.name for entry in os.scandir(there)} - wanted.keys():
                remove(there / name)
        for name, entry in wanted.items():
            if entry.is_dir(follow_symlinks=False):
                folders.append((here / name, there / name))
            else:
                yield from _copy(here / name, there / name)


def _copy(source: Path, target: Path) -> Flow[None]:
    """Copy a file with its mode, or a link as it is; nothing happens if it is the same."""
    with storing("copy", source):
        if source.is_symlink():
            link = source.readlink()
            if not target.is_symlink() or target.readlink() != link:
                remove(target)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(link)
            return
        found = source.lstat()
    if not stat.S_ISREG(found.st_mode):
        return
    beside = target.with_name(f".{target.name}.cuggino-new")
    try:
        with storing("copy", source), source.open("rb") as content:
            same = yield from _is_same(content, found, target)
        if not same:
            with storing("copy", source):
                if target.is_dir() and not target.is_symlink():
                    remove(target)
                target.parent.mkdir(parents=True, exist_ok=True)
            with storing("copy", source), source.open("rb") as content, beside.open("wb") as new:
                while chunk := content.read(_CHUNK):
                    new.write(chunk)
                    yield from pause(0)
            with storing("copy", source):
                shutil.copystat(source, beside)
                beside.replace(target)
    finally:
        with suppress(OSError):
            beside.unlink()
    yield from pause(0)


def _is_same(content: BinaryIO, found: os.stat_result, target: Path) -> Flow[bool]:
    try:
        there = target.lstat()
        if not stat.S_ISREG(there.st_mode) or there.st_size != found.st_size:
            return False
        if stat.S_IMODE(there.st_mode) != stat.S_IMODE(found.st_mode):
            return False
        if there.st_mtime_ns == found.st_mtime_ns:  # an earlier copy
            return True
        with target.open("rb") as other:
            while chunk := content.read(_CHUNK):
                if other.read(_CHUNK) != chunk:
                    return False
                yield from pause(0)
    except OSError:
        return False
    return True


def _is_in(slot: Slot, target: Path) -> bool:
    """Return whether a path is in the slot, and no link leads out of it."""
    root = slot.root.resolve()
    return target.resolve().is_relative_to(root) and not target.resolve().is_relative_to(
        root / ".git"
    )


def _files(folder: Path) -> Iterator[Path]:
    with suppress(OSError):
        for where, _, names in os.walk(folder):
            yield from (Path(where) / name for name in names)
