"""`folder_changes`: changes of a folder's files as a cold Observable.

The watching threads only *post* to the subscription's scheduler. All state that they share with it
is in `_Subscription`, guarded by one lock.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from reactivex import Observable, abc
from reactivex.disposable import Disposable

from cuggino.folders.folder_watches import FolderPolls, FolderWatches
from cuggino.operators.scheduler import lane_of

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
"""File systems whose remote changes this machine's kernel does not report."""


@dataclass(frozen=True)
class PollingStarted:
    """The folder is polled from now on, because the system does not report its changes."""

    folder: Path
    reason: str


def folder_changes(folder: Path, *, poll_every: float = 1.0) -> Observable[object]:
    """Emit `folder` whenever the files in it may have changed.

    A change is a visible entry created, deleted, moved or written to, and the folder itself
    removed, moved or created again, which the watch survives (as it survives the same of the two
    folders above, and of the folder that a link leads to; that one further above was moved is
    noticed at the next change). Names that start with `.`, the content of subfolders, and reading
    do not count.
    A burst of changes is one item: at most one is in flight, posted after the change, so that a
    subscriber that reads the folder on receiving it sees the change.

    Cold: every subscription creates the folder if it is missing and watches it when `subscribe`
    returns. Items are emitted on the scheduler given to `subscribe` if it is serial, otherwise on
    a private thread.

    Where the system cannot watch (no more inotify watches, an unreadable folder) and on network
    file systems, whose remote changes are not reported, the folder is polled every `poll_every`
    seconds, and a `PollingStarted` is emitted once. An unknown file system that drops
    notifications looks like a quiet folder.

    Never completes and never fails. Disposal, from any thread, returns when all threads have ended
    (up to half a second right after a file was moved away).
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


class _Subscription:
    """One subscriber and its watch."""

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
        self._lane, self._close_lane = lane_of(scheduler)
        self._watching = threading.Lock()
        """Held while watches are set or removed; never by a watching thread."""
        self._watches: FolderWatches | FolderPolls | None = None
        self._flags = threading.Lock()
        self._posted = self._stale = self._changed = self._cancelled = False
        self._notice: PollingStarted | None = None

    def start(self) -> None:
        try:
            with suppress(OSError):  # then it is missing, and waited for
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
        """Stop watching and wait for the threads to end; thread-safe and idempotent."""
        self._cancelled = True
        with self._watching:
            watches, self._watches = self._watches, None
            if watches is not None:
                watches.stop()
        self._close_lane()

    def _watch(self) -> None:
        try:
            watches = FolderWatches(self._absolute, self._on_change)
            watches.start()
        except OSError as error:
            self._poll(error.strerror or str(error))
        else:
            self._watches = watches

    def _poll(self, reason: str) -> None:
        polls = FolderPolls(self._absolute, self._poll_every, self._on_change)
        polls.start()
        self._watches = polls
        self._notice = PollingStarted(self._folder, reason)
        self._post()

    # -- on the watching threads

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
        except Exception:  # the scheduler is closed
            self._cancelled = True

    # -- on the scheduler

    def _deliver(self, _scheduler: abc.SchedulerBase, _state: object = None) -> None:
        with self._flags:
            changed, stale, notice = self._changed, self._stale, self._notice
            self._posted = self._changed = self._stale = False
            self._notice = None
        try:
            # What has changed in a folder that is gone is elsewhere: one far above was moved.
            if stale or not self._absolute.is_dir():
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
            if not isinstance(self._watches, FolderWatches):
                return
            try:
                self._watches.renew()
            except OSError as error:
                self._watches.stop()
                self._watches = None
                self._poll(error.strerror or str(error))


def _remote_file_system(folder: Path) -> str | None:
    """Return the type of the folder's file system if it is one of `REMOTE`."""
    real = Path(os.path.realpath(folder))
    try:
        mounted = {p.mountpoint: p.fstype for p in psutil.disk_partitions(all=True)}
    except (OSError, psutil.Error):
        return None
    nearest = next((str(p) for p in (real, *real.parents) if str(p) in mounted), None)
    kind = mounted[nearest] if nearest is not None else ""
    return kind if kind in REMOTE else None
