"""Files with uncommitted changes: their states, and whether one has changed since."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from cuggino.operators import Flow, pause

_SLICE = 64
_CHUNK = 1 << 20


def states_of(folder: Path, paths: Iterable[str]) -> Flow[dict[str, str]]:
    """Return the state of each file by its name as text (`name_of`); a missing one has "".

    Folders, such as submodules, are left out.
    """
    states: dict[str, str] = {}
    for number, path in enumerate(paths):
        state = _state(folder / path)
        if state is not None:
            states[name_of(path)] = state
        if number % _SLICE == _SLICE - 1:
            yield from pause(0)
    return states


def name_of(path: str) -> str:
    """Return the path as text that can be stored; bytes outside UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def is_unchanged(file: Path, before: str) -> bool:
    """Return whether the file still has this state; its time does not matter."""
    try:
        if before and before.startswith(f"{_outside(file)} "):
            return True
    except OSError:
        return not before
    state = _state(file)
    return state is not None and state.rpartition(" ")[2] == before.rpartition(" ")[2]


def _outside(file: Path) -> str:
    """Return the metadata of the file as text, which is equal only if the file is unchanged."""
    found = file.lstat()
    parts = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_mode)
    return "-".join(map(str, parts))


def _state(file: Path) -> str | None:
    try:
        outside, mode = _outside(file), file.lstat().st_mode
        if stat.S_ISDIR(mode):
            return None
        digest = hashlib.sha256()
        if stat.S_ISLNK(mode):
            digest.update(b"link " + os.fsencode(file.readlink()))
        elif stat.S_ISREG(mode):
            digest.update(b"x" if mode & stat.S_IXUSR else b"-")
            with file.open("rb") as content:
                while chunk := content.read(_CHUNK):
                    digest.update(chunk)
        else:
            digest.update(b"special")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        return f"{outside} {error.errno}"
    return f"{outside} {digest.hexdigest()[:32]}"
