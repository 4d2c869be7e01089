"""Reading journals that other processes write: of a run, of a watch's items, or of any run."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from pathlib import Path

from cuggino import events as ev
from cuggino.domain import item_name
from cuggino.errors import StorageError
from cuggino.storage import LockOwner, Workspace
from cuggino.storage.journal import Entry, JournalTail, iter_entries, last_entry, list_journals

_ITEM = "item"
"""The stage of a watch whose entries are in the journals of its items, too."""
_SLOTS = "slots"
"""The stage of a watch with several slots, which holds what lands, too."""
_RECORDED = (ev.SupervisionEvent, ev.SessionEnded, ev.Steered, ev.UsageUpdate, ev.LoopTerminalEvent)
"""Events from the runs of items that the journal of a watch also records."""
_COARSE = timedelta(seconds=2)
"""Maximum lag of a file's time behind the clock."""
_MANY = 1000
"""Entries of a journal that are merged with those of others before more of it are read."""


class RunTail:
    """The entries appended to the journal of a run since they were last read, found by polling.

    For a watch, the entries of its items' runs are included, in the order of their times. Their
    events name their item (`Event.item`) if the watch has several slots.

    Args:
        path: the journal of the run.
        items: whether to read the runs of a watch's items.
        spared: as in `JournalTail`.
    """

    def __init__(self, path: Path, *, items: bool = True, spared: Collection[str] = ()) -> None:
        self.path = path
        self.ended: ev.RunEnded | None = None
        """The end of the last process, if all its entries were read."""
        self.last: datetime | None = None
        """The time of the last entry of the journal itself."""
        self.item: Path | None = None
        """The journal of the item whose entries were read last."""
        self._spared = spared
        self._own = _Source(JournalTail(path, spared=spared))
        self._items: dict[Path, _Source | None] = {}
        """The other journals; None for those of other runs."""
        self._with_items = items
        self._began: datetime | None = None
        self._has_slots = False
        self._whole: str | None = None
        """The id of the run whose attempts are read; None for all items of a watch."""
        self._folder_time = 0

    @property
    def is_missing(self) -> bool:
        """Return whether the journal was missing at the last poll."""
        return self._own.tail.missing

    def read(self) -> Iterator[Entry]:
        """Yield the new entries, in the order of their times.

        Raises:
            StorageError: a line is broken, or has an unknown version.
        """
        while True:
            # Until none has news: an entry that arrived after a read may precede entries of others.
            while self._fill():
                pass
            sources = self._sources()
            ready = [(one.queue[0].at, place) for place, one in enumerate(sources) if one.queue]
            if not ready or (self.ended is not None and not self._own.queue):
                return  # what follows the end are the items of later watches
            heapify(ready)
            while ready:
                _, place = heappop(ready)
                source = sources[place]
                entry = source.queue.popleft()
                if source.queue:
                    heappush(ready, (source.queue[0].at, place))
                if self._is_new(source, entry):
                    yield entry
                if self.ended is not None and not self._own.queue:
                    return

    def _sources(self) -> list[_Source]:
        return [self._own, *filter(None, self._items.values())]

    def _fill(self) -> bool:
        """Read the new entries of all journals; return whether there were any."""
        has_news = self._own.fill()
        if self._own.queue and self._began is None:
            self._begin(self._own.queue[0])
        if self._began is not None:
            self._find_items()
        for source in self._sources():
            has_news = source.fill() or has_news
        return has_news

    def _is_new(self, source: _Source, entry: Entry) -> bool:
        """Note an entry; return whether it belongs to the watch and is in no other journal."""
        if source is self._own:
            self.last = entry.at
            self.ended = entry.event if isinstance(entry.event, ev.RunEnded) else None
            return self._began is None or not self._is_of_item(entry)
        if self._began is not None and entry.at < self._began:
            return False
        if source.has_runs and self._is_of_item(entry):
            return False
        self.item = source.tail.path
        return True

    def _begin(self, first: Entry) -> None:
        """Look for items from now on, if this is a watch."""
        if not self._with_items:
            return
        if isinstance(first.event, ev.RunStarted) and first.event.has_runs:
            self._began = first.at
            slots = first.event.options.get("slots")
            several = isinstance(slots, int) and slots > 1
            self._has_slots = several or first.event.kind != "watch"
            self._whole = first.event.run_id if first.event.kind != "watch" else None

    def _is_of_item(self, entry: Entry) -> bool:
        """Return whether an entry of a watch is also in the journal of an item."""
        if entry.stage == _SLOTS:
            return isinstance(entry.event, _RECORDED)
        return entry.stage == _ITEM

    def _find_items(self) -> None:
        """Add the journals of items written since the watch began."""
        folder = self.path.parent
        try:
            changed = folder.stat().st_mtime_ns
        except OSError:
            return
        if changed == self._folder_time and not self._own.queue:
            return
        self._folder_time = changed
        assert self._began is not None
        since = (self._began - _COARSE).timestamp()
        for path in list_journals(folder):
            if path in self._items or path == self.path:
                continue
            with suppress(OSError):
                if path.stat().st_mtime >= since and (found := first_entry(path)) is not None:
                    self._items[path] = self._source_of(path, found)

    def _source_of(self, path: Path, first: Entry) -> _Source | None:
        started = first.event
        if not isinstance(started, ev.RunStarted) or not (item := item_name(started.item)):
            return None
        if self._whole not in (None, started.attempt_of):
            return None
        tail = JournalTail(path, spared=self._spared)
        is_named = self._has_slots or started.attempt_of is not None
        return _Source(tail, item if is_named else None, has_runs=started.has_runs)


