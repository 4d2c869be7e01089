"""Import of items from sources into backlog files, which follow later changes."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

from reactivex import Observable, defer

from cuggino.domain import Schedule, limited, quoted_value, with_held
from cuggino.errors import CugginoError, StorageError
from cuggino.events import (
    Event,
    WatchItemImported,
    WatchProcessingItem,
    WatchSourceFailed,
)
from cuggino.forge.source import Source, SourceItem
from cuggino.loops import Companion
from cuggino.operators import Flow, emit, flow, forward, on_loop, pause
from cuggino.operators.mapcat import mapcat
from cuggino.operators.merge_now import merge_now
from cuggino.operators.repeat_on import repeat_on
from cuggino.storage import Backlog, Origin, Origins, Workspace, imported_name, text_digest

_Change: TypeAlias = Literal["new", "updated", "held", "released", "kept"]

_LONGEST_BODY = 1_000_000
"""Bytes of a body that are kept; an agent gets fewer."""
_LONGEST_TITLE = 1_000
_MOST_AFTER = 200
_AT_ONCE = 50
"""Unchanged items handled before the rest of the watch gets a turn."""
_LONGEST_WAIT = 600.0
"""Maximum seconds before a failing source is polled again, unless its own interval is longer."""


def imported(sources: Sequence[Source], workspace: Workspace) -> Companion:
    """Return a companion that imports the items of the sources.

    It emits `WatchItemImported` for each item that a poll added, changed, held or released, and at
    the end of the poll for items no longer listed. A failed poll still imports the items that it
    listed, but removes none. It is retried with exponential backoff.
    """

    def companion(events: Observable[Event]) -> Observable[Event]:
        importer = Importer(workspace)
        begun: Observable[Event] = events.pipe(mapcat(importer.noticed))
        return merge_now(begun, *(_polling(importer, source) for source in sources))

    return companion


def import_once(sources: Sequence[Source], workspace: Workspace) -> Observable[Event]:
    """Poll each source once and import its items."""

    def story() -> Flow[None]:
        importer = Importer(workspace)
        for source in sources:
            yield from _look(importer, source, source.every)

    return flow(story)


def _polling(importer: Importer, source: Source) -> Observable[Event]:
    retries = Schedule.exponential(source.every).capped(max(source.every, _LONGEST_WAIT))

    def poll() -> Flow[None]:
        for delay in retries.delays():
            if not (yield from _look(importer, source, delay)):
                return
            yield from pause(delay)

    return flow(poll).pipe(repeat_on(Schedule.constant(source.every)))


def _look(importer: Importer, source: Source, retry_in: float) -> Flow[bool]:
    """Poll the source once; return whether it failed, and is to be retried after the delay."""
    listed: list[SourceItem] = []

    def listing(_scheduler: object) -> Observable[object]:
        stream: object = source.items()
        if not isinstance(stream, Observable):
            raise TypeError(f"it returns a {type(stream).__name__}, not an Observable")
        return on_loop(stream).pipe(mapcat(heard))

    def heard(one: object) -> Iterable[Event]:
        if isinstance(one, Event):  # a wait
            return (one,)
        if not isinstance(one, SourceItem):
            raise TypeError(f"it has emitted a {type(one).__name__}, not a SourceItem")
        listed.append(one)
        return ()

    error: Exception | None = None
    try:
        yield from forward(defer(listing))
    except Exception as failure:  # a source may run any code, and must not end the watch
        error = failure
    try:
        look = importer.look(source, listed, is_whole=error is None)
        for count, changes in enumerate(look):
            yield from emit(*changes)
            if changes or count % _AT_ONCE == _AT_ONCE - 1:
                yield from pause(0)
    except StorageError as failure:
        error = error or failure
    if error is not None:
        yield from emit(
            WatchSourceFailed(source=source.name, message=_message(error), retry_in=retry_in)
        )
    return error is not None


def _message(error: Exception) -> str:
    if isinstance(error, CugginoError):
        return f"{error.message}; {error.hint}" if error.hint else error.message
    return _line(f"{type(error).__name__}: {error}")


class Importer:
    """The importer of source items into the backlog.

    An item keeps its text once work on it has begun or a person has edited its file. An archived
    or parked item is not imported again, unless it was archived because its source closed it.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.backlog = Backlog(workspace)
        self.origins = Origins(workspace)
        self._begun: set[str] = set()
        """Items at work, even if that could not be written."""

    def noticed(self, event: Event) -> Iterable[Event]:
        """Remember that work on an imported item has begun."""
        if not isinstance(event, WatchProcessingItem) or event.filename in self._begun:
            return ()
        self._begun.add(event.filename)
        try:
            if self.origins.read(event.filename) is not None:
                self.origins.change(event.filename, begun=True)
        except StorageError as error:
            source = event.filename.partition("-")[0]
            return (WatchSourceFailed(source=source, message=error.message, retry_in=0),)
        return ()

    def has_begun(self, name: str, origin: Origin) -> bool:
        """Return whether work on the item has begun."""
        return origin.begun or name in self._begun

    def look(
        self, source: Source, listed: Iterable[SourceItem], *, is_whole: bool
    ) -> Iterator[list[WatchItemImported]]:
        """Apply a list; yield the changes to each item, then to items no longer listed.

        Items missing from the list are removed only if it `is_whole`.

        Raises:
            StorageError: an item could not be read or written; raised after all others. The item
                is unchanged, and the next poll tries again.
        """
        found = {item.id: item for item in listed}
        yield from _Look(self, source, found, is_whole=is_whole).changes()


