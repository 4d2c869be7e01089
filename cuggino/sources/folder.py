"""`folder_changes`: something in a folder has changed, as a cold Observable.

The threads that watch only *post* to the subscription's scheduler; what they share with it is in
`_Subscription`, behind one lock.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import psutil
from reactivex import Observable, abc
from reactivex.disposable import Disposable

from cuggino.sources.lane import serial_lane

if TYPE_CHECKING:
    from cuggino.sources.folder_watches import FolderWatches

REMOTE = frozenset(
    {
        "9p",
        "afpfs",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "drvfs",
        "fuse.glusterfs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.sshfs",
        "fuse.vmhgfs-fuse",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "macfuse",
        "ncpfs",
        "nfs",
        "nfs4",
        "osxfuse",
        "prl_fs",
        "smb3",
        "smbfs",
        "vboxsf",
        "virtiofs",
        "vmhgfs",
        "webdav",
    }
)
"""File systems that others change without this machine's kernel being told."""


@dataclass(frozen=True)
class PollingStarted:
    """From now on the folder is looked at regularly, as the system does not report its changes."""

    folder: Path
    reason: str


def folder_changes(folder: Path, *, poll_every: float = 1.0) -> Observable[object]:
    """Emit `folder` whenever the files in it may have changed.

    That is when a visible entry was created, deleted, moved in, out or within, or written to, and
    when the folder itself was removed, moved away or made again, which it survives (as it
    survives the same of the folder above it, or of two at once). Names that start with `.`, what
    happens inside of subfolders, and reading are no changes. A burst of changes is one item: at
    most one is on its way to the subscriber at any time, and it is posted after the change, so
    that whoever looks at the folder on receiving it sees the change.

    Cold: every subscription makes the folder if it is missing and watches it when `subscribe`
    returns. Items come on the scheduler given to `subscribe`, which must be serial; without one,
    and instead of one that is not serial, on a private thread of the subscription.

    Where the system cannot watch (no more inotify watches or instances, a folder that may not be
    read) and on network file systems, whose changes by others are not reported, the folder is
    looked at every `poll_every` seconds instead, and a `PollingStarted` is emitted once. An
    unknown file system that swallows notifications cannot be told from a quiet folder.

    Never completes; its only error is what the subscriber's `on_next` raises. Disposal, from any
    thread, returns when all threads have ended (just after a file was moved away that takes up to
    half a second).
    """
    if poll_every <= 0:
        raise ValueError("poll_every must be positive")
    absolute = Path(os.path.abspath(folder))  # noqa: PTH100 - resolve() would follow links

    def subscribe(
        observer: abc.ObserverBase[object], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        subscription = _Subscription(folder, absolute, poll_every, observer, scheduler)
        subscription.start()
        return Disposable(subscription.dispose)

    return Observable(subscribe)


class _Stoppable(Protocol):
    def stop(self) -> None: ...


class _Subscription:
    """One subscriber: what watches for it, what is posted to it, the disposal."""

    def __init__(
        self,
        folder: Path,
        absolute: Path,
        poll_every: float,
        observer: abc.ObserverBase[object],
        scheduler: abc.SchedulerBase | None,
    ) -> None:
        self._folder = folder
        self._absolute = absolute
        self._poll_every = poll_every
        self._observer = observer
        self._lane, self._close_lane = serial_lane(scheduler)
        self._watching = threading.Lock()
        """Held while watches are set or removed; never by a thread that watches."""
        self._watches: FolderWatches | None = None
        self._poller: _Poller | None = None
        self._flags = threading.Lock()
        self._posted = self._stale = self._changed = self._cancelled = False
        self._notice: PollingStarted | None = None

    def start(self) -> None:
        try:
            with suppress(OSError):  # then it is missing, and awaited
                self._absolute.mkdir(parents=True, exist_ok=True)
            with self._watching:
                if kind := _remote_file_system(self._absolute):
                    self._poll(f"the file system ({kind}) does not report changes by others")
                else:
                    self._watch()
        except BaseException:
            self.dispose()
            raise

    def dispose(self) -> None:
        """Stop watching and wait for that; from any thread, any number of times."""
        self._cancelled = True
        with self._watching:
            stoppable: tuple[_Stoppable | None, ...] = (self._watches, self._poller)
            self._watches = self._poller = None
            for thing in stoppable:
                if thing is not None:
                    thing.stop()
        self._close_lane()

    def _watch(self) -> None:
        # Imported where it is needed: that takes as long as the start of Python.
        from cuggino.sources.folder_watches import FolderWatches

        try:
            watches = FolderWatches(self._absolute, self._on_change)
            watches.start()
        except OSError as error:
            self._poll(error.strerror or str(error))
        else:
            self._watches = watches

    def _poll(self, reason: str) -> None:
        poller = _Poller(self._absolute, self._poll_every, lambda: self._on_change(False))
        poller.start()
        self._poller = poller
        self._notice = PollingStarted(self._folder, reason)
        self._post()

    # -- on the threads that watch

    def _on_change(self, stale: bool) -> None:
        with self._flags:
            self._changed = True
            self._stale = self._stale or stale
        self._post()

    def _post(self) -> None:
        with self._flags:
            if self._posted or self._cancelled:
                return
            self._posted = True
        try:
            self._lane.schedule(self._deliver)
        except Exception:  # the scheduler is closed: nobody is left to be told
            self._cancelled = True

    # -- on the scheduler

    def _deliver(self, _scheduler: abc.SchedulerBase, _state: object = None) -> None:
        with self._flags:
            changed, stale, notice = self._changed, self._stale, self._notice
            self._posted = self._changed = self._stale = False
            self._notice = None
        try:
            if stale:
                self._renew()
            if notice is not None and not self._cancelled:
                self._observer.on_next(notice)
            if changed and not self._cancelled:
                self._observer.on_next(self._folder)
        except Exception as error:
            self.dispose()
            self._observer.on_error(error)
        except BaseException:
            self.dispose()
            raise

    def _renew(self) -> None:
        with self._watching:
            if self._watches is None:
                return
            try:
                self._watches.renew()
            except OSError as error:
                self._watches.stop()
                self._watches = None
                self._poll(error.strerror or str(error))


class _Poller:
    """A thread that compares what is in the folder with what was."""

    def __init__(self, folder: Path, every: float, on_change: Callable[[], None]) -> None:
        self._folder = folder
        self._every = every
        self._on_change = on_change
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cuggino-poll", daemon=True)
        self._last = _signature(folder)  # here and not in the thread: from now on nothing is lost

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._every):
            seen = _signature(self._folder)
            if seen != self._last:
                self._last = seen
                self._on_change()


def _signature(folder: Path) -> dict[str, tuple[int, ...]] | None:
    """What tells whether the files have changed; None for a folder that cannot be read."""
    found: dict[str, tuple[int, ...]] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.name.startswith("."):
                    found[entry.name] = _entry_signature(entry)
    except OSError:
        return None
    return found


def _entry_signature(entry: os.DirEntry[str]) -> tuple[int, ...]:
    try:
        if entry.is_dir():
            return ()
        stat = entry.stat()
    except OSError:  # it is gone, or a link to nothing
        return (0,)
    return (stat.st_ino, stat.st_mode, stat.st_size, stat.st_mtime_ns)


def _remote_file_system(folder: Path) -> str | None:
    """The type of the file system that `folder` is on, if it is one of `REMOTE`."""
    real = Path(os.path.realpath(folder))
    try:
        mounted = {p.mountpoint: p.fstype for p in psutil.disk_partitions(all=True)}
    except (OSError, psutil.Error):
        return None
    nearest = next((str(p) for p in (real, *real.parents) if str(p) in mounted), None)
    kind = mounted[nearest] if nearest is not None else ""
    return kind if kind in REMOTE else None
