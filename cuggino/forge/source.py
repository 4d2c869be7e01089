"""A source of backlog items, such as a tracker."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from reactivex import Observable

from cuggino.errors import ConfigError

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceItem:
    """An item as its source has it now. All of it is untrusted text."""

    id: str
    """Its id in the source, such as the number of an issue; it names the file of the item."""
    title: str
    body: str = ""
    """Markdown."""
    after: tuple[str, ...] = ()
    """The ids of items of the same source that have to land first."""
    url: str = ""
    held: str = ""
    """The reason why it must not begin, such as a stranger's edit; empty if it may begin.

    The file of a held item keeps its previous text.
    """
    closed: bool = False
    """True if it is closed in the source; it then counts as not listed."""

    def __post_init__(self) -> None:
        """Check the fields, which may come from any program.

        Raises:
            ValueError: a field is invalid.
        """
        for name in ("id", "title", "body", "url", "held"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f'"{name}" is not a text')
        if not self.title.strip():
            raise ValueError('"title" is missing')
        if not isinstance(self.after, (tuple, list)):
            raise ValueError('"after" is not a list of ids')
        for id in (self.id, *self.after):
            if not _is_id(id):
                shown = f"{id!a}"[:50]
                raise ValueError(f"{shown} is not an id of at most {_LONGEST_ID} characters")
        if not isinstance(self.closed, bool):
            raise ValueError('"closed" is neither true nor false')


_LONGEST_ID = 1000


def _is_id(value: object) -> bool:
    return (
        isinstance(value, str)
        and 0 < len(value.strip()) <= _LONGEST_ID
        and value == value.encode("utf-8", "replace").decode()
    )


Look: TypeAlias = Callable[[], Observable[SourceItem]]
"""Returns a cold stream that lists the open items of a source once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A source of items that is polled repeatedly.

    Each subscription is one poll. Completion means that the list is complete: items of the source
    missing from it are closed. An error is reported and removes nothing.
    """

    name: str
    """The prefix of its items' file names: a lowercase letter, then letters, digits and `-`."""
    items: Look
    every: float = 60.0
    """Seconds from the end of one poll to the start of the next."""
    network: bool = False
    """True if the agents of its items may reach any host."""
    has_issues: bool = False
    """True if the ids are issue numbers on a forge."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigError(
                f"{self.name!r} cannot name a source",
                hint="begin with a lowercase letter; use letters, digits and `-`, at most 32",
            )
        if not self.every >= 0:
            raise ConfigError(f"source {self.name}: `every` is {self.every:g}, not a time")


def source_of(given: Source | Look) -> Source:
    """Return the source; a plain function becomes one under its name, with `-` for `_`.

    Raises:
        ConfigError: the name is invalid for a source.
    """
    if isinstance(given, Source):
        return given
    name = getattr(given, "__name__", type(given).__name__)
    return Source(name=name.strip("_").replace("_", "-"), items=given)