class _Look:
    def __init__(
        self,
        importer: Importer,
        source: Source,
        found: Mapping[str, SourceItem],
        *,
        is_whole: bool,
    ) -> None:
        self._importer, self._source, self._is_whole = importer, source, is_whole
        self._backlog, self._origins = importer.backlog, importer.origins
        self._open = {id: item for id, item in found.items() if not item.closed}
        known = (
            (name, its) for name, its in self._origins.all().items() if its.source == source.name
        )
        self._known = {origin.id: (name, origin) for name, origin in known}
        self._closed = {id for id, item in found.items() if item.closed}
        if is_whole:
            self._closed |= self._known.keys() - found.keys()
        self._gone: set[str] | None = None

    def changes(self) -> Iterator[list[WatchItemImported]]:
        failed: StorageError | None = None
        steps = [
            *(partial(self._take, item) for item in self._open.values()),
            *(partial(self._close, id) for id in self._known if id in self._closed),
        ]
        for step in steps:
            try:
                changes = step()
            except StorageError as error:
                failed, changes = failed or error, []
            yield changes
        if failed is not None:
            raise failed

    def _take(self, item: SourceItem) -> list[WatchItemImported]:
        """Import an open item, or update it from its source."""
        text = self._text_of(item)
        if text is None:
            return []
        name, origin = self._known.get(item.id) or (imported_name(self._source.name, item.id), None)
        origin = origin or self._origins.read(name)
        if origin is None:
            return self._begin(name, item, text)
        if origin.writing:  # a killed process began to write it
            current = self._backlog.text_digest(name)
            if current == origin.writing:
                self._origins.change(name, file=current, writing="")
                return [self._news(name, item, "updated" if origin.file else "new")]
            if current == (origin.file or None):
                return self._write(name, item, text, origin)
            origin = self._origins.change(name, writing="")
        is_there = self._backlog.is_there(name)
        if origin.removed:
            origin = self._origins.change(name, removed=False, file=origin.file if is_there else "")
            if not is_there:
                return self._write(name, item, text, origin)
        if not is_there or self._importer.has_begun(name, origin):
            return []
        return self._follow(name, item, text, origin)

    def _begin(self, name: str, item: SourceItem, text: str) -> list[WatchItemImported]:
        """Import an item without an origin, unless its file shows that it was imported before."""
        if self._gone is None:
            self._gone = {*self._backlog.settled(), *self._backlog.parked()}
        if name in self._gone:
            self._origins.change(name, **self._fields(item, text), begun=True)
            return []
        if (there := self._backlog.text_digest(name)) is not None:
            is_its_text = there == text_digest(text)
            self._origins.change(
                name, **self._fields(item, text), file=there if is_its_text else "?"
            )
            return []
        return self._write(name, item, text, Origin(source=self._source.name, id=item.id))

    def _follow(
        self, name: str, item: SourceItem, text: str, origin: Origin
    ) -> list[WatchItemImported]:
        """Hold, release or update an item that waits in the backlog."""
        held = _line(item.held)
        changes: list[WatchItemImported] = []
        if held != origin.held:
            if held:
                self._backlog.hold(name, held)
            elif self._backlog.held(name) == origin.held:
                self._backlog.release(name)
            origin = self._origins.change(name, held=held)
            changes.append(self._news(name, item, "held" if held else "released", held))
        if held or origin.upstream == text_digest(text):
            return changes
        if self._backlog.text_digest(name) != origin.file:
            self._origins.change(name, upstream=text_digest(text))
            reason = "its file was edited here, and stays as it is"
            return [*changes, self._news(name, item, "kept", reason)]
        return [*changes, *self._write(name, item, text, origin)]

    def _write(
        self, name: str, item: SourceItem, text: str, origin: Origin
    ) -> list[WatchItemImported]:
        """Write the file of an item, after recording the digest of the new text."""
        digest, held = text_digest(text), _line(item.held)
        key = origin.key or secrets.token_hex(8)
        fields = self._fields(item, text)
        self._origins.change(name, **fields, held=held, key=key, file=origin.file, writing=digest)
        content = with_held(text, held or self._backlog.held(name))
        is_written = self._backlog.update(name, content, instead_of=origin.file or None)
        self._origins.change(name, file=digest if is_written else origin.file, writing="")
        if held:
            return [self._news(name, item, "held", held)]
        return [self._news(name, item, "updated" if origin.file else "new")]

    def _close(self, id: str) -> list[WatchItemImported]:
        """Archive an item that is closed or no longer listed, unless work on it has begun."""
        name, origin = self._known[id]
        digest = self._backlog.digest(name)
        if digest is None or self._importer.has_begun(name, origin):
            return []
        self._origins.change(name, removed=True)
        if not self._backlog.archive(name, "removed", digest):
            return []  # edited meanwhile
        return [
            WatchItemImported(
                filename=name,
                source=self._source.name,
                change="removed",
                url=origin.url,
                reason="it is closed, or no longer listed",
            )
        ]

    def _fields(self, item: SourceItem, text: str) -> dict[str, Any]:
        is_number = self._source.has_issues and item.id.isdecimal()
        content = f"{item.title}\n{item.body}".encode("utf-8", "replace")
        return {
            "source": self._source.name,
            "id": item.id,
            "url": _url(item.url),
            "number": int(item.id) if is_number else None,
            "network": self._source.network,
            "digest": hashlib.sha256(content).hexdigest(),
            "upstream": text_digest(text),
        }

    def _news(
        self, name: str, item: SourceItem, change: _Change, reason: str = ""
    ) -> WatchItemImported:
        return WatchItemImported(
            filename=name,
            source=self._source.name,
            change=change,
            url=_url(item.url),
            reason=reason,
        )

    def _text_of(self, item: SourceItem) -> str | None:
        """Return the text of the item's file; None while an item before it is unknown."""
        after = [self._before(id) for id in dict.fromkeys(item.after[:_MOST_AFTER])]
        if any(name is None for name in after):
            return None
        names = ", ".join(quoted_value(name) for name in after if name)
        front = {
            "origin": quoted_value(_url(item.url)) if _url(item.url) else "",
            "source": self._source.name,
            "id": quoted_value(item.id),
            "after": f"[{names}]" if names else "",
        }
        head = "".join(f"{key}: {value}\n" for key, value in front.items() if value)
        title = " ".join(item.title.replace("\0", "").split())[:_LONGEST_TITLE]
        body = limited(item.body.replace("\0", ""), _LONGEST_BODY).strip()
        return f"---\n{head}---\n# {title}\n" + (f"\n{body}\n" if body else "")

    def _before(self, id: str) -> str | None:
        """Return the file name of an item that another comes after.

        It is "" for a closed item, and None if it is unknown whether the item is closed.
        """
        if id in self._open:
            return imported_name(self._source.name, id)
        if id in self._known:
            name, origin = self._known[id]
            will_land = id not in self._closed or self._importer.has_begun(name, origin)
            return name if will_land and not origin.removed else ""
        return "" if self._is_whole or id in self._closed else None


def _line(text: str) -> str:
    """Return the text on one line, escaped as for `held`."""
    return quoted_value(text)[1:-1]


def _url(text: str) -> str:
    is_one = len(text) <= _LONGEST_TITLE and re.fullmatch(r"https?://[!-~]+", text)
    return text if is_one and not set(text) & set('"\\<>`') else ""
