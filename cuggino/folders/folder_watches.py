"""Watches on a folder: the operating system's, renewed as a whole, or comparisons now and then."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from watchdog import observers
from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers.polling import PollingObserverVFS

# Without a log handler its threads report on standard error that they stop.
logging.getLogger("watchdog").addHandler(logging.NullHandler())

WATCHED_ABOVE = 3
"""Folders watched above the folder itself, to see it or the two above it being moved."""

ATTEMPTS = 20
"""Renewals in a row during which the folders may change."""

_PLACES: list[type[FileSystemEvent]] = [
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,  # a link is a file
    FileDeletedEvent,
    FileMovedEvent,
]
_CONTENT: list[type[FileSystemEvent]] = [*_PLACES, FileModifiedEvent, FileClosedEvent]
"""Requested from the kernel; reading (opened, closed without writing) wakes nothing."""

_PLACE_EVENTS = frozenset({"created", "deleted", "moved"})
_CONTENT_EVENTS = _PLACE_EVENTS | {"modified", "closed"}


class _Scope(NamedTuple):
    """The watched folders, as real paths."""

    folder: str
    places: tuple[str, ...]
    """The watched folders that exist, from the top down."""
    links: frozenset[str]
    """Names whose creation or removal changes what must be watched."""


class FolderWatches(FileSystemEventHandler):
    """The watches on `folder` and the folders above it.

    A thread of watchdog calls `on_change`, with True if the folder, or one above it, was created,
    removed or moved: the watches are then dead or in the wrong place until `renew`.
    """

    def __init__(self, folder: Path, on_change: Callable[[bool], None]) -> None:
        self._folder = folder
        self._on_change = on_change
        self._observer = observers.Observer()
        self._scope = _scope(folder)

    def start(self) -> None:
        """Start watching. Raises OSError if that is impossible, and leaves nothing behind."""
        try:
            self._observer.start()
            self.renew()
        except BaseException:
            self.stop()
            raise

    def renew(self) -> None:
        """Watch the folders that exist now.

        From the top down, so that changes meanwhile are reported from above. Raises OSError if the
        system refuses, or the folders keep changing.
        """
        vanished: OSError | None = None
        for _ in range(ATTEMPTS):
            self._observer.unschedule_all()
            self._scope = scope = _scope(self._folder)
            try:
                self._schedule(scope)
            except (FileNotFoundError, NotADirectoryError) as error:
                vanished = error
                continue
            if scope == _scope(self._folder):
                return
        raise vanished or OSError("the folder keeps being created and removed")

    def stop(self) -> None:
        """Stop, and wait for the threads."""
        self._observer.stop()
        if self._observer.is_alive():
            self._observer.join()

    def _schedule(self, scope: _Scope) -> None:
        nearest = scope.places[-2:]
        for place in scope.places:
            if _is_forbidden(place):
                # watchdog would silently report nothing.
                if place in nearest:
                    raise PermissionError(f"{place} cannot be read")
                continue
            wanted = _CONTENT if place == scope.folder else _PLACES
            self._observer.schedule(self, place, event_filter=wanted)

    def dispatch(self, event: FileSystemEvent) -> None:
        """Handle one event; called by watchdog."""
        kind, scope = event.event_type, self._scope
        if kind not in _CONTENT_EVENTS or (event.is_directory and kind == "modified"):
            return
        paths = [os.fsdecode(path) for path in (event.src_path, event.dest_path) if path]
        places = scope.links.intersection(paths) if kind in _PLACE_EVENTS else ()
        if places:
            # A created folder that is watched already was watched after its creation.
            self._on_change(kind != "created" or not places <= set(scope.places))
        elif any(_visible_in(scope.folder, path) for path in paths):
            self._on_change(False)


class FolderPolls(FileSystemEventHandler):
    """A thread that compares the folder's visible entries with what they were, now and then.

    The folder may be missing or unreadable, and come back: then it has no entries.
    """

    def __init__(self, folder: Path, every: float, on_change: Callable[[bool], None]) -> None:
        self._folder = str(folder)
        self._on_change = on_change
        self._observer = PollingObserverVFS(_state_of, _visible_entries, polling_interval=every)

    def start(self) -> None:
        """Start; the folder is read before this returns, so that no change is missed."""
        try:
            self._observer.start()
            self._observer.schedule(self, self._folder)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        self._observer.stop()
        if self._observer.is_alive():
            self._observer.join()

    def dispatch(self, event: FileSystemEvent) -> None:
        """Handle one difference; called by watchdog."""
        if not event.is_directory or event.event_type in _PLACE_EVENTS:
            self._on_change(False)


_MISSING = os.stat_result((stat.S_IFDIR, *[0] * 9))
"""The state of a folder that is not there."""


def _state_of(path: str) -> os.stat_result:
    for look in (os.stat, os.lstat):  # the second one for a broken link
        try:
            return look(path)
        except OSError:
            pass
    return _MISSING


def _visible_entries(folder: str | None) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return iter([entry for entry in entries if not entry.name.startswith(".")])
    except OSError:
        return iter(())


def _visible_in(folder: str, path: str) -> bool:
    parent, name = os.path.split(path)
    return parent == folder and not name.startswith(".")


def _scope(folder: Path) -> _Scope:
    """Return the folder and those above it as they are now; the nearest existing one if none is."""
    lineage = [folder, *folder.parents]
    existing = [i for i, place in enumerate(lineage) if os.path.isdir(place)]  # noqa: PTH112
    near = [i for i in existing if i <= WATCHED_ABOVE] or existing[:1]
    places = {i: os.path.realpath(lineage[i]) for i in reversed(near)}
    below = {os.path.join(real, lineage[i - 1].name) for i, real in places.items() if i > 0}  # noqa: PTH118
    targets = [_target_of(link) for link in lineage[: WATCHED_ABOVE + 1] if link.is_symlink()]
    return _Scope(
        folder=os.path.realpath(folder),
        places=tuple(dict.fromkeys((*(above for above, _ in targets), *places.values()))),
        links=frozenset(places.values()) | below | {target for _, target in targets},
    )


def _target_of(link: Path) -> tuple[str, str]:
    """Return the nearest existing folder above a link's target, and what leads there from it."""
    target = os.path.realpath(link)
    while not os.path.isdir(above := os.path.dirname(target)):  # noqa: PTH112, PTH120
        target = above
    return above, target


def _is_forbidden(place: str) -> bool:
    """Return whether the folder exists and is unreadable; in one step, as it may vanish."""
    try:
        os.close(os.open(place, os.O_RDONLY | os.O_DIRECTORY))
    except PermissionError:
        return True
    except OSError:
        return False
    return False
