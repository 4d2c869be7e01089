"""Writing a file so that a reader sees the old or the new text, never half of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cuggino.errors import StorageError


@contextmanager
def storing(operation: str, path: Path) -> Iterator[None]:
    """Turn an `OSError` into a `StorageError` that names the operation and the file."""
    try:
        yield
    except OSError as error:
        raise storage_error(operation, path, error) from error


def storage_error(operation: str, path: Path, error: OSError) -> StorageError:
    """The error that names the operation and the file."""
    return StorageError(
        operation,
        f"{path}: {error.strerror or error}",
        hint="check the permissions and the free space of the folder",
    )


def write_atomic(path: Path, text: str) -> None:
    """Write the text beside the file, sync it to the disk, and put it in the file's place."""
    beside = path.with_name(f".{path.name}.tmp")
    try:
        with beside.open("w", encoding="utf-8", errors="replace", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
