"""The owner of protected files: what they must hold, kept in the memory of this process.

`ExpectedFiles` remembers chosen paths when a session begins, finds what differs on the disk at its
end, and restores it. Writes of this process in between, such as those of its tools, belong into an
`own_write` block, so that they are expected. `expected` returns what a file must hold meanwhile,
whatever the disk says.
"""

from __future__ import annotations

import os
import shutil
import stat
import threading
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

LARGEST = 64 * 1024 * 1024
"""Bytes of the largest file that is kept in memory to be put back, and of all of them together."""

_turn = threading.RLock()
"""Held while a file is written, and while the disk is compared."""

_running: list[ExpectedFiles] = []
"""Those of the sessions that run now."""

_read: dict[tuple[str, ...], dict[str, tuple[PathPrint, bytes | None]]] = {}
"""The files that were read, by the paths of a session: only a changed print is read again."""

_PROJECTS = 16
"""Number of projects and kinds of sessions whose files are remembered."""


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


@contextmanager
def own_write(path: Path, content: bytes, *, appends: bool = False) -> Iterator[None]:
    """Write a file within the block, so that running sessions expect its new content.

    If the block raises, nothing has changed. A change by somebody else that it overwrites is
    remembered as one of the session.
    """
    with _turn:
        watching = [(one, name) for one in _running if (name := one.name_of(path))]
        for one, name in watching:
            if not (appends and one.can_grow(name, content)):
                one.look_at(name)
        yield
        for one, name in watching:
            one.record(name, content, appends=appends)


def expected(path: Path) -> bytes | None:
    """Return what the file must hold while a session runs that the system does not confine.

    None if none runs, or if it protects no such file.

    Raises:
        FileNotFoundError: the file must not exist.
    """
    with _turn:
        for one in _running:
            if one.is_enforced and (name := one.name_of(path)):
                return one.content(name)
    return None


