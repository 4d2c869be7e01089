"""`folder_changes` in a real folder, and its switch to polling."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from reactivex.scheduler import EventLoopScheduler
from reactivex.testing import TestScheduler
from watchdog.events import (
    DirModifiedEvent,
    FileClosedNoWriteEvent,
    FileModifiedEvent,
    FileOpenedEvent,
)

from cuggino.folders import folder_changes
from cuggino.folders.folder_watches import FolderWatches
from cuggino.testing import no_leaks
from tests.processes.subscribers import Recorder, eventually, wait_for


class Watched:
    """A recorder of a folder's changes that knows how to wait for the next, and for silence."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.recorder = Recorder(folder_changes(folder, **options))

    @property
    def items(self) -> list[Any]:
        return self.recorder.items

    def sees(self, act: Callable[[], object]) -> bool:
        """Return whether `act` causes a change; earlier changes have been seen by then."""
        self.settle()
        before = len(self.items)
        act()
        return eventually(lambda: len(self.items) > before)

    def settle(self) -> None:
        """Wait until what has happened has been reported: a change made now is the last one."""
        count = -1
        while count != len(self.items):
            count = len(self.items)
            threading.Event().wait(0.1)

    def dispose(self) -> None:
        self.recorder.subscription.dispose()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """A folder of three levels below `tmp_path`, watched; nothing may be left of the watch."""
    with no_leaks():
        watched = Watched(tmp_path / "project" / "state" / "backlog")
        yield watched
        watched.dispose()
    assert set(watched.items) <= {watched.folder}
    assert watched.recorder.error is None


def test_nothing_happens_before_a_subscription(tmp_path: Path) -> None:
    """The stream is cold: subscribing makes the folder, and does not count as a change."""
    folder = tmp_path / "a" / "b"
    stream = folder_changes(folder)
    assert not folder.exists()
    with no_leaks():
        recorder = Recorder(stream)
        assert folder.is_dir()
        recorder.subscription.dispose()
    assert recorder.items == []


def test_an_interval_of_zero_is_refused(tmp_path: Path) -> None:
    """Polling without a pause is a ValueError at once."""
    with pytest.raises(ValueError, match="poll_every"):
        folder_changes(tmp_path, poll_every=0)


def test_what_files_do(watched: Watched, tmp_path: Path) -> None:
    """Files created, edited, renamed, moved out and in, and deleted are changes."""
    a, b, outside = watched.folder / "a", watched.folder / "b", tmp_path / "outside"
    assert watched.sees(lambda: a.write_text("1"))
    assert watched.sees(lambda: a.write_text("2"))
    assert watched.sees(lambda: a.rename(b))
    assert watched.sees(lambda: b.rename(outside))
    assert watched.sees(lambda: outside.rename(a))
    assert watched.sees(lambda: Path(shutil.copy(a, outside)).replace(a))
    assert watched.sees(lambda: a.rename(watched.folder / ".a"))
    assert watched.sees(lambda: (watched.folder / ".a").rename(a))
    assert watched.sees(a.unlink)


def test_what_is_no_change(watched: Watched, tmp_path: Path) -> None:
    """Reading, listing, hidden names, subfolders' content and neighbours say nothing."""
    inside = watched.folder / "sub"
    assert watched.sees(inside.mkdir)
    file = watched.folder / "a"
    assert watched.sees(lambda: file.write_text("1"))
    watched.settle()
    before = len(watched.items)
    file.read_text()
    list(watched.folder.iterdir())
    (watched.folder / ".hidden").write_text("1")
    (watched.folder / ".hidden").unlink()
    (inside / "deep").write_text("1")
    (watched.folder.parent / "neighbour").write_text("1")
    (watched.folder.parent / "neighbour").rename(watched.folder.parent / "renamed")
    (watched.folder.parent.parent / "another").mkdir()
    watched.settle()
    assert len(watched.items) == before
    assert watched.sees(file.unlink)


def remove(folder: Path) -> None:
    shutil.rmtree(folder)


def move_away(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))


