"""When `folder_changes` looks at the folder itself because the system does not tell."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from watchdog import observers
from watchdog.observers.api import BaseObserver, EventEmitter

from cuggino.folders import PollingStarted, folder_changes, folder_watches, watch_file_count
from cuggino.folders.folder import REMOTE
from cuggino.testing import VirtualClock, no_leaks
from tests.processes.subscribers import Recorder, eventually

FORBIDDEN = "cuggino.folders.folder_watches._is_forbidden"


def no_watches_left(*_: object, **__: object) -> Any:
    raise OSError(errno.ENOSPC, "inotify watch limit reached")


@pytest.fixture
def polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """The native observer cannot be made."""
    monkeypatch.setattr(observers, "Observer", no_watches_left)


def sees(recorder: Recorder, act: Callable[[], object]) -> bool:
    before = len(recorder.items)
    act()
    return eventually(lambda: len(recorder.items) > before)


@pytest.mark.usefixtures("polling")
def test_polling_is_announced_once(tmp_path: Path) -> None:
    """Without a native watch `PollingStarted` is the first item, and changes are still seen."""
    folder = tmp_path / "backlog"
    a, b = folder / "a", folder / "b"
    with no_leaks():
        recorder = Recorder(folder_changes(folder, poll_every=0.02))
        assert eventually(lambda: len(recorder.items) == 1)
        assert sees(recorder, lambda: a.write_text("1"))
        assert sees(recorder, lambda: a.write_text("22"))
        assert sees(recorder, lambda: a.rename(b))
        assert sees(recorder, lambda: b.rename(tmp_path / "b"))
        assert sees(recorder, lambda: shutil.rmtree(folder))
        assert sees(recorder, folder.mkdir)
        assert sees(recorder, lambda: a.symlink_to("nowhere"))
        recorder.subscription.dispose()
    assert recorder.items[0] == PollingStarted(folder, "inotify watch limit reached")
    assert set(recorder.items[1:]) == {folder}


@pytest.mark.usefixtures("polling")
def test_polling_ignores_what_is_no_change(tmp_path: Path) -> None:
    """Hidden names, reading and the content of subfolders are no changes when polling either."""
    (tmp_path / "a").write_text("1")
    (tmp_path / "sub").mkdir()
    with no_leaks():
        recorder = Recorder(folder_changes(tmp_path, poll_every=0.02))
        assert eventually(lambda: len(recorder.items) == 1)
        (tmp_path / ".hidden").write_text("1")
        (tmp_path / "sub" / "deep").write_text("1")
        (tmp_path / "a").read_text()
        assert not eventually(lambda: len(recorder.items) > 1, limit=0.3)
        assert sees(recorder, (tmp_path / "a").unlink)
        recorder.subscription.dispose()


@pytest.mark.usefixtures("polling")
def test_the_count_when_polling(tmp_path: Path) -> None:
    """`watch_file_count` hands the notice on and counts as usual."""
    heard: list[PollingStarted] = []
    with no_leaks():
        recorder = Recorder(
            watch_file_count(
                tmp_path,
                settle=0.05,
                changes=lambda folder: folder_changes(folder, poll_every=0.02),
                on_polling=heard.append,
            )
        )
        (tmp_path / "a").write_text("1")
        assert eventually(lambda: recorder.items == [0, 1])
        recorder.subscription.dispose()
    assert [notice.folder for notice in heard] == [tmp_path]


@pytest.mark.parametrize("method", ["start", "schedule"])
def test_a_watch_that_cannot_be_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """An observer that fails after it was made is taken down before polling starts."""
    monkeypatch.setattr(observers.Observer, method, no_watches_left)
    with no_leaks():
        recorder = Recorder(folder_changes(tmp_path, poll_every=0.02))
        assert isinstance(recorder.wait_first(), PollingStarted)
        assert sees(recorder, lambda: (tmp_path / "a").write_text("1"))
        recorder.subscription.dispose()


def test_a_watch_that_fails_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any other error of the subscription is the stream's, and nothing is left of the watch."""

    def no_threads_left(_observer: BaseObserver) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(BaseObserver, "start", no_threads_left)
    with no_leaks():
        recorder = Recorder(folder_changes(tmp_path)).wait()
    assert "can't start new thread" == str(recorder.error)
    assert [] == recorder.items