class ExpectedFiles:
    """The expected state of paths and of all that they contain; links are not followed.

    The folders of `paths` are resolved. `exempt` paths are left out with what they contain; of
    `shallow` ones, the folders around others, only the kind counts. In the folders `blanks`, but
    not in `strict`, a new folder and a new file that is empty and not executable are no change:
    sandboxes of agents leave such places to mount on. Nothing can be put back unless it
    `is_enforced`.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        *,
        exempt: Iterable[Path] = (),
        shallow: Iterable[Path] = (),
        blanks: Iterable[Path] = (),
        strict: Iterable[Path] = (),
        is_enforced: bool = True,
    ) -> None:
        # Paths are text, as there may be a hundred thousand, such as the items of a backlog.
        self._paths = tuple(dict.fromkeys(map(os.fspath, paths)))
        self._inside = tuple(f"{path}/" for path in self._paths)
        self._exempt = frozenset(map(os.fspath, exempt))
        self._shallow = frozenset(map(os.fspath, shallow))
        self._blanks = tuple(f"{folder}/" for folder in blanks)
        self._strict = tuple(f"{folder}/" for folder in strict)
        self.is_enforced = is_enforced
        self._prints: dict[str, PathPrint] = {}
        self._contents: dict[str, bytes | bytearray | None] = {}
        self._folders: dict[str, str] = {}
        """Where the folder of each path leads to."""
        self._overwritten: dict[str, PathVersion | None] = {}
        """Changes by others that own writes have replaced."""
        self._known_names: dict[Path, str] = {}
        """The names of files that this process has written, or ""."""
        self._written: set[str] = set()
        """The files that this process has written."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Take the state as it is now, and expect it within the block."""
        with _turn:
            self._prints = self._now()
            self._contents = dict(self._read()) if self.is_enforced else {}
            self._folders = {path: os.path.realpath(_folder(path)) for path in self._paths}
            self._overwritten, self._known_names, self._written = {}, {}, set()
            _running.append(self)
        try:
            yield
        finally:
            with _turn:
                _running.remove(self)

    def name_of(self, path: Path) -> str:
        """Return the name by which a file is known here, or ""."""
        name = self._known_names.get(path)
        if name is None:
            name = next((name for name in _names(path) if self._covers(name)), "")
            self._known_names[path] = name
        return name

    def is_own(self, path: Path) -> bool:
        """Return whether this process has written the file since the state was taken."""
        return os.fspath(path) in self._written

    def content(self, name: str) -> bytes | None:
        """Return the expected content of a file; None if it is unknown, or for a folder.

        Raises:
            FileNotFoundError: the file must not exist.
        """
        if name not in self._prints:
            raise FileNotFoundError(name)
        found = self._contents.get(name)
        return None if found is None else bytes(found)

    def can_grow(self, name: str, content: bytes) -> bool:
        """Return whether the whole file is still known when this is appended to it."""
        known = self._contents.get(name)
        if known is None or name not in self._prints:
            return False
        return len(known) + len(content) <= LARGEST

    def look_at(self, name: str) -> None:
        """Remember how a file differs, before it is overwritten."""
        if not self._is_same(name, now := _print(name)):
            self._overwritten.setdefault(name, _version(name, now))

    def record(self, name: str, content: bytes, *, appends: bool) -> None:
        """Expect this content, or at the end of the old one, in a file that was just written."""
        self._written.add(name)
        if appends and self.can_grow(name, content):  # it is compared by its content
            known = self._contents[name]
            longer = known if isinstance(known, bytearray) else bytearray(known or b"")
            longer += content
            self._contents[name] = longer
            return
        self._contents[name] = None if appends and name in self._prints else content
        if (now := _print(name)) is not None:
            self._prints[name] = now
        while name not in self._paths:  # folders may have been made for it
            name = _folder(name)
            if name not in self._prints and (now := _print(name)) is not None:
                self._prints[name] = now

    def lost_folders(self, paths: Iterable[Path]) -> bool:
        """Return whether one of these was a folder, and is none any more."""
        prints = ((path, self._prints.get(os.fspath(path))) for path in paths)
        folders = (path for path, print_ in prints if print_ and print_.kind == stat.S_IFDIR)
        return any(not path.is_dir() for path in folders)

    def in_no_view(self, changed: Collection[Path]) -> set[Path]:
        """Return the changes that no view prevents: in a missing path, or of a link."""
        loose = []
        for name in (*self._paths, *self._shallow):
            before = self._prints.get(name)
            if before is None or (before.kind == stat.S_IFLNK and Path(name) in changed):
                loose.append(name)
        return {path for path in changed if any(path.is_relative_to(name) for name in loose)}

    def changes(self) -> dict[Path, PathVersion | None]:
        """Return the paths that differ, each as it is now; None for one that is gone.

        A file that was written with the content it had does not differ.
        """
        with _turn:
            now = self._now()
            found = {
                name: _version(name, now.get(name))
                for name in {*self._prints, *now}
                if not self._is_same(name, now.get(name))
            }
            found |= self._overwritten
        return {Path(name): found[name] for name in sorted(found)}

    def put_back(self, paths: Iterable[Path]) -> tuple[Path, ...]:
        """Restore these paths, and return those that the disk still has otherwise."""
        chosen = sorted(set(map(os.fspath, paths)))
        with _turn:
            for name in chosen:  # folders first: nothing is written or removed behind a link
                self._overwritten.pop(name, None)
                with suppress(OSError):
                    self._restore(name)
            now = self._now()
            return tuple(Path(name) for name in chosen if not self._is_same(name, now.get(name)))

    def _restore(self, name: str) -> None:
        before, now = self._prints.get(name), _print(name)
        content = self._contents.get(name)
        if os.path.realpath(_folder(name)) != self._folder_of(name):
            return
        if before is not None and before.kind == stat.S_IFREG and content is None:
            return  # better the changed version than none
        if now is not None and (before is None or before.kind != now.kind):
            shutil.rmtree(name) if now.kind == stat.S_IFDIR else Path(name).unlink()
        if before is None:
            return
        path = Path(name)
        if before.kind == stat.S_IFREG:
            path.parent.mkdir(parents=True, exist_ok=True)
            _replace(path, bytes(content or b""), before.permissions)
        elif before.kind == stat.S_IFDIR:
            path.mkdir(parents=True, exist_ok=True)
            if name not in self._shallow:
                path.chmod(before.permissions)
        elif before.kind == stat.S_IFLNK and now != before:
            path.unlink(missing_ok=True)
            path.symlink_to(before.target)

    def _folder_of(self, name: str) -> str:
        """Return where the folder of a path led to; nothing between it and that may be a link."""
        for path, folder in self._folders.items():
            if name == path or name.startswith(f"{path}/"):
                return folder + _folder(name)[len(_folder(path)) :]
        return _folder(name)

    def _covers(self, name: str) -> bool:
        """Return whether `_now` can find it: it is inside, not exempt, and behind no link."""
        if name not in self._paths and not name.startswith(self._inside):
            return False
        if name in self._exempt:
            return False
        while name := _folder(name):
            print_ = self._prints.get(name)
            if name in self._exempt or (print_ is not None and print_.kind == stat.S_IFLNK):
                return False
        return True

    def _now(self) -> dict[str, PathPrint]:
        """Return the prints of all that exists."""
        found: dict[str, PathPrint] = {}
        todo = [path for path in self._paths if path not in self._exempt]
        while todo:
            path = todo.pop()
            if path in found or (print_ := _print(path)) is None:
                continue
            found[path] = print_
            if print_.kind == stat.S_IFDIR:
                with suppress(OSError):
                    children = [f"{path}/{name}" for name in os.listdir(path)]  # noqa: PTH208
                    todo += [child for child in children if child not in self._exempt]
        for path in self._shallow:
            if (print_ := _print(path)) is not None:
                found[path] = PathPrint(print_.kind, 0, target=print_.target)
        return found

    def _read(self) -> Iterator[tuple[str, bytes | None]]:
        """Yield the content of each file, the smallest first."""
        before, now, size = _read.pop(self._paths, {}), {}, 0
        files = (item for item in self._prints.items() if item[1].kind == stat.S_IFREG)
        for path, print_ in sorted(files, key=lambda item: item[1].size):
            size += print_.size
            known = before.get(path)
            if known is None or known[0] != print_:
                known = print_, _content(path) if size <= LARGEST else None
            now[path] = known
            yield path, known[1]
        while len(_read) >= _PROJECTS:
            _read.pop(next(iter(_read)))
        _read[self._paths] = now

    def _is_same(self, name: str, now: PathPrint | None) -> bool:
        before = self._prints.get(name)
        if before == now:
            return True
        if now is None:
            return False
        if before is None:
            is_blank = name.startswith(self._blanks) and not name.startswith(self._strict)
            return is_blank and _is_blank(now)
        known = self._contents.get(name)
        return (
            before.kind == now.kind == stat.S_IFREG
            and before.permissions == now.permissions
            and known is not None
            and len(known) == now.size
            and known == _content(name)
        )