@pytest.mark.parametrize(
    ("go", "level"),
    [(remove, 0), (remove, 1), (remove, 2), (move_away, 0), (move_away, 1), (move_away, 2)],
)
def test_the_folder_survives(watched: Watched, go: Callable[[Path], None], level: int) -> None:
    """A folder that goes, alone or with those above it, is watched again when it is back."""
    victim = [watched.folder, *watched.folder.parents][level]
    for _ in range(2):
        assert watched.sees(lambda: (watched.folder / "a").write_text("1"))
        assert watched.sees(lambda: go(victim))
        assert watched.sees(lambda: watched.folder.mkdir(parents=True))
        shutil.rmtree(victim.with_name("moved"), ignore_errors=True)
    assert watched.sees(lambda: (watched.folder / "a").write_text("1"))
    assert watched.sees((watched.folder / "a").unlink)


def test_a_move_far_above(tmp_path: Path) -> None:
    """A folder that is changed while it is elsewhere is watched again when it is back."""
    far, elsewhere = tmp_path / "far", tmp_path / "elsewhere"
    folder = far / "outer" / "project" / "state" / "backlog"
    with no_leaks():
        watched = Watched(folder)
        far.rename(elsewhere)
        moved = elsewhere / folder.relative_to(far)
        assert watched.sees(lambda: (moved / "a").write_text("1"))
        assert watched.sees(lambda: elsewhere.rename(far))
        assert watched.sees((folder / "a").unlink)
        watched.dispose()


def test_a_folder_that_comes_with_its_files(watched: Watched, tmp_path: Path) -> None:
    """A folder that is replaced by another, full one is watched in its stead."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "a").write_text("1")

    def replace() -> None:
        shutil.rmtree(watched.folder)
        other.rename(watched.folder)

    assert watched.sees(replace)
    assert watched.sees((watched.folder / "a").unlink)


def test_a_folder_that_comes_and_goes_quickly(watched: Watched) -> None:
    """After 200 removals in a row the one that is left is watched."""
    for _ in range(200):
        watched.folder.rmdir()
        watched.folder.mkdir()
    assert watched.sees(lambda: (watched.folder / "a").write_text("1"))
    assert watched.sees((watched.folder / "a").unlink)


@pytest.mark.parametrize("depth", ["tasks", "state/tasks"])
@pytest.mark.parametrize("level", ["backlog", "project"])
def test_the_target_of_a_link_comes_back(tmp_path: Path, depth: str, level: str) -> None:
    """As a tracked folder does when git checks out another branch, and this one again."""
    target = tmp_path / "repository" / depth
    folder = tmp_path / "place" / "project" / "backlog"
    link = folder if level == "backlog" else folder.parent
    link.parent.mkdir(parents=True)
    watched_folder = target if level == "backlog" else target / "backlog"
    watched_folder.mkdir(parents=True)
    link.symlink_to(target)
    with no_leaks():
        watched = Watched(folder)
        assert watched.sees(lambda: shutil.rmtree(tmp_path / "repository" / depth.split("/")[0]))
        watched.settle()
        watched_folder.mkdir(parents=True)
        assert watched.sees(lambda: (watched_folder / "a").write_text("a"))
        target.rename(target.parent / "away")
        watched.settle()
        watched_folder.mkdir(parents=True)
        assert watched.sees(lambda: (watched_folder / "b").write_text("b"))
        watched.dispose()


def test_a_link_to_a_folder_is_followed(tmp_path: Path) -> None:
    """A folder that is a link is watched where it points to, also when the link changes."""
    link, one, two = tmp_path / "link", tmp_path / "one", tmp_path / "far" / "two"
    one.mkdir()
    two.mkdir(parents=True)
    link.symlink_to(one)

    def relink() -> None:
        link.unlink()
        link.symlink_to(two)

    with no_leaks():
        watched = Watched(link)
        assert watched.sees(lambda: (one / "a").write_text("1"))
        assert watched.sees(relink)
        assert watched.sees(lambda: (two / "a").write_text("1"))
        watched.dispose()


def test_a_file_in_the_way(tmp_path: Path) -> None:
    """A file with the folder's name is waited out until the folder exists."""
    folder = tmp_path / "backlog"
    folder.write_text("in the way")
    with no_leaks():
        watched = Watched(folder)
        assert watched.sees(folder.unlink)
        assert watched.sees(folder.mkdir)
        assert watched.sees(lambda: (folder / "a").write_text("1"))
        watched.dispose()


