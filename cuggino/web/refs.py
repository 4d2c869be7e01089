"""The refs of slots in a repository: candidates that wait, and work that is kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Literal, NamedTuple
from urllib.parse import unquote

from cuggino.edges import iterate
from cuggino.errors import CugginoError
from cuggino.git import Git, git_folder

_CANDIDATES: Final = "refs/cuggino/candidates"
_KEPT: Final = "refs/cuggino/kept"
_MOST: Final = 200


class SlotRef(NamedTuple):
    """Work on an item under a ref."""

    kind: Literal["candidate", "kept"]
    ref: str
    commit: str
    """Abbreviated."""
    item: str


class RefReader:
    """A reader of a project's slot refs, which runs git only after they have changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._git: Path | None = None
        self._stamp: object = None
        self._refs: tuple[SlotRef, ...] = ()

    def read(self) -> tuple[SlotRef, ...]:
        """Return the refs; none without a repository or if git fails."""
        stamp = self._look()
        if stamp != self._stamp:
            self._stamp = stamp
            self._refs = () if stamp is None else _refs_of(self._folder)
        return self._refs

    def _look(self) -> tuple[int, ...] | None:
        if self._git is None:
            own = self._folder / ".git"
            self._git = own if own.is_dir() else git_folder(self._folder)
            if self._git is None:
                return None
        names = ("packed-refs", _CANDIDATES, _KEPT)
        found = tuple(_time_of(self._git / name) for name in names)
        return found if any(found) else None


def _time_of(path: Path) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 (polled)
    except OSError:
        return 0


def _refs_of(folder: Path) -> tuple[SlotRef, ...]:
    words = ("--format=%(refname) %(objectname:short)", f"--count={_MOST}", _CANDIDATES, _KEPT)
    asked = Git(cwd=folder).lines("for-each-ref", *words)
    try:
        return tuple(map(_ref, iterate(asked)))
    except CugginoError:
        return ()


def _ref(line: bytes) -> SlotRef:
    ref, _, commit = os.fsdecode(line).strip().partition(" ")
    is_kept = ref.startswith(f"{_KEPT}/")
    name = ref.removeprefix(f"{_KEPT if is_kept else _CANDIDATES}/").partition("/")[0]
    item = unquote(name, errors="replace")
    return SlotRef("kept" if is_kept else "candidate", ref, commit, item)
