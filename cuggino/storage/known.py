"""The projects of this machine that the user has worked in."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from cuggino.errors import StorageError
from cuggino.files import read_regular, state_folder, write_atomic
from cuggino.storage.served import served_folders

_FOLDER = "projects"


def remember_project(folder: Path, *, state: Path | None = None) -> None:
    """Remember a project in the user's state folder (or `state`), as far as that is possible."""
    state = state or state_folder(os.environ)
    if state is None:
        return
    path = os.fsencode(folder.resolve())
    with suppress(OSError, StorageError, UnicodeError):
        (state / _FOLDER).mkdir(parents=True, exist_ok=True, mode=0o700)
        name = hashlib.sha256(path).hexdigest()[:32]
        write_atomic(state / _FOLDER / name, path.decode(), private=True)


def known_projects(*, state: Path | None = None) -> list[Path]:
    """Return the projects with a run, the latest first, then others that a page shows.

    A project that is gone is left out.
    """
    state = state or state_folder(os.environ)
    if state is None:
        return []
    found: list[tuple[float, Path]] = []
    with suppress(OSError):
        for path in (state / _FOLDER).iterdir():
            with suppress(OSError, ValueError):
                project = Path(read_regular(path).decode())
                found.append((path.stat().st_mtime, project))
    remembered = [project for _, project in sorted(found, reverse=True)]
    both = dict.fromkeys([*remembered, *served_folders(state=state)])
    return [project for project in both if project.is_absolute() and project.is_dir()]
