"""Channels: the changes that open pages show, each polled once for all pages."""

from __future__ import annotations

import asyncio
import math
import os
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from cuggino.errors import CugginoError
from cuggino.events import RunContinued, RunEnded, RunStarted, is_resumable
from cuggino.runs import working_process
from cuggino.storage.journal import Entry, JournalTail
from cuggino.web import pages
from cuggino.web.fragment import Fragment, as_message, as_templates
from cuggino.web.site import OVERVIEW, Place, Site

MOST_MESSAGES = 2000
"""Messages that a channel keeps for pages that are behind; also the entries of one message."""
MOST_BYTES = 8 * 1024 * 1024
MOST_MESSAGE = 1024 * 1024
"""Bytes of a message; instead of a longer one the page is reloaded."""
_INLINE = 64 * 1024
"""Bytes of a journal that are read in the loop; more are read in a thread."""
_SLOW = 3.0
"""Seconds between redraws of charts."""
_LIVENESS = 2.0
"""Seconds between checks that the process of a run still exists."""

REST = 1.0
"""Seconds between polls of an open page without changes of its journals."""
_SETTLE = 0.04
"""Seconds after a change in which more is waited for: events often come several at once."""

Notice = Literal["reload", "gone", "bye"]
"""`reload` the page as too much has happened, the journal is `gone`, or nothing more will come."""


@dataclass(slots=True)
class Change:
    """The changes found by a poll."""

    fragments: list[Fragment] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)


