"""Reading files that agents write: what is no file, or without an end, is refused."""

from __future__ import annotations

import stat
from pathlib import Path

BIGGEST = 64 * 1024 * 1024
"""Bytes that are read at most."""


def read_regular(path: Path, *, biggest: int = BIGGEST) -> bytes:
    """The bytes of a file.

    Raises:
        ValueError: it is no file, or too large.
        OSError: there is none, or it cannot be read.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is no file")  # opening a pipe would wait for its writer
    if found.st_size > biggest:
        raise ValueError("it is too large")
    return path.read_bytes()
