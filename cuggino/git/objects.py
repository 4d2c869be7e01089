"""Objects in a repository, read and written without git: a few cost less than one process."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import zlib
from collections.abc import Mapping
from pathlib import Path
from threading import get_ident
from typing import NamedTuple

from cuggino.git.listings import EXECUTABLE, LINK, PLAIN

TREE = b"40000"
"""The mode of a folder in a tree."""

_LARGEST = 256 * 1024
"""Bytes of the largest stored tree that is read."""


class Entry(NamedTuple):
    """An entry of a tree."""

    mode: bytes
    """In git's digits."""
    name: bytes
    """The hash of the object, as bytes."""


class UnknownObject(Exception):
    """An object that is packed, missing or too large to be read here."""


class Objects:
    """The folder of loose objects of one repository."""

    def __init__(self, folder: Path, algorithm: str) -> None:
        self._folder = folder
        self._algorithm = algorithm

    def write(self, kind: bytes, body: bytes) -> bytes:
        """Store an object and return its hash.

        Raises:
            OSError: it cannot be written.
        """
        raw = _raw(kind, body)
        digest = hashlib.new(self._algorithm, raw, usedforsecurity=False)
        name = digest.hexdigest()
        place = self._place(name)
        if not place.exists():
            place.parent.mkdir(exist_ok=True)
            new = place.with_name(f"tmp_obj_{name[:12]}_{os.getpid()}_{get_ident()}")
            new.write_bytes(zlib.compress(raw, 1))
            new.chmod(0o444)
            new.replace(place)
        return digest.digest()

    def tree_with(self, tree: bytes, changes: Mapping[bytes, Entry | None]) -> bytes:
        """Store a tree with these changes by path, None for a removed file, and return its hash.

        Raises:
            UnknownObject: a tree that changes cannot be read.
            OSError: it cannot be written.
        """
        return self._tree_with(tree, changes) or self.write(b"tree", b"")

    def tree_of(self, files: Mapping[bytes, Entry]) -> bytes:
        """Store a tree of files by path, and return its hash.

        Raises:
            OSError: it cannot be written.
        """
        return self._tree_with(None, files) or self.write(b"tree", b"")

    def _tree_with(self, tree: bytes | None, changes: Mapping[bytes, Entry | None]) -> bytes | None:
        """Return the changed tree, None if it is empty."""
        entries = {} if tree is None else self.entries(tree)
        below: dict[bytes, dict[bytes, Entry | None]] = {}
        added: dict[bytes, Entry] = {}
        for path, entry in changes.items():
            name, separator, rest = path.partition(b"/")
            if separator:
                below.setdefault(name, {})[rest] = entry
            elif entry is not None:
                added[name] = entry
            elif name in entries and entries[name].mode != TREE:
                del entries[name]
        for name, within in below.items():
            old = entries.get(name)
            is_tree = old is not None and old.mode == TREE
            new = self._tree_with(old.name if is_tree and old else None, within)
            if new is not None:
                entries[name] = Entry(TREE, new)
            elif is_tree:
                del entries[name]
        entries.update(added)
        if not entries:
            return None
        ordered = sorted(entries.items(), key=lambda one: one[0] + b"/" * (one[1].mode == TREE))
        body = b"".join(b"%b %b\0%b" % (entry.mode, name, entry.name) for name, entry in ordered)
        return self.write(b"tree", body)

    def entries(self, tree: bytes) -> dict[bytes, Entry]:
        """Return the entries of a stored tree by name.

        Raises:
            UnknownObject: it cannot be read here.
        """
        try:
            with self._place(tree.hex()).open("rb") as file:
                stored = file.read(_LARGEST + 1)
            raw = zlib.decompress(stored) if len(stored) <= _LARGEST else b""
        except (OSError, zlib.error) as error:
            raise UnknownObject(tree.hex()) from error
        kind, _, body = raw.partition(b"\0")
        if not kind.startswith(b"tree "):
            raise UnknownObject(tree.hex())
        return entries_of(body, len(tree))

    def _place(self, name: str) -> Path:
        return self._folder / name[:2] / name[2:]


def blob_name(content: bytes, algorithm: str = "sha1") -> str:
    """Return the hash by which git stores the content of a file."""
    return hashlib.new(algorithm, _raw(b"blob", content), usedforsecurity=False).hexdigest()


def _raw(kind: bytes, body: bytes) -> bytes:
    return b"%b %d\0%b" % (kind, len(body), body)


def read_file(file: Path, most: int) -> tuple[str, bytes]:
    """Return the mode in git's digits and the content of a link or a file.

    Raises:
        OSError: it is missing, has more than `most` bytes, or is neither.
    """
    if file.is_symlink():
        return LINK, os.fsencode(file.readlink())
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as opened:
        state = os.fstat(opened.fileno())
        fits = stat.S_ISREG(state.st_mode) and state.st_size <= most
        content = opened.read() if fits else None
    if content is None or len(content) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(file))
    return EXECUTABLE if state.st_mode & stat.S_IXUSR else PLAIN, content


def entries_of(body: bytes, digits: int) -> dict[bytes, Entry]:
    """Return the entries of a tree by name; its hashes have this number of bytes."""
    entries: dict[bytes, Entry] = {}
    start = 0
    while start < len(body):
        end = body.index(b"\0", start)
        mode, _, name = body[start:end].partition(b" ")
        start = end + 1 + digits
        entries[name] = Entry(mode, body[end + 1 : start])
    return entries
