"""Digests of journals: the state of a run in short, kept beside its journal."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import JsonValue, TypeAdapter, ValidationError

from cuggino.errors import StorageError
from cuggino.events import RunEnded, RunStarted
from cuggino.files import storing
from cuggino.runs.parts import PartsFold
from cuggino.runs.state import LASTING, Delivery, RunState
from cuggino.storage.journal import (
    Entry,
    JournalDigest,
    iter_entries,
    keep_digest,
    kept_digest,
    list_journals,
)

DIGESTED = LASTING | {"UsageUpdate"}
"""The event tags that a digest and a state without what goes on need, as the `only` of a reader."""

_LATEST = 100
"""Journals that `past_digests` looks at."""
_MOST_READ = 16 * 1024 * 1024
"""Bytes of journals without digests that it reads."""
_DELIVERY: TypeAdapter[Delivery] = TypeAdapter(Delivery)


class DigestFold:
    """The digest of a journal that is being read or written, entry by entry.

    `state` is the state of the run without what goes on.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.state = RunState()
        self._parts: PartsFold | None = PartsFold()
        """None for a watch, as the runs of its items have the parts."""
        self._first: RunStarted | None = None
        self._last: Entry | None = None
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        if self._last is None and isinstance(entry.event, RunStarted):
            self._first = entry.event
            if entry.event.has_runs:
                self._parts = None
        self._last = entry
        if entry.event.tag not in DIGESTED:
            self.state = self.state.until(entry.at)
            return
        self.state = self.state.add(entry.event, at=entry.at, stage=entry.stage)
        if self._parts is not None:
            self._parts.add(entry)

    @property
    def run_id(self) -> str:
        """The id of the run; "" without its first entry."""
        return self._first.run_id if self._first is not None else ""

    @property
    def seq(self) -> int:
        """The number of the last entry; 0 without one."""
        return self._last.seq if self._last is not None else 0

    def digest(self, status: os.stat_result) -> JournalDigest | None:
        """Return the digest of a journal with this status; None without its first entry."""
        if self._first is None or self._last is None:
            return None
        processes = self.state.processes
        is_delivery = self._first.kind == "deliver"
        return JournalDigest(
            size=status.st_size,
            modified=status.st_mtime_ns,
            started=self._first,
            began=processes[0].start,
            continued=processes[-1].start,
            last=self._last.at,
            ended=self._last.event if isinstance(self._last.event, RunEnded) else None,
            message=self.state.message,
            totals=self.state.totals,
            parts=self._parts.result() if self._parts is not None else (),
            delivered=_encoded(self.state.delivery) if is_delivery else None,
        )


def digest_of(path: Path) -> JournalDigest:
    """Return the digest of the journal: the kept one, or one from reading the whole journal.

    Raises:
        StorageError: as `read_journal`.
    """
    with storing("read journal", path):
        status = path.stat()
    if kept := kept_digest(path, size=status.st_size, modified=status.st_mtime_ns):
        with suppress(ValidationError):  # one that cannot be decoded is not used
            delivery_of(kept)
            return kept
    # If it grows meanwhile, its size and time are those of before, so that the digest is not used.
    digest = DigestFold(iter_entries(path, only=DIGESTED)).digest(status)
    assert digest is not None  # by `iter_entries`
    keep_digest(path, digest)
    return digest


def delivery_of(digest: JournalDigest) -> Delivery | None:
    """Return sessions and deliverables of a run of the deliver loop; None for other runs."""
    return None if digest.delivered is None else _DELIVERY.validate_python(digest.delivered)


def past_digests(folder: Path, *, without: str = "") -> Iterator[JournalDigest]:
    """Yield the digests of the latest journals, the latest first, without reading long journals.

    A journal without a digest is read only while such journals are short together; one that cannot
    be read is left out.

    Args:
        folder: the folder of the journals.
        without: the id of a run that is left out, such as one that is resumed.
    """
    left = _MOST_READ
    try:
        paths = list_journals(folder)
    except StorageError:
        return
    for path in paths[:_LATEST]:
        if path.stem == without:
            continue
        with suppress(OSError, StorageError):
            status = path.stat()
            known = kept_digest(path, size=status.st_size, modified=status.st_mtime_ns)
            if known is None and status.st_size <= left:
                left -= status.st_size
                known = digest_of(path)
            if known is not None:
                yield known


def _encoded(delivery: Delivery) -> JsonValue:
    encoded: JsonValue = _DELIVERY.dump_python(delivery, mode="json")
    return encoded