def test_a_storm_is_one_notification_at_a_time(tmp_path: Path) -> None:
    """2,000 changes while the scheduler is busy are one action in its queue, and one item."""
    lane = TestScheduler()  # runs nothing until told to
    with no_leaks():
        recorder = Recorder(folder_changes(tmp_path), scheduler=lane)
        most = 0
        for number in range(2000):
            (tmp_path / f"{number}").write_text("x")
            most = max(most, len(lane._queue))
        assert eventually(lambda: len(lane._queue) == 1)
        lane.advance_to(1)
        recorder.subscription.dispose()
    assert most <= 1
    assert recorder.items[0] == tmp_path


def test_items_come_on_the_scheduler(tmp_path: Path) -> None:
    """With a serial scheduler all items come on its thread, and none after the disposal."""
    lane = EventLoopScheduler()
    lanes: list[threading.Thread] = []
    lane.schedule(lambda *_: lanes.append(threading.current_thread()))
    assert eventually(lambda: bool(lanes))
    with no_leaks():
        recorder = Recorder(folder_changes(tmp_path), scheduler=lane)
        (tmp_path / "a").write_text("1")
        recorder.wait_first()
        recorder.subscription.dispose()
        count = len(recorder.items)
        (tmp_path / "b").write_text("1")
    assert (recorder.threads, len(recorder.items)) == (set(lanes), count)
    lane.dispose()


def test_disposal_from_another_thread(tmp_path: Path) -> None:
    """Disposal from several threads at once returns in each when all threads have ended."""
    with no_leaks():
        before = threading.active_count()
        recorder = Recorder(folder_changes(tmp_path), scheduler=TestScheduler())
        left: list[int] = []

        def dispose() -> None:
            recorder.subscription.dispose()
            left.append(sum("Thread-" in t.name for t in threading.enumerate()))

        threads = [threading.Thread(target=dispose, name=f"d{i}") for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(left) == 3
        assert threading.active_count() == before


def test_disposal_by_the_subscriber(tmp_path: Path) -> None:
    """The subscriber may dispose during `on_next`."""
    with no_leaks():
        done = threading.Event()

        def on_next(_: object) -> None:
            recorder.subscription.dispose()
            done.set()

        recorder = Recorder(folder_changes(tmp_path), on_next=on_next)
        (tmp_path / "a").write_text("1")
        wait_for(done)
    assert len(recorder.items) == 1


def test_a_failing_subscriber_gets_its_own_error(tmp_path: Path) -> None:
    """An exception in `on_next` ends the watch and arrives in `on_error`."""
    problem = RuntimeError("mine")

    def on_next(_: object) -> None:
        raise problem

    with no_leaks():
        recorder = Recorder(folder_changes(tmp_path), on_next=on_next)
        (tmp_path / "a").write_text("1")
        recorder.wait()
    assert recorder.error is problem


def test_a_closed_scheduler_ends_the_notifications(tmp_path: Path) -> None:
    """A change after the scheduler was closed is dropped, and fails no watching thread."""
    lane = EventLoopScheduler()
    with no_leaks():
        recorder = Recorder(folder_changes(tmp_path), scheduler=lane)
        (tmp_path / "a").write_text("1")
        recorder.wait_first()
        lane.dispose()
        seen = len(recorder.items)
        (tmp_path / "b").write_text("1")
        assert not eventually(lambda: len(recorder.items) > seen, limit=0.1)
        recorder.subscription.dispose()
    assert recorder.error is None


def test_events_that_are_no_change(tmp_path: Path) -> None:
    """Events that watchdog sends unasked, such as of reading, are dropped."""
    seen: list[bool] = []
    watches = FolderWatches(tmp_path, seen.append)
    file = str(tmp_path / "a")
    for event in (FileOpenedEvent(file), FileClosedNoWriteEvent(file), DirModifiedEvent(file)):
        watches.dispatch(event)
    assert [] == seen
    watches.dispatch(FileModifiedEvent(file))
    assert [False] == seen
    watches.stop()
