"""The pages that are served now, for other programs of the user: their links are secret."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cuggino.files import parse_json, state_folder, storing

_FOLDER = "pages"
_LONGEST = 64 * 1024
_NUMBERS = itertools.count(1)


@contextmanager
def announce_page(
    url: str, folders: Iterable[Path], *, state: Path | None = None
) -> Iterator[Path | None]:
    """Let other programs of the user find the page, within the block; yield the file with the link.

    The link is in a file of the user's state folder (or `state`) that only the user can read. It is
    locked, so that the file of a killed server counts for nothing. Without a home folder there is
    none.

    Raises:
        StorageError: it cannot be written.
    """
    state = state or state_folder(os.environ)
    if state is None:
        yield None
        return
    folder = state / _FOLDER
    path = folder / f"{os.getpid()}-{next(_NUMBERS)}.json"
    with storing("announce page", path):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.unlink(missing_ok=True)
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with storing("announce page", path):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            content = {"url": url, "folders": [str(folder.resolve()) for folder in folders]}
            os.write(file, json.dumps(content).encode())
        yield path
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(file)


def served_page(folder: Path, *, state: Path | None = None) -> str | None:
    """Return the link of a running page that shows the project in `folder`, or None."""
    wanted = str(folder.resolve())
    return next((url for url, folders in _pages(state) if wanted in folders), None)


def served_folders(*, state: Path | None = None) -> list[Path]:
    """Return the projects that running pages show."""
    return [Path(folder) for _, folders in _pages(state) for folder in folders]


def _pages(state: Path | None) -> Iterator[tuple[str, list[str]]]:
    """Yield the link of each running page, with the projects that it shows."""
    state = state or state_folder(os.environ)
    if state is None:
        return
    try:
        found = sorted((state / _FOLDER).glob("*.json"))
    except OSError:
        return
    for path in found:
        page = _read(path)
        if page is not None:
            yield page


def _read(path: Path) -> tuple[str, list[str]] | None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:  # its server lives
            pass
        else:
            with suppress(OSError):
                path.unlink()
            return None
        match parse_json(os.read(file, _LONGEST)):
            case {"url": str(url), "folders": list(folders)}:
                return url, [folder for folder in folders if isinstance(folder, str)]
            case _:
                return None
    except (OSError, ValueError):
        return None
    finally:
        os.close(file)
