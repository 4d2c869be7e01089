"""What is at work in a slot: a small file of its desk, which survives a killed process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from cuggino.files import parse_json, read_regular, storing, write_atomic
from cuggino.storage.workspace import Workspace

_BIGGEST = 10_000


class AttemptRecord(NamedTuple):
    """The attempt that a slot was last prepared for."""

    item: str
    """Name and digest of the backlog item, as in the journals of its runs."""
    number: int
    """From 1."""
    base: str
    """The commit on which the work is built."""
    after: str
    """The latest run of the item before this attempt, or ""."""
    published: bool = False
    """True if its candidate is known outside of the slot, so that nothing is left to do here."""


def attempt_file(desk: Workspace) -> Path:
    """Return the path of the file of a desk."""
    return desk.folder / "attempt.json"


def write_attempt(desk: Workspace, record: AttemptRecord) -> None:
    """Write the record; the slot must hold the beginning of the work already.

    Raises:
        StorageError: it cannot be written.
    """
    path = attempt_file(desk)
    with storing("note attempt", path):
        write_atomic(path, json.dumps(record._asdict()) + "\n")


def read_attempt(desk: Workspace) -> AttemptRecord | None:
    """Return the record of a slot, or None if there is none that can be used."""
    try:
        said = parse_json(read_regular(attempt_file(desk), biggest=_BIGGEST))
        if not isinstance(said, dict) or set(said) != set(AttemptRecord._fields):
            return None
    except (OSError, ValueError):
        return None
    texts = all(isinstance(said[name], str) for name in ("item", "base", "after"))
    is_number = type(said["number"]) is int and type(said["published"]) is bool
    return AttemptRecord(**said) if texts and is_number else None


def forget_attempt(desk: Workspace) -> None:
    """Remove the record, because the slot will hold other work.

    Raises:
        StorageError: it cannot be removed.
    """
    path = attempt_file(desk)
    with storing("forget attempt", path):
        path.unlink(missing_ok=True)
