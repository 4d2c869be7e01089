"""The backlog: files that a person adds, and the folders they are moved to (CUG-106 to CUG-109)."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from cuggino.domain import (
    Due,
    ReadyOrder,
    after_of,
    attempts_of,
    held_of,
    is_marked_imported,
    parse_due,
    ready_order,
    safe_title,
    shown_to_agents,
    split_front_matter,
    title_of,
    with_held,
)
from cuggino.errors import ConfigError, StorageError
from cuggino.files import BIGGEST, read_regular, storing, write_atomic
from cuggino.storage.focus import file_focus, read_text_file
from cuggino.storage.moving import (
    digest_of,
    inside,
    move_into,
    move_to_archive,
    reserve,
    visible_entries,
)
from cuggino.storage.origins import Origins
from cuggino.storage.workspace import Workspace

_REASON = ".reason.txt"
_ARCHIVED = re.compile(r"[0-9a-f-]{36}-(approved|max-iterations|removed)-")
_FRONT_MATTER = re.compile(rb"(?:\xef\xbb\xbf)?---")
_BLOCK = 65536
"""Bytes that are read at once; the front matter of an item is in the first."""
_LONGEST_SLUG = 48


class Survey(NamedTuple):
    """The contents of the backlog folder."""

    items: list[str]
    """The names of the items, sorted."""
    problems: dict[str, str]
    """Visible entries that are not items, sorted by name, with the reason."""


class _Usable(NamedTuple):
    """An item as it was when it was read."""

    stamp: tuple[int, ...]
    after: tuple[str, ...] = ()
    due: Due | None = None
    """The time under `after`."""
    held: str = ""


class Backlog:
    """The items of a workspace. An item is a visible regular file that is not blank.

    Nothing that a person wrote is ever removed or overwritten: items are moved to `archive/` or
    `parked/`, under another name if theirs is taken.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._usable: dict[str, _Usable] = {}
        self._origins = Origins(workspace)

    def survey(self) -> Survey:
        """List the folder; an unreadable folder counts as empty.

        This takes one `stat` per entry. Only files that are new, have changed, or were blank are
        read.
        """
        items: list[str] = []
        problems: dict[str, str] = {}
        usable: dict[str, _Usable] = {}
        for entry in visible_entries(self._workspace.backlog):
            judged = self._judged(entry.name, entry.path)
            if isinstance(judged, _Usable):
                items.append(entry.name)
                usable[entry.name] = judged
            elif judged is not None:
                problems[os.fsencode(entry.name).decode("utf-8", "replace")] = judged
        self._usable = usable
        return Survey(items, problems)

    def is_item(self, name: str) -> bool:
        return isinstance(self._judged(name, str(self.path(name))), _Usable)

    def may_begin(self, name: str, now: datetime | None = None) -> bool:
        """Return whether the backlog has an item of this name, and nobody holds it.

        With `now`, the time under its `after` must have come.
        """
        judged = self._judged(name, str(self.path(name)))
        if not isinstance(judged, _Usable) or judged.held:
            return False
        return now is None or judged.due is None or judged.due.at <= now

    def order(
        self,
        items: Sequence[str],
        *,
        held: Mapping[str, str] = MappingProxyType({}),
        now: datetime | None = None,
    ) -> ReadyOrder:
        """Return which of the items of the latest survey may begin, by `after` and `held` in them.

        Archived items have landed, unless a person removed them; those and parked items hold what
        comes after them. `held` are further items that cannot land for now, with the reason.
        Without `now`, times under `after` do not count.
        """
        known = {name: usable for name in items if (usable := self._usable.get(name))}
        after = {name: usable.after for name, usable in known.items()}
        held = {**{name: one.held for name, one in known.items() if one.held}, **held}
        dues = {name: one.due for name, one in known.items() if one.due is not None}
        later = {name: due for name, due in dues.items() if now is not None and due.at > now}
        if not held and not later and not any(after.values()):
            return ReadyOrder(ready=tuple(items))
        settled = self.settled()
        gone = {name: "was removed" for name, how in settled.items() if how == "removed"}
        gone |= dict.fromkeys(self.parked(), "is parked")
        return ready_order(
            {name: after.get(name, ()) for name in items},
            landed=settled.keys() - gone.keys(),
            held={name: why for name, why in gone.items() if name not in after} | {**held},
            later=later,
        )

    def focus(self, name: str) -> str:
        """Return the focus for the agents: the text of the item, without its front matter.

        An imported one is cleaned, and between fences (`shown_to_agents`).

        Raises:
            ConfigError: it is gone, unreadable, too large or blank.
        """
        path = self.path(name)
        shown = path.relative_to(self._workspace.root)
        what = f"--focus @{shown}"
        whole = read_text_file(path, what=what)
        _, text = split_front_matter(whole)
        if not text.strip():
            raise ConfigError(f"{what}: {path} is empty", hint="describe what to work on")
        if self._is_imported(name, whole):
            item = f"The item `{name}` of the backlog"
            return shown_to_agents(text, what=item, nonce=secrets.token_hex(8))
        return file_focus(shown, text)

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
        return inside(self._workspace.backlog, name)

    def is_there(self, name: str) -> bool:
        return self.path(name).is_file()

    def digest(self, name: str) -> str | None:
        """Return the SHA-256 of the item's bytes, or None if it is gone.

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
        title = title_of(text)
        return (safe_title(title) if self._is_imported(name, text) else title) or name

    def limits_network(self, name: str) -> bool:
        """Return whether agents of the item may connect to some hosts only, as it was imported."""
        try:
            origin = self._origins.read(name)
        except StorageError:
            return True
        if origin is None:
            return is_marked_imported(self._text(name) or "")
        return not origin.network

    def held(self, name: str) -> str:
        """Return why the item must not begin, by `held` in its front matter; "" if it may."""
        return held_of(self._text(name) or "")

    def attempts(self, name: str) -> int | None:
        """Return the number of attempts at the item, by its front matter; None if it has none.

        Raises:
            ConfigError: it is not a number that there can be.
        """
        try:
            return attempts_of(self._text(name) or "")
        except ValueError as error:
            raise ConfigError(f"{name}: {error}", hint="correct the front matter") from error

    def hold(self, name: str, reason: str) -> bool:
        """Write into the item that it must not begin; returns False if it is gone.

        The reason continues "which", such as "was edited by a stranger".

        Raises:
            StorageError: it cannot be read or written, and is unchanged.
        """
        text = self._text(name)
        if text is None:
            return False
        changed = with_held(text, reason)
        if changed != text:
            self._write(name, changed)
        return True

    def release(self, name: str) -> bool:
        """Undo `hold`; returns False if the item is gone.

        Raises:
            StorageError: it cannot be read or written, and is unchanged.
        """
        return self.hold(name, "")

    def text_digest(self, name: str) -> str | None:
        """Return the SHA-256 of the item as if it were not held, or None if it is gone.

        Raises:
            StorageError: it cannot be read.
        """
        text = self._text(name)
        return None if text is None else text_digest(text)

    def update(self, name: str, text: str, *, instead_of: str | None = None) -> bool:
        """Write an imported item, unless a person has edited it.

        It is written if its `text_digest` is `instead_of`, or if it is not there and that is None.
        Returns False, with nothing written, otherwise.

        Raises:
            StorageError: it cannot be read or written, and is unchanged.
        """
        if self.text_digest(name) != instead_of:
            return False
        self._write(name, text)
        return True

    def is_as_imported(self, path: Path) -> bool:
        """Return whether a path of the backlog or the archive is as an import has left it."""
        name = path.name
        if path.parent == self._workspace.archive and (found := _ARCHIVED.match(name)):
            name = name[found.end() :] if found[1] == "removed" else ""
        elif path.parent != self._workspace.backlog:
            return False
        try:
            origin = self._origins.read(name) if name else None
            if origin is None:
                return False
            digest = self.text_digest(name)
        except StorageError:
            return False
        return origin.removed if digest is None else digest in (origin.file, origin.writing)

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
        source = inside(self._workspace.parked, name)
        try:
            target = move_into(source, self._workspace.backlog, name, operation="unpark")
        except FileNotFoundError as error:
            raise _gone("unpark", source) from error
        with suppress(OSError):
            _sidecar(source).unlink(missing_ok=True)
        return target.name

    def add(self, title: str, text: str = "") -> str:
        """Write a new item `NNN-slug.md` that sorts after all others; return its name.

        It sorts after all names with such a number, including parked and archived ones. Front
        matter of the text stays in front.

        Raises:
            ConfigError: the title is blank.
            StorageError: it could not be written.
        """
        title = " ".join(title.split())
        if not title:
            raise ConfigError("the title is empty", hint="describe the task in a few words")
        front, text = split_front_matter(text)
        head = f"---\n{front}---\n# {title}\n" if front else f"# {title}\n"
        content = f"{head}\n{text.strip()}\n" if text.strip() else head
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
        parked = inside(self._workspace.parked, name)
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

    def _is_imported(self, name: str, text: str) -> bool:
        """Return whether the item was imported, also if the file of its origin is lost."""
        try:
            return self._origins.read(name) is not None or is_marked_imported(text)
        except StorageError:
            return True

    def _text(self, name: str) -> str | None:
        """Return the text of the item, which `_write` writes unchanged; None if it is gone."""
        path = self.path(name)
        try:
            with storing("read backlog item", path):
                return read_regular(path).decode("utf-8", "surrogateescape")
        except ValueError as error:
            raise StorageError("read backlog item", f"{path}: {error}") from error
        except StorageError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise

    def _write(self, name: str, text: str) -> None:
        path = self.path(name)
        with storing("write backlog item", path):
            write_atomic(path, [_encoded(text)])

    def _put_back(self, moved: Path, name: str) -> None:
        with suppress(FileNotFoundError):
            move_into(moved, self._workspace.backlog, name, operation="put back")

    def _judged(self, name: str, path: str) -> _Usable | str | None:
        """Return a usable item, the problem of another entry, or None if it is gone."""
        try:
            seen = os.stat(path)  # noqa: PTH116 - for each of many files
            stamp = (seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
            known = self._usable.get(name)
            if known is not None and known.stamp == stamp:
                return known
            name.encode()
            if stat.S_ISDIR(seen.st_mode):
                return "a folder"
            if not stat.S_ISREG(seen.st_mode):
                return "not a regular file"
            usable = _Usable(stamp)
            with open(path, "rb", buffering=0) as file:  # noqa: PTH123
                block = file.read(_BLOCK)
                if _FRONT_MATTER.match(block):
                    usable, block = _with_front_matter(usable, block)
                while block and not block.strip():
                    block = file.read(_BLOCK)
        except UnicodeEncodeError:
            return "its name is not UTF-8"
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not os.path.lexists(path):
                return None  # removed since the folder was listed
            return f"cannot be read: {error.strerror or error}"
        return usable if block else "empty"

    def settled(self) -> dict[str, str]:
        """Return the outcomes of archived items by name, the latest of each name."""
        entries = visible_entries(self._workspace.archive)  # by time, as their names begin with it
        found = ((entry.name, _ARCHIVED.match(entry.name)) for entry in entries)
        return {name[match.end() :]: match[1] for name, match in found if match}

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


def text_digest(text: str) -> str:
    """Return the SHA-256 of the text of an item as if it were not held."""
    return hashlib.sha256(_encoded(with_held(text, ""))).hexdigest()


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a half of a pair, which no file has
        return text.encode("utf-8", "replace")


def _with_front_matter(usable: _Usable, block: bytes) -> tuple[_Usable, bytes]:
    """Return the item with the names and the time under `after` and with `held`; and its text."""
    text = block.decode("utf-8", "replace")
    names: list[str] = []
    dues: list[Due] = []
    held = held_of(text)
    try:
        attempts_of(text)
    except ValueError as error:
        held = held or str(error)
    for value in after_of(text):
        try:
            due = parse_due(value)
        except ValueError as error:
            held = held or f"comes after {value}, which is not a time: {error}"
        else:
            names += [value] if due is None else []
            dues += [] if due is None else [due]
    usable = usable._replace(after=tuple(names), due=max(dues, default=None), held=held)
    return usable, split_front_matter(text)[1].encode()


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
