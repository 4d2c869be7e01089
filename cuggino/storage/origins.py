"""Where imported items come from: a file per item, which also remembers what was written there."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import Field, JsonValue

from cuggino.errors import StorageError
from cuggino.files import storing
from cuggino.kept_files import Kept
from cuggino.storage.item_files import ItemFiles
from cuggino.storage.moving import visible_entries
from cuggino.storage.workspace import Workspace

_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_LONGEST_SLUG = 48


class Origin(Kept):
    """The origin of an imported item, and the state of what is exchanged with it."""

    source: str
    """The name of the source."""
    id: str
    """The id of the item in its source."""
    url: str = ""
    number: int | None = None
    """The number of the issue on a forge; None for other sources."""
    digest: str = ""
    """SHA-256 of title and body as they were imported."""
    file: str = ""
    """SHA-256 of the item's file as last imported; any other hash means that a person edited it."""
    writing: str = ""
    """SHA-256 of the file about to be written; a killed process leaves it here."""
    upstream: str = ""
    """SHA-256 of everything in the source about the item when it was last imported or ignored."""
    begun: bool = False
    """True once work on it has begun; it then keeps its text."""
    held: str = ""
    """The reason why it must not begin."""
    network: bool = False
    """True if its agents may reach any host."""
    removed: bool = False
    """True if its source no longer lists it as open, and it was archived."""

    key: str = ""
    """Names this import in the hidden marker of its comment."""
    comment: str = ""
    """The id of that comment; `?` while it is being added."""
    report: dict[str, JsonValue] = Field(default={})
    """The wanted content of the comment (see `cuggino.forge.report`); empty before work begins."""
    written: str = ""
    """The digest of the report that the comment has."""
    rewritten: bool = False
    """True if the comment was removed by someone and written again."""
    labeled: str = ""
    """The label that the issue has for its state; `?` while that is being changed."""
    closed: bool = False
    """True if cuggino has closed the issue."""
    silent: str = ""
    """The reason why nothing more is written to the issue, such as its deletion."""
    claimed_by: str = ""
    """The page of the comment by which another machine has claimed it."""
    question: str = ""
    """The file of the spec issue that was asked about."""
    asked: datetime | None = None
    """The time of that question, by the forge's clock."""


class Origins(ItemFiles[Origin]):
    """The origins of the items of a workspace, by the names of the items.

    They stay when an item is archived or parked: nothing is imported twice.
    """

    def __init__(self, workspace: Workspace) -> None:
        hint = "restore the file, or remove it and its item"
        super().__init__(workspace.origins, Origin, "an origin", hint=hint)
        self._known: dict[str, tuple[tuple[int, ...], Origin]] = {}

    def read(self, item: str) -> Origin | None:
        """Return the origin of the item; None for an item that was not imported.

        Raises:
            StorageError: its file cannot be used.
        """
        file = self.file(item)
        with storing("read an origin", file.path):
            try:
                stamp = _stamp(file.path)
            except FileNotFoundError:
                return None
        known = self._known.get(item)
        if known is not None and known[0] == stamp:
            return known[1]
        origin = file.read()
        if origin is not None:
            self._known[item] = (stamp, origin)
        return origin

    def change(self, item: str, **fields: Any) -> Origin:
        """Write these fields as `ItemFiles` does, and remember them."""
        changed = super().change(item, **fields)
        with storing("read an origin", path := self.file(item).path):
            self._known[item] = (_stamp(path), changed)
        return changed

    def readable(self, item: str) -> Origin | None:
        """Return the origin of the item; None without one that can be read."""
        try:
            return self.read(item)
        except StorageError:
            return None

    def page(self, item: str) -> str:
        """Return the page of the item in its source; "" without one."""
        origin = self.readable(item)
        return origin.url if origin is not None else ""

    def all(self) -> dict[str, Origin]:
        """Return all origins by the names of their items, sorted; unusable ones are left out."""
        found: dict[str, Origin] = {}
        for entry in visible_entries(self._folder):
            name, dot, _ = entry.name.rpartition(".json")
            if dot and name and (origin := self.readable(name)) is not None:
                found[name] = origin
        return found


def _stamp(path: Path) -> tuple[int, ...]:
    seen = path.stat()
    return (seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)


def imported_name(source: str, id: str) -> str:
    """Return the name of the file of an imported item: its source and its id, never its title.

    Numbers have five digits, for names to sort by them: `github-00007.md`. Any other id is
    reduced to letters and digits, with letters that depend on the whole of it.
    """
    if _NUMBER.fullmatch(id):
        return f"{source}-{id.zfill(5)}.md"
    words = re.findall(r"[a-z]+|[0-9]+", id[: 4 * _LONGEST_SLUG].lower())
    slug = "-".join(word.zfill(5) if word.isdigit() else word for word in words)
    digest = hashlib.sha256(id.encode("utf-8", "surrogatepass")).digest()[:8]
    mark = "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest)
    return (
        "-".join(part for part in (source, slug[:_LONGEST_SLUG].strip("-"), mark) if part) + ".md"
    )
