"""The operating system's own watches on a folder: set, renewed and removed as a whole.

Kept apart from `folder` because watchdog is slow to import and not always needed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
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

# Its threads say on standard error that they are being stopped if nobody listens to its log.
logging.getLogger("watchdog").addHandler(logging.NullHandler())

WATCHED_ABOVE = 2
"""Folders watched above the folder itself: that it, or its parent, is moved is seen from there."""

ATTEMPTS = 20
"""Renewals in a row that may find that the folders have changed meanwhile."""

_PLACES: list[type[FileSystemEvent]] = [
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,  # a link is a file
    FileDeletedEvent,
    FileMovedEvent,
]
_CONTENT: list[type[FileSystemEvent]] = [*_PLACES, FileModifiedEvent, FileClosedEvent]
"""Asked of the kernel. Reading (opened, closed without writing) does not even wake us."""

_PLACE_EVENTS = frozenset({"created", "deleted", "moved"})
_CONTENT_EVENTS = _PLACE_EVENTS | {"modified", "closed"}


class _Scope(NamedTuple):
    """What is watched, all as real paths."""

    folder: str
    places: tuple[str, ...]
    """The watched folders that exist, from the top down."""
    links: frozenset[str]
    """Names whose coming and going changes what must be watched."""


class FolderWatches(FileSystemEventHandler):
    """Watches `folder` and the folders above it.

    `on_change` is called by a thread of watchdog: with True if the folder, or one above it, came,
    went or was moved, after which the watches are dead or in the wrong place until `renew`.
    """

    def __init__(self, folder: Path, on_change: Callable[[bool], None]) -> None:
        self._folder = folder
        self._on_change = on_change
        self._observer = observers.Observer()
        self._scope = _scope(folder)

    def start(self) -> None:
        """Start to watch. Raises OSError if that is impossible; nothing is left then."""
        try:
            self._observer.start()
            self.renew()
        except BaseException:
            self.stop()
            raise

    def renew(self) -> None:
        """Watch what is there now.

        From the top down, so that what comes or goes meanwhile is reported from above. Raises
        OSError if the system refuses, or the folders do not come to rest.
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
        raise vanished or OSError("the folder comes and goes")

    def stop(self) -> None:
        """Stop, and wait for the threads."""
        self._observer.stop()
        if self._observer.is_alive():
            self._observer.join()

    def _schedule(self, scope: _Scope) -> None:
        nearest = scope.places[-2:]
        for place in scope.places:
            if _is_forbidden(place):
                # watchdog would be deaf without a word.
                if place in nearest:
                    raise PermissionError(f"{place} cannot be read")
                continue
            wanted = _CONTENT if place == scope.folder else _PLACES
            self._observer.schedule(self, place, event_filter=wanted)

    def dispatch(self, event: FileSystemEvent) -> None:
        """Judge one event; called by watchdog."""
        kind, scope = event.event_type, self._scope
        if kind not in _CONTENT_EVENTS or (event.is_directory and kind == "modified"):
            return
        paths = [os.fsdecode(path) for path in (event.src_path, event.dest_path) if path]
        places = scope.links.intersection(paths) if kind in _PLACE_EVENTS else ()
        if places:
            # What was created and is watched already, is watched since after its creation.
            self._on_change(kind != "created" or not places <= set(scope.places))
        elif any(_visible_in(scope.folder, path) for path in paths):
            self._on_change(False)


def _visible_in(folder: str, path: str) -> bool:
    parent, name = os.path.split(path)
    return parent == folder and not name.startswith(".")


def _scope(folder: Path) -> _Scope:
    """The folder and those above it as they are now; the nearest that exists if none does."""
    lineage = [folder, *folder.parents]
    existing = [i for i, place in enumerate(lineage) if os.path.isdir(place)]  # noqa: PTH112
    near = [i for i in existing if i <= WATCHED_ABOVE] or existing[:1]
    places = {i: os.path.realpath(lineage[i]) for i in reversed(near)}
    below = {os.path.join(real, lineage[i - 1].name) for i, real in places.items() if i > 0}  # noqa: PTH118
    return _Scope(
        folder=os.path.realpath(folder),
        places=tuple(dict.fromkeys(places.values())),
        links=frozenset(places.values()) | below,
    )


def _is_forbidden(place: str) -> bool:
    """Whether the folder is there and may not be read; asked in one step, as it may come and go."""
    try:
        os.close(os.open(place, os.O_RDONLY | os.O_DIRECTORY))
    except PermissionError:
        return True
    except OSError:
        return False
    return False