def test_a_folder_that_keeps_changing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch that never matches the folders as they are is given up for polling."""
    seen = count()

    def another(_folder: Path) -> folder_watches._Scope:
        return folder_watches._Scope(str(next(seen)), (), frozenset())

    monkeypatch.setattr(folder_watches, "_scope", another)
    with no_leaks():
        recorder = Recorder(folder_changes(tmp_path, poll_every=0.02))
        notice = recorder.wait_first()
        recorder.subscription.dispose()
    assert PollingStarted(tmp_path, "the folder keeps being created and removed") == notice
    assert 2 * folder_watches.ATTEMPTS + 1 == next(seen)


def test_unknown_mounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the file systems cannot be listed, the folder is watched, not polled."""

    def hidden(*, all: bool) -> Any:
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil, "disk_partitions", hidden)
    with no_leaks():
        recorder = Recorder(folder_changes(tmp_path))
        (tmp_path / "a").write_text("1")
        assert tmp_path == recorder.wait_first()
        recorder.subscription.dispose()


@pytest.mark.usefixtures("polling")
def test_a_subscriber_that_exits(tmp_path: Path) -> None:
    """`sys.exit` in `on_next` ends the watch and passes through the scheduler."""
    clock = VirtualClock()

    def leave(_item: object) -> None:
        raise SystemExit(3)

    with no_leaks():
        errors: list[Exception] = []
        folder_changes(tmp_path).subscribe(leave, errors.append, scheduler=clock)
        with pytest.raises(SystemExit):
            clock.advance_to(clock.at(1))
    assert [] == errors


def test_a_watch_that_cannot_be_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Watches that run out when the folder is made again are replaced by polling, once."""
    folder = tmp_path / "backlog"
    with no_leaks():
        recorder = Recorder(folder_changes(folder, poll_every=0.02))
        monkeypatch.setattr(observers.Observer, "schedule", no_watches_left)
        assert sees(recorder, folder.rmdir)
        assert eventually(lambda: any(isinstance(i, PollingStarted) for i in recorder.items))
        folder.mkdir()
        assert sees(recorder, lambda: (folder / "a").write_text("1"))
        recorder.subscription.dispose()
    assert sum(isinstance(item, PollingStarted) for item in recorder.items) == 1


def test_a_folder_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without permission, on which a native watch is deaf, is polled."""
    monkeypatch.setattr(FORBIDDEN, lambda place: place == os.path.realpath(tmp_path))
    with no_leaks():
        recorder = Recorder(folder_changes(tmp_path, poll_every=0.02))
        notice = recorder.wait_first()
        recorder.subscription.dispose()
    assert isinstance(notice, PollingStarted)
    assert "cannot be read" in notice.reason


def test_a_distant_folder_that_may_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder above the parent is not needed: without permission it is left out."""
    folder = tmp_path / "state" / "backlog"
    monkeypatch.setattr(FORBIDDEN, lambda place: place == os.path.realpath(tmp_path))
    with no_leaks():
        recorder = Recorder(folder_changes(folder))
        (folder / "a").write_text("1")
        assert recorder.wait_first() == folder
        recorder.subscription.dispose()


@pytest.mark.parametrize("kind", ["nfs4", "9p", "fuse.sshfs", "smbfs"])
def test_network_file_systems_are_polled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """On a file system that others write to as well, the folder is polled and the type is named."""
    mounts = [
        SimpleNamespace(mountpoint=str(place), fstype=fstype)
        for place, fstype in (("/", "ext4"), (os.path.realpath(tmp_path), kind))
    ]
    monkeypatch.setattr(psutil, "disk_partitions", lambda **_: mounts)
    folder = tmp_path / "state" / "backlog"
    with no_leaks():
        recorder = Recorder(folder_changes(folder, poll_every=0.02))
        notice = recorder.wait_first()
        assert sees(recorder, lambda: (folder / "a").write_text("1"))
        recorder.subscription.dispose()
    assert isinstance(notice, PollingStarted)
    assert kind in REMOTE
    assert f"({kind})" in notice.reason


class _Deaf(EventEmitter):
    """Never reports anything."""

    def queue_events(self, timeout: float) -> None:
        self.stopped_event.wait(timeout)


def test_an_observer_that_never_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A silent watch looks like a quiet folder: nothing is emitted, and disposal is clean."""
    monkeypatch.setattr(observers, "Observer", lambda: BaseObserver(_Deaf, timeout=0.02))
    with no_leaks():
        recorder = Recorder(folder_changes(tmp_path, poll_every=0.02))
        (tmp_path / "a").write_text("1")
        assert not eventually(lambda: bool(recorder.items), limit=0.3)
        recorder.subscription.dispose()
