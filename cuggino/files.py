"""Files: bounded reads, atomic writes, and JSON whose errors name the place."""

from __future__ import annotations

import fcntl
import json
import math
import os
import re
import shutil
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from cuggino.errors import StorageError
from cuggino.protection import own_write

BIGGEST = 64 * 1024 * 1024
"""Bytes that `read_regular` reads at most."""

_PROJECT = (".cuggino.json", ".cuggino", ".specs")
"""What only a project has, which is looked for in the folders above."""

DEEPEST = 100
"""Levels of nested objects and lists that `parse_json` accepts."""

_MOST_DIGITS = sys.float_info.max_10_exp
"""Digits of a whole number: other programs read a larger one as infinite, or not at all."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class storing:  # noqa: N801 - used as a function; a generator would take thrice as long
    """Turns an `OSError` into a `StorageError` that names the operation and the file."""

    def __init__(self, operation: str, path: Path) -> None:
        self._operation = operation
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError):
            raise storage_error(self._operation, self._path, error) from error


def storage_error(operation: str, path: Path, error: OSError) -> StorageError:
    """Return the error that names the operation and the file."""
    return StorageError(
        operation,
        f"{path}: {error.strerror or error}",
        hint="check the permissions and the free space of the folder",
    )


def temporary_folder() -> str:
    """Return the folder for temporary files; without a usable one, the one to mend."""
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:  # Python has tried to write into each that there could be
        return os.environ.get("TMPDIR") or "/tmp"


def read_regular(path: Path, *, biggest: int = BIGGEST) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        ValueError: not a regular file, or larger than `biggest` bytes.
        OSError: the file is missing or cannot be read.
    """
    # Opening a pipe would wait for its other end.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("not a regular file")
        too_large = found.st_size > biggest
        with open(descriptor, "rb", closefd=False) as file:
            content = b"" if too_large else file.read()
    finally:
        os.close(descriptor)
    if too_large or len(content) > biggest:
        raise ValueError(f"larger than {biggest} bytes")
    return content


def readable(path: Path, *, biggest: int = BIGGEST) -> bytes:
    """Return the bytes of a file that an agent may have written, if any.

    Empty for what cannot be read: a pipe, a device, what is missing or larger than `biggest`.
    """
    try:
        return read_regular(path, biggest=biggest)
    except (OSError, ValueError):
        return b""


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file, without a byte order mark and with `\\n` line endings.

    Raises:
        ValueError: not a regular file, not UTF-8, not text, or blank.
        OSError: the file is missing or cannot be read.
    """
    text = _decoded(read_regular(path))
    if "\0" in text:
        raise ValueError("not a text file: it contains a NUL character")
    if not text.strip():
        raise ValueError("blank")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_json_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises:
        ValueError: not a regular file, or no JSON object.
        OSError: the file is missing or cannot be read.
    """
    raw = parse_json(read_regular(path))
    if not isinstance(raw, dict):
        raise ValueError("not a JSON object")
    return raw


