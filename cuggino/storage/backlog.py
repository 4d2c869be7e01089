"""The backlog: files that a person adds, and the folders they are moved to (CUG-106 to CUG-109)."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from cuggino.domain import title_of
from cuggino.errors import ConfigError, StorageError
from cuggino.files import BIGGEST, read_regular, storing, write_atomic
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
    """The contents of the backlog folder."""

    items: list[str]
    """The names of the items, sorted."""
    problems: dict[str, str]
    """Visible entries that are not items, sorted by name, with the reason."""


class Backlog:
    """The items of a workspace. An item is a visible regular file that is not blank.

    Nothing that a person wrote is ever removed or overwritten: items are moved to `archive/` or
    `parked/`, under another name if theirs is taken.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._usable: dict[str, tuple[int, ...]] = {}

    def survey(self) -> Survey:
        """List the folder; an unreadable folder counts as empty.

        This takes one `stat` per entry. Only files that are new, have changed, or were blank are
        read.
        """
        items: list[str] = []
        problems: dict[str, str] = {}
        usable: dict[str, tuple[int, ...]] = {}
        for entry in visible_entries(self._workspace.backlog):
            judged = self._judged(entry.name, entry.path)
            if isinstance(judged, tuple):
                items.append(entry.name)
                usable[entry.name] = judged
            elif judged is not None:
                problems[os.fsencode(entry.name).decode("utf-8", "replace")] = judged
        self._usable = usable
        return Survey(items, problems)

    def is_item(self, name: str) -> bool:
        """Return whether the backlog has an item of this name."""
        return isinstance(self._judged(name, str(self.path(name))), tuple)

    def items(self) -> list[str]:
        """Return the names of the items, sorted; none if the folder cannot be read."""
        return self.survey().items

    def problems(self) -> dict[str, str]:
        """Return the visible entries that are not items, by name, with the reason."""
        return self.survey().problems

    def path(self, name: str) -> Path:
        """Return the path of the item.

        Raises:
            StorageError: the name is not a plain file name.
        """
        return _inside(self._workspace.backlog, name)

    def is_there(self, name: str) -> bool:
        """Return whether a file of this name exists."""
        return self.path(name).is_file()

    def digest(self, name: str) -> str | None:
        """Return the SHA-256 of the item's bytes, or None if it is gone (CUG-108).

        Raises:
            StorageError: it cannot be read.
        """
        path = self.path(name)
        with storing("read backlog item", path):
            return digest_of(path)

    def title(self, name: str) -> str:
        """Return the heading of the item, or its first line; its name if it cannot be read."""
        try:
            text = read_regular(self.path(name), biggest=BIGGEST).decode("utf-8", "replace")
        except (OSError, ValueError):
            return name
        return title_of(text) or name

    def archive(self, name: str, outcome: str, digest: str) -> bool:
        """Move the item to `archive/<uuid7>-<outcome>-<name>` if it still has this digest.

        Returns False if it was changed, is gone or cannot be read; then nothing is moved.

        Raises:
            StorageError: it could not be moved, and is unchanged.
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
        if not as_it_was:  # edited just before the move
            self._put_back(moved, name)
        return as_it_was

    def park(self, name: str, reason: str) -> str | None:
        """Move the item to `parked/`, with the reason in `<name>.reason.txt` beside it.

        Returns its name there, or None if it is gone.

        Raises:
            StorageError: it could not be moved, and is unchanged.
        """
        source = self.path(name)
        # It would look like the reason of another item.
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
                f"{source} could not be parked and is unchanged: {error.strerror or error}",
                hint="check the permissions and the free space of the folder",
            ) from error
        return parked.name

    def parked(self) -> dict[str, str]:
        """Return the parked items by name, with the reason of each."""
        return {
            entry.name: self._reason(self._workspace.parked / entry.name)
            for entry in visible_entries(self._workspace.parked)
            if not entry.name.endswith(_REASON) and entry.is_file()
        }

    def unpark(self, name: str) -> str:
        """Move a parked item back into the backlog; return its name there.

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
        """Write a new item `NNN-slug.md` that sorts after all others; return its name.

        It sorts after all names with such a number, including parked and archived ones.

        Raises:
            ConfigError: the title is blank.
            StorageError: it could not be written.
        """
        title = " ".join(title.split())
        if not title:
            raise ConfigError("the title is empty", hint="describe the task in a few words")
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
        """Archive the item, or the parked one, as `removed`; return its new name.

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

    def _judged(self, name: str, path: str) -> tuple[int, ...] | str | None:
        """Return a stamp for a usable item, the problem of another entry, or None if it is gone."""
        try:
            seen = os.stat(path)  # noqa: PTH116 - for each of many files
            stamp = (seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
            if self._usable.get(name) == stamp:
                return stamp
            name.encode()
            if stat.S_ISDIR(seen.st_mode):
                return "a folder"
            if not stat.S_ISREG(seen.st_mode):
                return "not a regular file"
            with open(path, "rb", buffering=0) as file:  # noqa: PTH123
                blank = not any(block.strip() for block in iter(lambda: file.read(65536), b""))
        except UnicodeEncodeError:
            return "its name is not UTF-8"
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not os.path.lexists(path):
                return None  # removed since the folder was listed
            return f"cannot be read: {error.strerror or error}"
        return "empty" if blank else stamp

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
        return text or "no reason recorded"


def _inside(folder: Path, name: str) -> Path:
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise StorageError("name item", f"{name!r} is not a file name in {folder}")
    return folder / name


def _sidecar(item: Path) -> Path:
    return item.with_name(item.name + _REASON)


def _gone(operation: str, path: Path) -> StorageError:
    return StorageError(operation, f"{path} is gone")


_NUMBER = re.compile(r"([0-9]{3,6}|9{3,}[0-9]{3})(?=[-.])")
"""The number at the start of a name; longer ones that `next_number` does not make are dates."""


def next_number(names: Iterable[str]) -> str:
    """Return the number for a name that sorts after all of these names.

    It continues from the last one, in its width: `001`, `002`, ..., `999`. Names sort by character,
    so `1000-x` would precede `101-x`: after `999` comes `999001`, after `999999` comes `999999001`.
    """
    numbers = [found[1] for name in names if (found := _NUMBER.match(name))]
    last = max(numbers, default="000")
    if not last.strip("9"):
        return f"{last}001"
    return str(int(last) + 1).zfill(len(last))