@lru_cache(maxsize=256)
def _names(path: Path) -> tuple[str, ...]:
    """Return the path with each of its folders resolved, the outermost first.

    Cached: what an agent has replaced by a link since changes nothing.
    """
    names = (
        f"{os.path.realpath(folder)}/{path.relative_to(folder)}"
        for folder in reversed(path.absolute().parents)
        if path.is_relative_to(folder)
    )
    return tuple(dict.fromkeys((os.fspath(path), *names)))


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def _print(path: str) -> PathPrint | None:
    """Return the print of a path; None if there is nothing."""
    try:
        state = os.lstat(path)
    except (OSError, ValueError):
        return None
    kind, permissions = stat.S_IFMT(state.st_mode), stat.S_IMODE(state.st_mode)
    if kind == stat.S_IFREG:
        return PathPrint(kind, permissions, state.st_ino, state.st_ctime_ns, state.st_size)
    if kind == stat.S_IFLNK:
        target = ""
        with suppress(OSError):
            target = os.readlink(path)  # noqa: PTH115
        return PathPrint(kind, 0, target=target)
    return PathPrint(kind, permissions)


def _version(name: str, print_: PathPrint | None) -> PathVersion | None:
    if print_ is None:
        return None
    is_kept = print_.kind == stat.S_IFREG and print_.size <= LARGEST
    return PathVersion(print_, _content(name) if is_kept else None)


def _is_blank(print_: PathPrint) -> bool:
    if print_.kind == stat.S_IFREG:
        return print_.size == 0 and not print_.permissions & 0o111
    return print_.kind == stat.S_IFDIR


def _content(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - faster, and no Path here
            return file.read()
    except OSError:
        return None


def _replace(path: Path, content: bytes, permissions: int) -> None:
    """Write the whole file or nothing, as this process may be killed."""
    beside = path.with_name(f".{uuid.uuid4().hex}")
    try:
        beside.write_bytes(content)
        beside.chmod(permissions)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def files_of(versions: Mapping[Path, PathVersion | None]) -> Iterator[tuple[Path, bytes, bool]]:
    """Yield the files and links among the versions: path, content or target, whether a link."""
    for path, version in versions.items():
        if version is None:
            continue
        if version.print.kind == stat.S_IFLNK:
            yield path, os.fsencode(version.print.target), True
        elif version.content is not None:
            yield path, version.content, False
