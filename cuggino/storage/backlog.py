"""The backlog: files that a person drops in, and where they go (CUG-106 to CUG-109)."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from cuggino.domain.numbering import next_number
from cuggino.errors import ConfigError, StorageError
from cuggino.storage.atomic import storing, write_atomic
from cuggino.storage.moving import (
    digest_of,
    move_into,
    move_to_archive,
    reserve,
    visible_entries,
)
from cuggino.storage.workspace import Workspace

_REASON = ".reason.txt"
_ARCHIVED = re.compile(r"[0-9a-f-]{36}-(?:approved|max-iterations|removed)-")
_LONGEST_SLUG = 48


class Survey(NamedTuple):
    """What one look at the backlog folder shows."""

    items: list[str]
    """The names of the items, sorted."""
    problems: dict[str, str]
    """What is visible and no item, sorted by name, with the reason."""


class Backlog:
    """The items of a workspace. An item is a visible regular file with something in it.

    Nothing that a person wrote is ever removed or overwritten: items are moved, to `archive/` or
    `parked/`, and a taken name is left alone in favour of a free one like it.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._usable: dict[str, tuple[int, ...]] = {}

    def survey(self) -> Survey:
        """Look at the folder once; nothing is there when it cannot be read.

        That costs a `stat` for each entry. Of the files themselves only those are read that are
        new, have changed, or were blank.
        """
        items: list[str] = []
        problems: dict[str, str] = {}
        usable: dict[str, tuple[int, ...]] = {}
        for entry in visible_entries(self._workspace.backlog):
            judged = self._judged(entry)
            if isinstance(judged, tuple):
                items.append(entry.name)
                usable[entry.name] = judged
            elif judged is not None:
                problems[os.fsencode(entry.name).decode("utf-8", "replace")] = judged
        self._usable = usable
        return Survey(items, problems)

    def items(self) -> list[str]:
        """The names of the items, sorted; none when the folder cannot be read."""
        return self.survey().items

    def problems(self) -> dict[str, str]:
        """What is visible in the folder and no item, by name, with the reason."""
        return self.survey().problems

    def path(self, name: str) -> Path:
        """Where the item is.

        Raises:
            StorageError: the name is no plain file name.
        """
        return _inside(self._workspace.backlog, name)

    def is_there(self, name: str) -> bool:
        """Whether there is a file of this name, an item or none."""
        return self.path(name).is_file()

    def digest(self, name: str) -> str | None:
        """The SHA-256 of the item's bytes; None when it is gone (CUG-108).

        Raises:
            StorageError: it cannot be read.
        """
        path = self.path(name)
        with storing("read backlog item", path):
            return digest_of(path)

    def archive(self, name: str, outcome: str, digest: str) -> bool:
        """Move the item to `archive/<uuid7>-<outcome>-<name>` if it still has this digest.

        Gives False when it was changed, is gone or cannot be read, and then nothing is moved.

        Raises:
            StorageError: it could not be moved, and stays where it is.
        """
        path = self.path(name)
        try:
            if self.digest(name) != digest:
                return False
        except StorageError:
            return False
        try:
            moved = move_to_archive(path, self._workspace.archive, outcome)
        except FileNotFoundError:
            return False
        with storing("archive", moved):
            as_it_was = digest_of(moved) == digest
        if not as_it_was:  # edited between the look and the move
            self._put_back(moved, name)
        return as_it_was

    def park(self, name: str, reason: str) -> str | None:
        """Move the item to `parked/`, the reason in `<name>.reason.txt` beside it.

        Gives its name there, or None when it is gone.

        Raises:
            StorageError: it could not be moved, and stays where it is.
        """
        source = self.path(name)
        # Else it would be taken for the reason of another one.
        wanted = f"{name}.md" if name.endswith(_REASON) else name
        try:
            parked = move_into(source, self._workspace.parked, wanted, operation="park")
        except FileNotFoundError:
            return None
        try:
            write_atomic(_sidecar(parked), f"{reason.strip()}\n")
        except OSError as error:
            self._put_back(parked, name)
            raise StorageError(
                "park",
                f"{source} could not be parked and stays where it is: {error.strerror or error}",
                hint="check the permissions and the free space of the folder",
            ) from error
        return parked.name

    def parked(self) -> dict[str, str]:
        """The parked items by name, with the reason of each."""
        return {
            entry.name: self._reason(self._workspace.parked / entry.name)
            for entry in visible_entries(self._workspace.parked)
            if not entry.name.endswith(_REASON) and entry.is_file()
        }

    def unpark(self, name: str) -> str:
        """Move a parked item back into the backlog; gives its name there.

        Raises:
            StorageError: it is gone, or could not be moved.
        """
        source = _inside(self._workspace.parked, name)
        try:
            target = move_into(source, self._workspace.backlog, name, operation="unpark")
        except FileNotFoundError as error:
            raise _gone("unpark", source) from error
        with suppress(OSError):
            _sidecar(source).unlink(missing_ok=True)
        return target.name

    def add(self, title: str, text: str = "") -> str:
        """Write a new item `NNN-slug.md`, whose name comes behind all others; gives its name.

        Behind that is of those which begin with such a number, parked and archived ones included.

        Raises:
            ConfigError: the title is blank.
            StorageError: it could not be written.
        """
        title = " ".join(title.split())
        if not title:
            raise ConfigError("the title is empty", hint="say in a few words what is to be done")
        content = f"# {title}\n\n{text.strip()}\n" if text.strip() else f"# {title}\n"
        slug = "-".join(re.findall(r"[^\W_]+", title.lower()))[:_LONGEST_SLUG].strip("-")
        folder = self._workspace.backlog
        with storing("add backlog item", folder):
            folder.mkdir(parents=True, exist_ok=True)
            path = reserve(folder, f"{self._next_number()}-{slug or 'item'}.md")
            try:
                write_atomic(path, content)
            except OSError:
                path.unlink(missing_ok=True)
                raise
        return path.name

    def remove(self, name: str) -> str:
        """Move the item, or else the parked one, to the archive, as `removed`; gives its new name.

        Raises:
            StorageError: it is gone, or could not be moved.
        """
        source = self.path(name)
        parked = _inside(self._workspace.parked, name)
        if not os.path.lexists(source) and parked.is_file():
            source = parked
        try:
            moved = move_to_archive(source, self._workspace.archive, "removed")
        except FileNotFoundError as error:
            raise _gone("remove", source) from error
        if source == parked:
            with suppress(OSError):
                _sidecar(parked).unlink(missing_ok=True)
        return moved.name

    def _put_back(self, moved: Path, name: str) -> None:
        with suppress(FileNotFoundError):
            move_into(moved, self._workspace.backlog, name, operation="put back")

    def _judged(self, entry: os.DirEntry[str]) -> tuple[int, ...] | str | None:
        """How an item can be known again, or what keeps the entry from being one; None if gone."""
        name = entry.name
        try:
            seen = entry.stat()
            stamp = (seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
            if self._usable.get(name) == stamp:
                return stamp
            name.encode()
            if stat.S_ISDIR(seen.st_mode):
                return "it is a folder"
            if not stat.S_ISREG(seen.st_mode):
                return "it is not a file"
            with Path(entry.path).open("rb") as file:
                blank = not any(block.strip() for block in iter(lambda: file.read(65536), b""))
        except UnicodeEncodeError:
            return "its name is not UTF-8"
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not os.path.lexists(entry.path):
                return None  # since the folder was listed
            return f"it cannot be read: {error.strerror or error}"
        return "it is empty" if blank else stamp

    def _next_number(self) -> str:
        workspace = self._workspace
        names = [
            *(entry.name for entry in visible_entries(workspace.backlog)),
            *(entry.name for entry in visible_entries(workspace.parked)),
            *(
                entry.name[match.end() :]
                for entry in visible_entries(workspace.archive)
                if (match := _ARCHIVED.match(entry.name))
            ),
        ]
        return next_number(names)

    def _reason(self, item: Path) -> str:
        try:
            text = _sidecar(item).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            text = ""
        return text or "no reason is recorded"


def _inside(folder: Path, name: str) -> Path:
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise StorageError("name item", f"{name!r} is no name of a file in {folder}")
    return folder / name


def _sidecar(item: Path) -> Path:
    return item.with_name(item.name + _REASON)


def _gone(operation: str, path: Path) -> StorageError:
    return StorageError(operation, f"{path} is gone")
