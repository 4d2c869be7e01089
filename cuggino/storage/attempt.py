"""What is at work in a slot: a small file of its desk, which survives a killed process."""

from __future__ import annotations

from cuggino.kept_files import Kept, KeptFile
from cuggino.storage.workspace import Workspace


class AttemptRecord(Kept, extra="forbid"):
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


def attempt_of(desk: Workspace) -> KeptFile[AttemptRecord]:
    """Return the file of a desk; the slot must hold the beginning of the work when it is written.

    A record that cannot be used counts as none (`readable`).
    """
    return KeptFile(desk.folder / "attempt.json", AttemptRecord, "attempt")