class Pace:
    """The time of a channel's next poll: soon after a change, else after a rest."""

    def __init__(self, *, share: float, longest: float) -> None:
        self._share = share
        """The part of a core that reading and drawing may take while events arrive."""
        self._longest = longest
        """Seconds from one poll to the next then, at most, whatever they take."""
        self._polled = self._gap = self._spent = 0.0
        self._news: float | None = None
        """The time of the first change of a journal since the last poll."""

    @property
    def due(self) -> float:
        """Return the time of the next poll."""
        if self._news is None:
            return self._polled + REST
        return max(self._news + _SETTLE, self._polled + self._gap)

    def note(self) -> None:
        """Note that a journal may have changed."""
        if self._news is None:
            self._news = time.monotonic()

    @contextmanager
    def polling(self) -> Iterator[None]:
        """Set the time of the next poll by what the one within the block takes."""
        self._news, self._spent = None, 0.0
        try:
            yield
        finally:
            self._polled = time.monotonic()
            self._gap = min(self._spent / self._share, self._longest)

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Count the processor time that is taken within the block, on this thread."""
        begun = time.thread_time()
        try:
            yield
        finally:
            self._spent += time.thread_time() - begun


class Messages:
    """The last messages of a channel, encoded once for all pages."""

    def __init__(self, key: str) -> None:
        self.dropped = 0
        """The position of the last message that is not kept."""
        self.size = 0
        """Bytes of the messages."""
        self._key = key
        self._kept: deque[tuple[int, bytes]] = deque()
        self._sent: dict[str, int] = {}

    def publish(self, position: int, change: Change) -> bool:
        """Keep the messages of a change; return whether there are any."""
        fragments = [part for part in change.fragments if self._is_new(part)]
        message = as_message(f"{self._key}\n{as_templates(fragments)}", id=position)
        messages = [message] if fragments else []
        if "reload" in change.notices or len(message) > MOST_MESSAGE:
            self._forget(position)
            messages.clear()
        messages += [
            as_message(self._key, event=notice, id=position)
            for notice in change.notices
            if notice != "reload"
        ]
        for message in messages:
            self._kept.append((position, message))
            self.size += len(message)
        while len(self._kept) > MOST_MESSAGES or self.size > MOST_BYTES:
            self.dropped, message = self._kept.popleft()
            self.size -= len(message)
        return bool(fragments or change.notices)

    def since(self, position: int) -> Iterator[tuple[int, bytes]]:
        """Yield the messages after a position, with a `reload` in place of dropped ones."""
        if position < self.dropped:
            yield self.dropped, as_message(self._key, event="reload", id=self.dropped)
            position = self.dropped
        count = len(self._kept)
        while count and self._kept[count - 1][0] > position:
            count -= 1
        for index in range(count, len(self._kept)):
            yield self._kept[index]

    def _forget(self, position: int) -> None:
        """Drop all messages; pages that have not received them are reloaded."""
        self.dropped = position
        self._kept.clear()
        self._sent.clear()
        self.size = 0

    def _is_new(self, part: Fragment) -> bool:
        if part.how != "replace":
            return True
        digest = hash(part.html)
        if self._sent.get(part.to) == digest:
            return False
        self._sent[part.to] = digest
        return True


class Channel(ABC):
    """One kind of page: what it shows, when that is polled, and its last messages."""

    def __init__(self, key: str, site: Site, pace: Pace) -> None:
        self.key = key
        self.site = site
        self.pace = pace
        self.messages = Messages(key)
        self.lock = asyncio.Lock()
        """Held while the state is changed or drawn, perhaps in a thread."""
        self.viewers = 0
        self.used = time.monotonic()
        self.error: CugginoError | None = None
        """The error that prevents showing it."""

    def shows(self, place: Place) -> bool:
        """Return whether the page shows something of a workspace."""
        return True

    async def look(self, *, now: bool = False) -> Change | None:
        """Poll, and set the time of the next poll by what this one took."""
        with self.pace.polling():
            return await self.poll(now=now)

    @abstractmethod
    async def poll(self, *, now: bool = False) -> Change | None:
        """Return the changes, under the lock; `now` ignores the pause between two polls."""

    @abstractmethod
    def draw(self, seq: int) -> str:
        """Return the whole page, under the lock; may be called in a thread."""


class RunChannel(Channel):
    """A run: its journal, folded entry by entry."""

    def __init__(self, site: Site, place: Place, run_id: str) -> None:
        super().__init__(site.channel(place, run_id), site, Pace(share=0.02, longest=0.08))
        self.place = place
        self.run_id = run_id
        self.path = journal_of(place, run_id)
        self._tail = JournalTail(self.path, spared=pages.BULK)
        self._fold = pages.RunFold(place, run_id)
        self._began: datetime | None = None
        self._ended: RunEnded | None = None
        self._looked = self._drawn = -math.inf
        self._is_loaded = False
        self._is_stale = False
        self._is_gone = False
        self._is_over = False

    async def poll(self, *, now: bool = False) -> Change | None:
        moment = time.monotonic()
        is_slow = now or moment - self._drawn >= _SLOW
        is_alive = now or moment - self._looked >= _LIVENESS
        if not (self._tail.has_changed() or is_alive or (is_slow and self._is_stale)):
            return self._went() if self._tail.missing else None
        if is_alive:
            self._looked = moment
        if self._tail.pending() > _INLINE:
            return await asyncio.to_thread(self._advance, is_slow, is_alive, moment)
        return self._advance(is_slow, is_alive, moment)

    def shows(self, place: Place) -> bool:
        return place is self.place

    def draw(self, seq: int) -> str:
        return pages.run_page(self.site, self._fold, seq=seq)

    def draw_stage(self, stage: str) -> str:
        """Return the transcript of a stage, read from the journal again."""
        return pages.stage_fragment(self.site, self._fold, stage, self._tail.stage(stage))

    @property
    def is_missing(self) -> bool:
        return self._tail.missing

    def _went(self) -> Change | None:
        if self._is_gone:
            return None
        self._is_gone = True
        return Change(notices=["gone"])

    def _advance(self, is_slow: bool, is_alive: bool, moment: float) -> Change | None:
        with self.pace.spending():
            return self._changes(is_slow, is_alive, moment)

    def _changes(self, is_slow: bool, is_alive: bool, moment: float) -> Change | None:
        since, count, change = self._tail.seq, 0, Change()
        began, is_first, self._is_loaded = self._began, not self._is_loaded, True
        try:
            while True:
                restarts = self._tail.restarts
                entries = self._tail.read()
                if self._tail.restarts != restarts:
                    self._fold = pages.RunFold(self.place, self.run_id)
                    self._began = self._ended = self.error = None
                    count = MOST_MESSAGES + 1
                if not entries:
                    break
                for entry in entries:
                    self._fold.add(entry)
                    self._note(entry)
                count += len(entries)
        except CugginoError as error:
            self.error = error
            return Change(notices=["reload"])
        if self._tail.missing:
            return self._went()
        if self._is_gone:
            self._is_gone, count = False, MOST_MESSAGES + 1
        has_changed = bool(count)
        if is_alive or self._began != began:
            running = self._is_running()
            has_changed = has_changed or running != self._fold.running
            self._fold.running = running
        if count > MOST_MESSAGES:
            change.notices.append("reload")
        elif not is_first and (has_changed or (is_slow and self._is_stale)):
            change.fragments = pages.run_fragments(self.site, self._fold, since, slow=is_slow)
            self._is_stale = has_changed and not is_slow
            if is_slow:
                self._drawn = moment
        is_over = self._ended is not None and not is_resumable(self._ended.state)
        if is_over and not self._is_over and not self._is_stale:
            change.notices.append("bye")
            self._is_over = True
        elif not is_over:
            self._is_over = False
        return change if change.fragments or change.notices else None

    def _note(self, entry: Entry) -> None:
        match entry.event:
            case RunStarted() | RunContinued():
                self._began, self._ended = entry.at, None
            case RunEnded() as ended:
                self._ended = ended
            case _:
                pass

    def _is_running(self) -> bool:
        if self._ended is not None or self._began is None:
            return False
        worker = working_process(self.place.workspace)
        return worker is not None and (worker.since is None or self._began >= worker.since)


class OverviewChannel(Channel):
    """The overview of all workspaces."""

    def __init__(self, site: Site) -> None:
        super().__init__(OVERVIEW, site, Pace(share=0.08, longest=0.5))
        self._stamp: object = None
        self._overview: pages.Overview | None = None

    async def poll(self, *, now: bool = False) -> Change | None:
        return await asyncio.to_thread(self._look)

    def draw(self, seq: int) -> str:
        overview = self._overview or pages.load_overview(self.site)
        return pages.overview_page(self.site, overview, seq=seq)

    def _look(self) -> Change | None:
        with self.pace.spending():
            stamp = [stamp_of(place) for place in self.site.places]
            if stamp == self._stamp:
                return None
            self._stamp = stamp
            self._overview = pages.load_overview(self.site)
            return Change(pages.overview_fragments(self.site, self._overview))


def journal_of(place: Place, run_id: str) -> Path:
    """Return the path of the journal of a run."""
    return place.workspace.journal / f"{run_id}.jsonl"


_COUNTED = 64
"""Journals whose sizes are looked at: the newest."""


def stamp_of(place: Place) -> tuple[object, ...]:
    """Return a value that changes with the contents of the overview."""
    workspace = place.workspace
    followed = (workspace.backlog, workspace.spec_issues, workspace.tbd, workspace.parked)
    refs = place.folder / ".git" / "refs" / "cuggino"
    folders = (place.folder, workspace.archive, workspace.folder / "control")
    return (
        *(_stamp(str(folder)) for folder in (*folders, refs / "candidates", refs / "kept")),
        *(_stamp(str(workspace.folder / name)) for name in ("lock.json", "memory.md")),
        *(tuple(_entries(str(folder))) for folder in followed),
        tuple(_entries(str(workspace.journal), most=_COUNTED)),
        working_process(workspace) is not None,
    )


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 (polled)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _entries(folder: str, *, most: int = 1000) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    with suppress(OSError), os.scandir(folder) as entries:
        names = sorted(entries, key=lambda entry: entry.name, reverse=True)[:most]
        for entry in names:
            with suppress(OSError):
                status = entry.stat()
                found.append((entry.name, status.st_mtime_ns, status.st_size))
    return found
