"""The commands that a user has accepted, by project: digests in the user's own state folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from cuggino.errors import ConfigError
from cuggino.files import read_json_object, render_json, storing, write_atomic
from cuggino.processes import is_started_by_run
from cuggino.trust.commands import ProjectCommand, project_commands

_VERSION = 1


class TrustedProject(NamedTuple):
    """A project with accepted commands."""

    project: Path
    places: tuple[str, ...]
    """The places that named the commands when they were accepted."""
    since: str
    """The time of the latest acceptance, in ISO format."""


def check_acceptable() -> None:
    """Check that a person may be calling.

    Raises:
        ConfigError: a run started this process.
    """
    if is_started_by_run():
        raise ConfigError(
            "agents and commands of a run cannot accept what a project starts",
            hint="run `cuggino trust` in a terminal of your own",
        )


class TrustStore:
    """A store of one file per project in `folder`, which no project can contain.

    A command counts as seen only for the project at this path: `make` runs something else in
    another one. An unreadable file counts as missing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def unseen(self, project: Path) -> tuple[ProjectCommand, ...]:
        """Return the commands of the project that the user has not accepted."""
        seen = self._seen(project)
        return tuple(each for each in project_commands(project) if each.digest not in seen)

    def is_trusted(self, project: Path) -> bool:
        """Return whether the user has accepted all commands of the project."""
        return not self.unseen(project)

    def accept(self, project: Path, commands: Iterable[ProjectCommand], *, at: datetime) -> None:
        """Remember commands that the user has seen.

        Raises:
            ConfigError: an agent, or a command of a run, calls this.
            StorageError: the digests cannot be written.
        """
        check_acceptable()
        new = {each.digest: {"place": each.place, "at": at.isoformat()} for each in commands}
        if not new:
            return
        path = self._path(project)
        whole = {
            "version": _VERSION,
            "project": str(project.resolve()),
            "seen": {**self._seen(project), **new},
        }
        with storing("remember trusted commands", path):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomic(path, render_json(whole) + "\n", private=True)

    def revoke(self, project: Path) -> bool:
        """Forget the commands of a project; return whether there were any.

        Raises:
            StorageError: the digests cannot be removed.
        """
        path = self._path(project)
        with storing("revoke trust", path):
            try:
                path.unlink()
            except FileNotFoundError:
                return False
        return True

    def projects(self) -> list[TrustedProject]:
        """Return the projects with accepted commands, by path."""
        found = []
        for path in self.folder.glob("*.json"):
            whole = _read(path)
            if seen := _entries(whole):
                places = dict.fromkeys(str(entry.get("place", "")) for entry in seen.values())
                since = max(str(entry.get("at", "")) for entry in seen.values())
                project = Path(str(whole.get("project", "")))
                found.append(TrustedProject(project, tuple(places), since))
        return sorted(found)

    def _seen(self, project: Path) -> dict[str, dict[str, Any]]:
        whole = _read(self._path(project))
        return _entries(whole) if whole.get("project") == str(project.resolve()) else {}

    def _path(self, project: Path) -> Path:
        name = hashlib.sha256(str(project.resolve()).encode("utf-8", "surrogateescape"))
        return self.folder / f"{name.hexdigest()[:32]}.json"


def _read(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        whole = read_json_object(path)
        if whole.get("version") == _VERSION:
            return whole
    return {}


def _entries(whole: dict[str, Any]) -> dict[str, dict[str, Any]]:
    seen = whole.get("seen")
    entries = seen.items() if isinstance(seen, dict) else ()
    return {digest: entry for digest, entry in entries if isinstance(entry, dict)}
