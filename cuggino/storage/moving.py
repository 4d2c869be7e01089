"""Moving a person's files without losing or overwriting any."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from cuggino.errors import StorageError
from cuggino.storage.ids import new_id

_LONGEST_NAME = 230
"""Bytes of a file name; most systems allow 255, and companion files have longer names."""
_LONGEST_SUFFIX = 20


def inside(folder: Path, name: str) -> Path:
    """Return the path of a file in the folder.

    Raises:
        StorageError: the name is not a plain file name.
    """
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise StorageError("name item", f"{name!r} is not a file name in {folder}")
    return folder / name


def move_into(source: Path, folder: Path, name: str, *, operation: str) -> Path:
    """Move the file to `name` in the folder, or to a similar free name (`name-2.md`).

    Within one file system it is renamed; across two, the copy is synced to disk before the source
    is removed. After any failure the source is unchanged.

    Raises:
        FileNotFoundError: the source is gone.
        StorageError: the system refused, for example because the disk is full.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        target = reserve(folder, name)
        try:
            try:
                source.replace(target)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                _copy_across(source, target)
        except OSError:
            # Never after an interruption: it may be the moved file itself.
            if os.path.lexists(source) or target.stat().st_size == 0:
                target.unlink(missing_ok=True)
            raise
    except OSError as error:
        if not os.path.lexists(source):
            raise FileNotFoundError(errno.ENOENT, "is gone", str(source)) from error
        raise StorageError(
            operation,
            f"{source} could not be moved to {folder} and is unchanged: {error.strerror or error}",
            hint="check the permissions and the free space of the folder",
        ) from error
    return target


def move_to_archive(source: Path, archive: Path, outcome: str) -> Path:
    """Move the file to `<uuid7>-<outcome>-<name>`; errors as `move_into`."""
    name = f"{new_id()}-{outcome}-{source.name}"
    return move_into(source, archive, name, operation=f"archive as {outcome}")


def reserve(folder: Path, name: str) -> Path:
    """Create an empty file with this name, or the first free similar one, exclusively."""
    stem, suffix = Path(name).stem, Path(name).suffix
    if len(suffix) > _LONGEST_SUFFIX:  # a sentence with a dot in it
        stem, suffix = name, ""
    number = 1
    while True:
        numbered = "" if number == 1 else f"-{number}"
        path = folder / f"{_cut(stem, len(os.fsencode(numbered + suffix)))}{numbered}{suffix}"
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        except FileExistsError:
            number += 1
        else:
            return path


def digest_of(path: Path) -> str | None:
    """Return the SHA-256 of the file's bytes, or None without a file."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return None  # opening a pipe would block
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def visible_entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return the entries of the folder that are not hidden, sorted; none if it is unreadable."""
    with suppress(OSError), os.scandir(folder) as entries:
        shown = (entry for entry in entries if not entry.name.startswith("."))
        return sorted(shown, key=lambda entry: entry.name)
    return []


def _copy_across(source: Path, target: Path) -> None:
    """Copy to another file system; remove the source only if it has not changed since."""
    beside = target.with_name(f".{new_id()}.tmp")
    try:
        for _ in range(3):
            with source.open("rb") as read, beside.open("wb") as write:
                shutil.copyfileobj(read, write)
                write.flush()
                os.fsync(write.fileno())
            with suppress(OSError):
                shutil.copystat(source, beside)
            if digest_of(source) == digest_of(beside):
                beside.replace(target)
                source.unlink()
                return
        raise OSError(errno.EBUSY, "it is being written to")
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def _cut(stem: str, taken: int) -> str:
    """Return the start of the stem that leaves room for `taken` bytes."""
    while stem and len(os.fsencode(stem)) + taken > _LONGEST_NAME:
        stem = stem[:-1]
    return stem