def parse_json(content: bytes) -> Any:
    """Return the value of a JSON text, which `render_json` can write again.

    Raises:
        ValueError: invalid JSON, with the line and column, a value that JSON cannot represent, or
            a key that an object has twice: one of its values would be lost.
    """
    try:
        raw = json.loads(
            _decoded(content),
            parse_constant=_refuse,
            parse_float=_finite,
            parse_int=_whole,
            object_pairs_hook=_distinct,
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise ValueError(f"{where}: not valid JSON ({error.msg})") from error
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if _is_deeper(raw, DEEPEST):
        raise ValueError("nested too deeply")
    return raw


def render_json(value: object) -> str:
    """Return the value as JSON, indented by two, as JavaScript writes it."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return _LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def describe(error: OSError | ValueError) -> str:
    """Return the problem with a file, to follow its path and a colon."""
    if isinstance(error, OSError):
        return f"cannot be read ({error.strerror or error})"
    return str(error)


def write_atomic(
    path: Path,
    text: str | Iterable[bytes],
    *,
    follow_links: bool = False,
    sync: bool = True,
    private: bool = False,
) -> None:
    """Write the text to a temporary file, sync it to disk, and rename it over `path`.

    A long text may come in parts, encoded. A reader sees the old or the new text, never a part of
    it, and of several writers at the same time the last one wins. An existing file keeps its
    permissions, and missing folders are created. A link at `path` is replaced, unless
    `follow_links` replaces its target. The temporary file is never an existing one, so a link
    planted in its place is not written through. Without `sync` a crash of the machine may leave an
    empty file. A `private` file can be read and written by its owner alone, also one that replaces
    another.

    Raises:
        OSError: the file cannot be written and is unchanged.
    """
    target = Path(os.path.realpath(path)) if follow_links else path
    content = text.encode("utf-8", "replace") if isinstance(text, str) else b"".join(text)
    target.parent.mkdir(parents=True, exist_ok=True)
    beside, descriptor = _temporary(target, 0o600 if private else 0o666)
    with open(descriptor, "wb") as file:  # noqa: PTH123
        try:
            with suppress(FileNotFoundError):
                mode = target.lstat().st_mode
                if stat.S_ISREG(mode) and not private:
                    os.fchmod(file.fileno(), stat.S_IMODE(mode))
            file.write(content)
            file.flush()
            if sync:
                os.fsync(file.fileno())
            with own_write(target, content):
                beside.replace(target)
        except BaseException:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
            raise


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with everything in it; it may be missing."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def blocking(top: Path, place: Path) -> Path | None:
    """Return the topmost path between `top` and `place` that is not a folder, if any."""
    folder = top
    for part in place.relative_to(top).parts[:-1]:
        folder /= part
        try:
            if not stat.S_ISDIR(folder.lstat().st_mode):
                return folder
        except OSError:
            return None
    return None


def remove_file(top: Path, path: str) -> None:
    """Remove a file below `top`, which may be missing, and any folders that this leaves empty.

    A path that leads through a link is left alone: it is another file.
    """
    place = top / path
    if blocking(top, place):
        return
    place.unlink(missing_ok=True)
    for folder in place.parents:
        if folder == top:
            break
        try:
            folder.rmdir()
        except OSError:  # not empty
            break


def state_folder(env: Mapping[str, str]) -> Path | None:
    """Return the folder for what cuggino remembers about a user: trust, keys, live pages.

    As the standard says, a relative one is ignored. None without a home folder.
    """
    given = env.get("XDG_STATE_HOME", "")
    if given and Path(given).is_absolute():
        return Path(given) / "cuggino"
    home = env.get("HOME", "")
    return Path(home) / ".local/state/cuggino" if Path(home).is_absolute() else None


def find_project(folder: Path) -> Path:
    """Return the project that a folder belongs to: itself or the nearest above, else `folder`.

    A project has a `.cuggino.json`, `.cuggino` or `.specs`. The search ends at the top of a git
    repository, and below the home folder, a folder of another user and one that others can write
    to, as their files must not decide what is started.
    """
    home = os.path.expanduser("~")  # noqa: PTH111 - `Path.home` raises without one
    for place in (folder, *folder.parents):
        if place != folder and (str(place) == home or not _is_own(place)):
            break
        if any(os.path.lexists(place / mark) for mark in _PROJECT):
            return place
        if os.path.lexists(place / ".git"):
            break
    return folder


def from_home(folder: Path) -> str:
    """Return a folder as a person writes it: from the home folder, if it is in there."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - `Path.home` raises without one
    try:
        return str("~" / folder.relative_to(home.resolve()))
    except ValueError:
        return str(folder)


def is_own_output(path: Path) -> bool:
    """Return whether this process prints into the file, as `cuggino run >log.txt` does."""
    for standard in (1, 2):
        with suppress(OSError):
            if os.path.samestat(os.fstat(standard), path.stat()):
                return True
    return False


def is_linked(folder: Path) -> bool:
    """Return whether a folder of the workspace, or the workspace itself, is a link.

    A cloned project can contain one that leads to the files of another program.
    """
    return folder.is_symlink() or folder.parent.is_symlink()


def _is_own(folder: Path) -> bool:
    """Return whether the folder is of this user, and not everybody may write to it."""
    try:
        status = folder.stat()
    except OSError:
        return False
    return status.st_uid == os.getuid() and not status.st_mode & stat.S_IWOTH


def _temporary(target: Path, mode: int) -> tuple[Path, int]:
    """Create a locked file beside the target.

    Its name is the same each time, so that the next write removes what a killed process has left;
    a random one while another process is writing.
    """
    beside = target.with_name(f".{target.name}.tmp")
    while True:
        if not _remove_left(beside):
            beside = target.with_name(f".{target.name}.{os.urandom(8).hex()}.tmp")
        with suppress(FileExistsError):  # another process was faster
            descriptor = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
            if _lock(descriptor) is not False and _is_at(beside, descriptor):
                return beside, descriptor
            os.close(descriptor)  # another process took it for a left one before it was locked


def _remove_left(path: Path) -> bool:
    """Remove a temporary file; return False if a process writes it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return True
    except OSError:  # a link
        path.unlink(missing_ok=True)
        return True
    try:
        if _lock(descriptor) is False:
            return False
        if _is_at(path, descriptor):  # while it is locked, nobody else puts another one there
            path.unlink(missing_ok=True)
        return True
    finally:
        os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _lock(descriptor: int) -> bool | None:
    """Lock the file if nobody else has; None on a file system without locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start}: not UTF-8") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not valid JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"the number {digits[:20]} is too large")
    return value


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"the number {digits[:20]}... is too large")
    return int(digits)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        raise ValueError(f'the key "{twice}" is there twice')
    return found


def _is_deeper(value: object, levels: int) -> bool:
    match value:
        case dict():
            below = list(value.values())
        case list():
            below = value
        case _:
            return False
    return levels == 0 or any(_is_deeper(item, levels - 1) for item in below)
