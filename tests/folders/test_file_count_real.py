"""Counting real folders, once and watched by the operating system."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from cuggino.folders import count_files, watch_file_count
from cuggino.testing import no_leaks
from tests.processes.subscribers import Recorder, eventually


def test_counting_files(tmp_path: Path) -> None:
    """Visible regular files count, and links to them; nothing else does."""
    for name in ("a.md", "b", "ü x", ".hidden"):
        (tmp_path / name).write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inside").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "a.md")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder-link").symlink_to(tmp_path / "folder")
    assert count_files(tmp_path) == 4


@pytest.mark.parametrize("name", ["missing", "a-file", "a-file/below"])
def test_what_cannot_be_listed_has_no_files(tmp_path: Path, name: str) -> None:
    """A folder that is missing, or is none, has 0 files."""
    (tmp_path / "a-file").write_text("x")
    assert count_files(tmp_path / name) == 0


def test_an_unreadable_folder_has_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CUG-101: a folder that may not be read has 0 files."""

    def forbidden(_: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", forbidden)
    assert count_files(tmp_path) == 0


def last_is(recorder: Recorder, number: int) -> Callable[[], bool]:
    return lambda: bool(recorder.items) and recorder.items[-1] == number


def test_the_real_folder(tmp_path: Path) -> None:
    """Files that come and go in a real folder are counted, an edit and hidden ones say nothing."""
    folder = tmp_path / ".state" / "backlog"
    with no_leaks():
        recorder = Recorder(watch_file_count(folder, settle=0.05))
        assert recorder.items == [0]
        (folder / "a").write_text("1")
        assert eventually(last_is(recorder, 1))
        (folder / ".b").write_text("1")
        (folder / "a").write_text("2")
        (folder / "b").write_text("1")
        assert eventually(last_is(recorder, 2))
        (folder / "a").rename(folder / "c")
        (folder / "b").rename(tmp_path / "b")
        assert eventually(last_is(recorder, 1))
        (folder / "c").unlink()
        assert eventually(last_is(recorder, 0))
        recorder.subscription.dispose()
    assert recorder.items == [0, 1, 2, 1, 0]
    assert recorder.error is None


def test_a_file_that_is_written_all_the_time(tmp_path: Path) -> None:
    """A folder that never rests is counted all the same."""
    stop = threading.Event()
    with no_leaks():
        recorder = Recorder(watch_file_count(tmp_path, settle=0.5, longest=0.6))

        def write() -> None:
            while not stop.wait(0.02):
                with (tmp_path / "log").open("a") as log:
                    log.write("x")

        writer = threading.Thread(target=write)
        writer.start()
        try:
            assert eventually(last_is(recorder, 1))
        finally:
            stop.set()
            writer.join()
            recorder.subscription.dispose()


@pytest.mark.real_agent
def test_five_thousand_files_at_once(tmp_path: Path) -> None:
    """5,000 files dropped in a burst are few numbers, of which the last is right."""
    with no_leaks():
        recorder = Recorder(watch_file_count(tmp_path, settle=0.2))
        for number in range(5000):
            (tmp_path / f"{number}.md").write_text("x")
        assert eventually(last_is(recorder, 5000))
        recorder.subscription.dispose()
    assert len(recorder.items) < 20
    assert sorted(recorder.items) == recorder.items


def test_two_watches_are_independent(tmp_path: Path) -> None:
    """Two folders with the same parent are watched side by side, one disposed before the other."""
    with no_leaks():
        one = Recorder(watch_file_count(tmp_path / "one", settle=0.05))
        two = Recorder(watch_file_count(tmp_path / "two", settle=0.05))
        one.subscription.dispose()
        (tmp_path / "one" / "x").write_text("x")
        (tmp_path / "two" / "x").write_text("x")
        assert eventually(last_is(two, 1))
        two.subscription.dispose()
    assert (one.items, two.items) == ([0], [0, 1])
