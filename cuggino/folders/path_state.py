"""`state_of_paths`: the content of chosen files, as digests that can be compared later."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

_DIGITS = 16


def state_of_paths(root: Path, patterns: Iterable[str], *, whole: bool = False) -> dict[str, str]:
    """Return a digest of each file that a pattern matches, by its path relative to `root`.

    A pattern is a path or a glob (`tests/**/*.py`) relative to `root`; a folder stands for all
    files below it. Content and the executable bit count; of a link its target counts; a file that
    cannot be read has the digest of its error. What does not exist is left out, and so is
    everything outside `root`. The `scripts` alone count of a `package.json`, as the rest changes
    with each dependency, unless it counts as a `whole`.
    """
    found: dict[str, str] = {}
    for path in sorted(set(_matches(root, patterns))):
        digest = _digest(path, whole=whole)
        if digest is not None:
            found[path.relative_to(root).as_posix()] = digest
    return found


def _matches(root: Path, patterns: Iterable[str]) -> Iterator[Path]:
    for pattern in patterns:
        parts = Path(os.path.normpath(pattern)).parts
        if not parts or parts[0] == ".." or Path(pattern).is_absolute() or "\0" in pattern:
            continue
        is_glob = any(set(part) & set("*?[") for part in parts)
        named = root.joinpath(*parts)
        for path in root.glob(str(Path(*parts))) if is_glob and not named.exists() else (named,):
            if path.is_dir():
                for folder, _, names in os.walk(path):
                    yield from (Path(folder, name) for name in names)
            else:
                yield path


def _digest(path: Path, *, whole: bool) -> str | None:
    content = hashlib.sha256()
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            content.update(b"link " + os.fsencode(path.readlink()))
            if not path.is_file():
                return content.hexdigest()[:_DIGITS]
        elif not stat.S_ISREG(mode):
            return None
        content.update(b"x" if path.stat().st_mode & stat.S_IXUSR else b"-")
        if path.name == "package.json" and not whole:
            content.update(_scripts(path))
        else:
            with path.open("rb") as file:
                for chunk in iter(lambda: file.read(1 << 20), b""):
                    content.update(chunk)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        content.update(str(error.strerror).encode())
    return content.hexdigest()[:_DIGITS]


def _scripts(path: Path) -> bytes:
    raw = path.read_bytes()
    try:
        package = json.loads(raw)
    except (ValueError, RecursionError):
        return raw
    scripts = package.get("scripts") if isinstance(package, dict) else None
    return json.dumps(scripts, sort_keys=True).encode()
