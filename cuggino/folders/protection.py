"""`Protection`: remembers the state of chosen paths, detects changes, and restores them."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

LARGEST = 8 * 1024 * 1024
"""Bytes of the largest file that is kept in memory to be put back."""


class PathPrint(NamedTuple):
    """The metadata of a path, without its content.

    Programs cannot set the change time of an inode, so a file with an equal print has not been
    written.
    """

    kind: int
    permissions: int
    inode: int = 0
    changed_ns: int = 0
    size: int = 0
    target: str = ""
    """The target of a link."""


class PathVersion(NamedTuple):
    """One version of a path, with its content."""

    print: PathPrint
    content: bytes | None
    """None for a folder, a link, and a file that is too large or unreadable."""


def path_prints(paths: Iterable[str], *, exempt: Collection[str]) -> dict[str, PathPrint]:
    """Return the prints of the paths and of all that they contain; links are not followed.

    `exempt` paths are left out with what they contain, and so is what does not exist. Paths are
    text, as there may be a hundred thousand, such as the items of a backlog.
    """
    found: dict[str, PathPrint] = {}
    todo = [path for path in paths if path not in exempt]
    while todo:
        path = todo.pop()
        try:
            state = os.lstat(path)
        except OSError:
            continue
        found[path] = _print(path, state)
        if stat.S_ISDIR(state.st_mode):
            with suppress(OSError):
                children = [f"{path}/{name}" for name in os.listdir(path)]  # noqa: PTH208
                todo += [child for child in children if child not in exempt]
    return found


def _print(path: str, state: os.stat_result) -> PathPrint:
    kind, permissions = stat.S_IFMT(state.st_mode), stat.S_IMODE(state.st_mode)
    if kind == stat.S_IFREG:
        return PathPrint(kind, permissions, state.st_ino, state.st_ctime_ns, state.st_size)
    if kind == stat.S_IFLNK:
        target = ""
        with suppress(OSError):
            target = os.readlink(path)  # noqa: PTH115
        return PathPrint(kind, 0, target=target)
    return PathPrint(kind, permissions)


class Protection:
    """The state of paths at one time, with the contents needed to put it back.

    It can be taken again and again; a file is read only when its print has changed. In the folders
    `blanks`, but not in `strict`, a new folder and a new file that is empty and not executable are
    no change: sandboxes of agents leave such places to mount on. Without `contents` nothing can be
    put back, and a file that was written counts as changed.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        *,
        exempt: Iterable[Path] = (),
        blanks: Iterable[Path] = (),
        strict: Iterable[Path] = (),
        contents: bool = True,
    ) -> None:
        self._paths = tuple(dict.fromkeys(map(os.fspath, paths)))
        self._exempt = frozenset(map(os.fspath, exempt))
        self._blanks = tuple(f"{folder}/" for folder in blanks)
        self._strict = tuple(f"{folder}/" for folder in strict)
        self._keeps = contents
        self._before: dict[str, PathPrint] = {}
        self._contents: dict[str, bytes | None] = {}

    def take(self) -> None:
        """Remember the state as it is now."""
        prints = path_prints(self._paths, exempt=self._exempt)
        self._contents = {
            path: self._contents[path]
            if self._before.get(path) == print_ and path in self._contents
            else _content(path, print_)
            for path, print_ in (prints.items() if self._keeps else ())
            if print_.kind == stat.S_IFREG
        }
        self._before = prints

    def in_no_view(self, changed: Collection[Path]) -> set[Path]:
        """Return the changes that no view prevents: in a missing path, or of a link."""
        loose = []
        for name in self._paths:
            before = self._before.get(name)
            if before is None or (before.kind == stat.S_IFLNK and Path(name) in changed):
                loose.append(name)
        return {path for path in changed if any(path.is_relative_to(name) for name in loose)}

    def changes(self) -> dict[Path, PathVersion | None]:
        """Return the paths that differ, each as it is now; None for one that is gone.

        A file that was written with the content it had does not differ.
        """
        now = path_prints(self._paths, exempt=self._exempt)
        changed: dict[Path, PathVersion | None] = {}
        for name in sorted({*self._before, *now}):
            before, after = self._before.get(name), now.get(name)
            if before == after:
                continue
            path = Path(name)
            if after is None:
                changed[path] = None
                continue
            if (
                before is None
                and name.startswith(self._blanks)
                and not name.startswith(self._strict)
                and _is_blank(after)
            ):
                continue
            content = _content(name, after)
            is_same_file = (
                before is not None
                and before.kind == after.kind == stat.S_IFREG
                and before.permissions == after.permissions
                and before.size == after.size
                and content is not None
                and content == self._contents.get(name)
            )
            if not is_same_file:
                changed[path] = PathVersion(after, content)
        return changed

    def put_back(self, paths: Iterable[Path]) -> tuple[Path, ...]:
        """Restore these paths; return those that cannot be, such as a file that was too large."""
        chosen, failed = sorted(set(paths)), []
        for path in reversed(chosen):  # the contents of a folder first
            before, content = self._of(path)
            with suppress(OSError):  # then it cannot be created below, or is in its place
                kind = stat.S_IFMT(path.lstat().st_mode)
                if before is None or before.kind != kind or kind != stat.S_IFDIR:
                    _remove(path, kind, keep=_lost(before, content))
        for path in chosen:
            before, content = self._of(path)
            try:
                if before is None:
                    is_left = os.path.lexists(path)
                else:
                    is_left = _lost(before, content)
                    if not is_left:
                        _create(path, before, content)
            except OSError:
                is_left = True
            if is_left:
                failed.append(path)
        return tuple(failed)

    def _of(self, path: Path) -> tuple[PathPrint | None, bytes | None]:
        """Return the path as it was, and its content."""
        return self._before.get(os.fspath(path)), self._contents.get(os.fspath(path))


def _is_blank(print_: PathPrint) -> bool:
    if print_.kind == stat.S_IFREG:
        return print_.size == 0 and not print_.permissions & 0o111
    return print_.kind == stat.S_IFDIR


def _lost(before: PathPrint | None, content: bytes | None) -> bool:
    return before is not None and before.kind == stat.S_IFREG and content is None


def _content(path: str, print_: PathPrint) -> bytes | None:
    if print_.kind != stat.S_IFREG or print_.size > LARGEST:
        return None
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - faster, and no Path here
            return file.read()
    except OSError:
        return None


def _remove(path: Path, kind: int, *, keep: bool) -> None:
    if keep:  # better the changed version than none
        return
    if kind == stat.S_IFDIR:
        shutil.rmtree(path)
    else:
        path.unlink()


def _create(path: Path, before: PathPrint, content: bytes | None) -> None:
    if before.kind == stat.S_IFDIR:
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(before.permissions)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if before.kind == stat.S_IFLNK:
        path.symlink_to(before.target)
    elif content is not None:
        path.write_bytes(content)
        path.chmod(before.permissions)


def files_of(versions: Mapping[Path, PathVersion | None]) -> Iterator[tuple[Path, bytes, bool]]:
    """Yield the files and links among the versions: path, content or target, whether a link."""
    for path, version in versions.items():
        if version is None:
            continue
        if version.print.kind == stat.S_IFLNK:
            yield path, os.fsencode(version.print.target), True
        elif version.content is not None:
            yield path, version.content, False
