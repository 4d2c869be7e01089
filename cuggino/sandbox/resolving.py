"""Resolved paths, for the checks before and after each session."""

from __future__ import annotations

import os
import stat
from functools import lru_cache
from pathlib import Path


class Resolver:
    """A cache that resolves paths like `Path.resolve`, but reads each shared folder once.

    Use it for one check: it does not notice later changes.
    """

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def path(self, path: Path) -> Path:
        return path_of(self.text(str(path)))

    def text(self, path: str) -> str:
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = self._resolved(path)
        return known

    def _resolved(self, path: str) -> str:
        folder, slash, name = path.rpartition("/")
        if not folder or not slash or name in ("", ".", ".."):
            return os.path.realpath(path)
        parent = self.text(folder)
        joined = f"{parent}/{name}" if parent != "/" else f"/{name}"
        try:
            is_link = stat.S_ISLNK(os.lstat(joined).st_mode)
        except (OSError, ValueError):
            return joined
        return os.path.realpath(joined) if is_link else joined


@lru_cache(maxsize=1024)
def path_of(text: str) -> Path:
    """Return a cached path, as creating and hashing one takes time."""
    return Path(text)
