"""A journal that cannot be written, at every one of its entries in turn."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from cuggino.errors import StorageError
from cuggino.events import RunContinued, StageFinished
from cuggino.storage import Journal, journal as journal_module, list_journals
from cuggino.testing import Seen, no_leaks
from tests.loops.resumable import Process, Undisturbed, resumed
from tests.loops.turns import STORIES, TWO_ROUNDS


class Disk:
    """Its nth write to a journal fails, and all later ones too unless it fails `once`.

    `taken` is what part of the line it has taken by then.
    """

    def __init__(self, nth: int, *, taken: float, once: bool, error: int = errno.ENOSPC) -> None:
        self._nth, self._taken, self._once, self._error = nth, taken, once, error
        self.writes = 0

    @property
    def has_failed(self) -> bool:
        return self.writes >= self._nth

    @contextmanager
    def used(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Journals are on this disk while the block runs."""
        write = Journal._write

        def limited(journal: Journal, line: bytes) -> None:
            self.writes += 1
            fails = self.writes == self._nth if self._once else self.has_failed
            if not fails:
                write(journal, line)
                return
            write(journal, line[: int(len(line) * self._taken)])
            raise OSError(self._error, os.strerror(self._error))

        with monkeypatch.context() as patch:
            patch.setattr(Journal, "_write", limited)
            yield


def assert_failed(process: Process, seen: list[Seen], *, why: str = "No space left") -> None:
    """Assert that the run has ended with one clear error, and that nothing goes on behind it."""
    kinds = [kind for _, kind, _ in seen]
    assert ["next"] * (len(seen) - 1) + ["error"] == kinds
    error = seen[-1][2]
    assert (StorageError, "write journal") == (type(error), error.operation)
    place, _, reason = error.message.partition(".jsonl: ")
    assert str(process.workspace.journal) == str(Path(place).parent)
    assert reason.startswith(why)
    assert "\n" not in error.message
    assert error.hint is not None
    assert "free space" in error.hint
    assert process.failed is not None
    assert 0 == process.failed.subscriptions
    assert process.present == process.failed  # a long time after it
    process.assert_released()


@pytest.mark.parametrize(
    ("name", "taken", "once"),
    [
        ("two-rounds", 0.0, False),
        ("two-rounds", 0.5, True),
        ("two-rounds", 1.0, True),
        ("spec-issue", 0.0, True),
        ("same-findings", 0.0, True),
    ],
)
def test_at_every_append(
    name: str, taken: float, once: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A journal that cannot be written ends the run, which then goes on to the same end."""
    story = Undisturbed(tmp_path, STORIES[name], monkeypatch)
    with no_leaks():
        for nth in count(1):
            process = Process(tmp_path / f"full-{nth}", story.turns)
            disk = Disk(nth, taken=taken, once=once)
            with disk.used(monkeypatch):
                seen = process.run()
            if not disk.has_failed:
                break
            assert_failed(process, seen)
            # Before the first entry there is no run, and nothing of one is left.
            assert (nth == 1) == ([] == list_journals(process.workspace.journal))
            assert (nth == 1) == ([] == list(process.workspace.wip.iterdir()))
            assert nth == 1 or process.journal.resumable
            again = Process(process.folder, story.turns)
            _, log = resumed(again, monkeypatch)
            story.assert_equals(again, log)
    assert len(story.journal.entries) + 1 == nth
    story.assert_equals(process)


@pytest.mark.parametrize("once", [False, True], ids=["stays-full", "full-once"])
def test_at_every_append_of_a_run_that_goes_on(
    once: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resumed run whose journal cannot be written ends too, and can be resumed once more."""
    story = Undisturbed(tmp_path, TWO_ROUNDS, monkeypatch)
    for nth in count(1):
        folder = tmp_path / f"full-{nth}"
        Process(folder, TWO_ROUNDS).run(dispose_at=3.5)
        process = Process(folder, TWO_ROUNDS)
        kept, text = process.journal, process.session_text()
        disk = Disk(nth, taken=0.5, once=once)
        with disk.used(monkeypatch):
            seen = process.resume()
        if not disk.has_failed:
            break
        assert_failed(process, seen)
        if nth == 1:  # not even that it goes on could be written
            assert 1 == len(seen)
            assert [] == process.agent.spawned
            assert text == process.session_text()
            assert kept.entries == process.journal.entries[: len(kept.entries)]
            assert not any(isinstance(e.event, RunContinued) for e in process.journal.entries)
        again = Process(folder, TWO_ROUNDS)
        _, log = resumed(again, monkeypatch, at=5000)
        story.assert_equals(again, log)
    assert nth > 50
    story.assert_equals(process)


@pytest.mark.parametrize("error", [errno.EIO, errno.EDQUOT, errno.EROFS])
def test_the_reason_is_told(error: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the system gives as its reason stands in the message, for every kind of entry."""
    for nth in (1, 2, 3, 6, 12, 30):
        process = Process(tmp_path / f"full-{nth}", TWO_ROUNDS)
        with Disk(nth, taken=0.0, once=False, error=error).used(monkeypatch):
            seen = process.run()
        assert_failed(process, seen, why=os.strerror(error))


class UnsafeSystem:
    """The system as journals see it, where the nth sync and all later ones fail."""

    def __init__(self, nth: int) -> None:
        self._left = nth - 1

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def fsync(self, file: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_disk_that_cannot_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An outcome that is not safely on the disk is no outcome: the run ends, and repeats it."""
    story = Undisturbed(tmp_path, TWO_ROUNDS, monkeypatch)
    for nth in range(3, 30):  # the first two are of the new journal, and of its folder
        process = Process(tmp_path / f"unsafe-{nth}", TWO_ROUNDS)
        with monkeypatch.context() as patch:
            patch.setattr(journal_module, "os", UnsafeSystem(nth))
            seen = process.run()
        assert_failed(process, seen, why=os.strerror(errno.EIO))
        assert nth - 3 == sum(isinstance(e.event, StageFinished) for e in process.journal.entries)
        again = Process(process.folder, TWO_ROUNDS)
        _, log = resumed(again, monkeypatch)
        story.assert_equals(again, log)
