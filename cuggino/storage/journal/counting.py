"""Counting the entries of a journal for its digest."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from cuggino.events import RunContinued, RunEnded, RunResumed, RunStarted
from cuggino.storage.journal.delivery import DeliveryFold
from cuggino.storage.journal.digest import JournalDigest
from cuggino.storage.journal.parts import PartsFold
from cuggino.storage.journal.reader import Entry, iter_entries
from cuggino.storage.journal.totals import COUNTED, DELIVERED, Totals

DIGESTED = COUNTED | DELIVERED
"""The event tags that a digest needs, as the `only` of a reader."""


class DigestFold:
    """The digest of a journal that is being read or written, entry by entry."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._totals = Totals()
        self._parts: PartsFold | None = PartsFold()
        """None for a watch, as the runs of its items have the parts."""
        self._delivery: DeliveryFold | None = None
        self._first: Entry | None = None
        self._began: Entry | None = None
        self._last: Entry | None = None
        for entry in entries:
            self.add(entry)

    @classmethod
    def of(cls, path: Path) -> Self:
        """Return the count of a whole journal."""
        return cls(iter_entries(path, only=DIGESTED))

    def add(self, entry: Entry) -> None:
        """Count an entry."""
        if self._first is None:
            self._first = entry
            if isinstance(entry.event, RunStarted) and entry.event.kind == "deliver":
                self._delivery = DeliveryFold()
            if isinstance(entry.event, RunStarted) and entry.event.kind == "watch":
                self._parts = None
        kind = type(entry.event)
        if kind is RunStarted or kind is RunContinued:
            self._began = entry
            if self._last is not None:
                self._totals.until(self._last.at)
        self._last = entry
        if kind.__name__ in COUNTED:
            self._totals.add(entry)
            if self._parts is not None:
                self._parts.add(entry)
        if self._delivery is not None:
            self._delivery.add(entry)

    @property
    def is_whole(self) -> bool:
        """Return whether the first entry is among those added."""
        return self._first is not None and isinstance(self._first.event, RunStarted)

    @property
    def run_id(self) -> str:
        """Return the id of the run, or "" without its first entry."""
        first = self._first.event if self._first is not None else None
        return first.run_id if isinstance(first, RunStarted) else ""

    @property
    def seq(self) -> int:
        """Return the number of the last entry, 0 without one."""
        return self._last.seq if self._last is not None else 0

    @property
    def totals(self) -> RunResumed:
        """Return the totals so far."""
        if self._last is not None:
            self._totals.until(self._last.at)
        return self._totals.result()

    def digest(self, status: os.stat_result) -> JournalDigest:
        """Return the digest of a journal with this status; it has a first entry."""
        first, began, last = self._first, self._began, self._last
        assert first is not None and began is not None and last is not None
        assert isinstance(first.event, RunStarted)
        return JournalDigest(
            size=status.st_size,
            modified=status.st_mtime_ns,
            started=first.event,
            began=first.at,
            continued=began.at,
            last=last.at,
            ended=last.event if isinstance(last.event, RunEnded) else None,
            totals=self.totals,
            parts=self._parts.result() if self._parts is not None else (),
            delivered=self._delivery.encoded() if self._delivery is not None else None,
        )
