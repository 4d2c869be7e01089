"""What is in a folder, file by file, where there is no git to ask."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from reactivex import timer

from cuggino.operators import Flow, ask

WHOLE = 64 * 1024 * 1024
"""Bytes up to which a file counts with all of its content."""

SAMPLE = 1024 * 1024
"""Bytes at the start and at the end that count of a longer one, beside its size."""

LEFT_OUT = frozenset({b"node_modules", b"bower_components", b"__pycache__", b"venv"})
"""Folders that are no work of an agent, where no git knows what to ignore."""

_TELLTALES = frozenset({b"CACHEDIR.TAG", b"pyvenv.cfg"})
"""Files that mark the folder they are in as a cache or a virtual environment."""

_SLICE_FILES, _SLICE_BYTES = 256, 16 * 1024 * 1024
"""What is read in one go, before the scheduler's other work and a disposal have their turn."""

Entries = dict[bytes, bytes]
"""Each path, relative to the folder, with the kind and the identity of its content."""


def of_folder(folder: Path, exclude: tuple[Path, ...]) -> Flow[Entries]:
    """All files below the folder, hidden and generated folders left out.

    Raises:
        OSError: the folder itself cannot be read.
    """
    left_out = excluder(folder, exclude)
    entries: Entries = {}
    turn = Turn()
    waiting = [b""]
    while waiting:
        parent = waiting.pop()
        try:
            found = list(_listing(folder, parent))
        except OSError:
            if not parent:
                raise
            entries[parent] = b"unreadable"
            continue
        if parent and _TELLTALES.intersection(name for name, _is_folder in found):
            continue
        for name, is_folder in found:
            path = parent + b"/" + name if parent else name
            if left_out(path):
                continue
            if is_folder:
                if not name.startswith(b".") and name not in LEFT_OUT:
                    waiting.append(path)
                continue
            file = below(folder, path)
            try:
                status = file.lstat()
            except OSError:  # deleted just now
                continue
            entries[path] = b"%o %b" % (status.st_mode & 0o170100, identity(file, status))
            if turn.is_over(status.st_size):
                yield from pause()
    return entries


def _listing(folder: Path, parent: bytes) -> Iterator[tuple[bytes, bool]]:
    with os.scandir(os.fsencode(below(folder, parent))) as found:
        for entry in found:
            yield entry.name, entry.is_dir(follow_symlinks=False)


def identity(file: Path, status: os.stat_result) -> bytes:
    """What tells the content from another; blocks for 64 MiB at most."""
    try:
        if stat.S_ISLNK(status.st_mode):
            return hashlib.sha256(os.fsencode(file.readlink())).hexdigest().encode()
        if not stat.S_ISREG(status.st_mode):
            return b"special"
        # Not blocking, should a pipe have taken its place.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(file, flags), "rb") as content:
            if status.st_size <= WHOLE:
                return hashlib.sha256(content.read(WHOLE)).hexdigest().encode()
            sampled = hashlib.sha256(content.read(SAMPLE))
            content.seek(-SAMPLE, os.SEEK_END)
            sampled.update(content.read(SAMPLE))
            return b"%d %b" % (status.st_size, sampled.hexdigest().encode())
    except OSError:
        return b"unreadable %d" % status.st_size


def excluder(folder: Path, exclude: tuple[Path, ...]) -> Callable[[bytes], bool]:
    """Whether a path, relative to the folder, is excluded or below what is."""
    relative = {os.fsencode(os.path.relpath(path, folder)) for path in exclude}
    # The folder itself (`.`) is no path within it: to exclude all would make every state the same.
    names = {name for name in relative if name.split(b"/")[0] != b".."}
    parents = tuple(name + b"/" for name in names)
    return lambda path: path in names or path.startswith(parents)


def below(folder: Path, path: bytes) -> Path:
    """The path within the folder; an empty one is the folder."""
    return folder / os.fsdecode(path)


class Turn:
    """Counts what was read since the last pause."""

    def __init__(self) -> None:
        self._files = self._bytes = 0

    def is_over(self, size: int) -> bool:
        """Count a file of this size, and tell whether it is time for a pause."""
        self._files += 1
        self._bytes += min(size, WHOLE)
        over = self._files >= _SLICE_FILES or self._bytes >= _SLICE_BYTES
        if over:
            self._files = self._bytes = 0
        return over


def pause() -> Flow[None]:
    """Let the scheduler do what else is due."""
    yield from ask(timer(0.0))