class _Source:
    """A journal, and its entries that wait for those of others.

    `item` is the item that its events are to name. With `has_runs`, it is the work of other runs.
    """

    def __init__(
        self, tail: JournalTail, item: str | None = None, *, has_runs: bool = False
    ) -> None:
        self.tail = tail
        self.has_runs = has_runs
        self.queue: deque[Entry] = deque()
        self._item = item
        self._failure: StorageError | None = None

    def fill(self) -> bool:
        """Read new entries, unless many wait already; return whether there were any."""
        if not self.queue and self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if self._failure or len(self.queue) > _MANY or not self.tail.has_changed():
            return False
        try:
            entries = self.tail.read()
        except StorageError as failure:
            if not self.queue:
                raise
            self._failure = failure  # raised at the next read; entries before the line are good
            return False
        self.queue.extend(map(self._named, entries))
        return bool(entries)

    def _named(self, entry: Entry) -> Entry:
        if self._item is None:
            return entry
        return replace(entry, event=entry.event.of_item(self._item))


def live_journals(workspace: Workspace, owner: LockOwner) -> list[Path]:
    """Return the journals that the process is writing.

    That of a watch comes first, then those of runs with several attempts.
    """
    since = (owner.since - _COARSE).timestamp() if owner.since else 0.0
    found: list[tuple[int, Path]] = []
    for path in list_journals(workspace.journal):
        with suppress(OSError):
            if path.stat().st_mtime < since:
                continue
            last = last_entry(path)
            if last is None or isinstance(last.event, ev.RunEnded):
                continue
            if (first := first_entry(path)) is not None:
                assert isinstance(first.event, ev.RunStarted)
                is_watch = first.event.kind == "watch"
                found.append((2 - is_watch - first.event.has_runs, path))
    return [path for _, path in sorted(found, key=lambda one: one[0])]


class JournalNews:
    """The entries that any run of a workspace appends from now on, found by polling."""

    def __init__(self, workspace: Workspace) -> None:
        self._folder = workspace.journal
        self._tails: dict[Path, JournalTail] = {}
        for path in list_journals(self._folder):
            self._tails[path] = JournalTail(path)
            self._tails[path].skip()

    def read(self) -> list[Entry]:
        """Return the new entries; none of a journal that cannot be read."""
        for path in list_journals(self._folder):
            self._tails.setdefault(path, JournalTail(path))
        entries: list[Entry] = []
        for tail in self._tails.values():
            with suppress(StorageError):
                if tail.has_changed():
                    entries += tail.read()
        return sorted(entries, key=lambda entry: entry.at)


def first_entry(path: Path) -> Entry | None:
    """Return the first entry of a journal; None if it cannot be read."""
    entries = iter_entries(path)
    try:
        return next(entries, None)
    except StorageError:
        return None
    finally:
        entries.close()
