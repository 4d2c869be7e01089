"""A full disk: any run ends with one error and can be resumed; a watch waits for room.

It is sampled here for each loop; `tests/operators/test_flow_crash.py` proves it for every entry.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cuggino.errors import CugginoError, Interrupted, ProcessFailed, StorageError
from cuggino.events import (
    Event,
    RunContinued,
    RunResult,
    StageFinished,
    StageStarted,
    WatchDiskFull,
)
from cuggino.files import write_atomic
from cuggino.loops.watch.full_disk import waits_for_room
from cuggino.storage import Entry, Journal, list_journals
from cuggino.testing import Marbles, Story, no_leaks
from tests.loops.crashes import CODING, LOOPS, WATCH, Uninterrupted
from tests.loops.durable_runs import Process, WatchProcess
from tests.loops.full_disk import no_room
from tests.test_drawings import one_by_one

Whole = Callable[[str], Uninterrupted]

FAILURES = [(0.0, False), (0.5, True), (1.0, True)]
"""The part of a line that is written before an error, and whether there is only one error."""


class Disk:
    """A disk whose nth write to a journal fails, and unless `once` all later ones too."""

    def __init__(
        self, nth: int, *, written: float = 0.0, once: bool = False, error: int = errno.ENOSPC
    ) -> None:
        self._nth, self._written, self._once = nth, written, once
        self._failure = OSError(error, os.strerror(error))
        self.writes = 0

    @contextmanager
    def used(self) -> Iterator[None]:
        """Write journals to this disk."""
        append, create = Journal._write, write_atomic

        def limited(journal: Journal, line: bytes) -> None:
            is_full = self._is_full()
            append(journal, line[: int(len(line) * self._written)] if is_full else line)
            if is_full:
                raise self._failure

        def limited_creation(path: Path, parts: tuple[bytes], **options: Any) -> None:
            if self._is_full():
                raise self._failure
            create(path, parts, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Journal, "_write", limited)
            patch.setattr(sys.modules[Journal.__module__], "write_atomic", limited_creation)
            yield
        assert self.writes >= self._nth

    def _is_full(self) -> bool:
        self.writes += 1
        return self.writes == self._nth or (self.writes > self._nth and not self._once)


def assert_failed(process: Process, story: Story[Any], *, why: str = "No space left") -> None:
    """Assert that the run has ended with one clear error, and that nothing happens after it."""
    error = story.error
    assert isinstance(error, StorageError)
    assert "write journal" == error.operation
    place, _, reason = error.message.partition(".jsonl: ")
    assert str(process.workspace.journal) == str(Path(place).parent)
    assert reason.startswith(why)
    assert "\n" not in error.message
    assert "free space" in (error.hint or "")
    assert process.at_error is not None
    assert 0 == process.at_error[0]
    assert process.at_error == process.present  # eleven days later
    process.assert_released()


@pytest.mark.real_agent
@pytest.mark.parametrize("name", LOOPS)
def test_a_new_run(name: str, whole: Whole, tmp_path: Path) -> None:
    """A run on a full disk ends before it does anything that is not recorded."""
    run = whole(name)
    entries = len(run.journal.entries)
    appends = [1, 2, entries // 2, entries - 1, entries]
    with no_leaks():
        for n, nth in enumerate(appends):
            written, once = FAILURES[n % 3]
            process = run.scenario.process(tmp_path / f"full-{nth}")
            with Disk(nth, written=written, once=once).used():
                story = process.run()
            assert_failed(process, story)
            # Before the first entry there is no run, and nothing of one is left.
            assert (nth == 1) == ([] == list_journals(process.workspace.journal))
            assert (nth == 1) == ([] == list(process.workspace.wip.iterdir()))
            # The last two entries are the result and the end of the run.
            assert any(isinstance(event, RunResult) for event in story.events) == (nth == entries)
            run.assert_resumes(run.scenario.process(process.folder))


@pytest.mark.parametrize("name", LOOPS)
def test_a_resumed_run(name: str, whole: Whole, tmp_path: Path) -> None:
    """A resumed run on a full disk can be resumed once more."""
    run = whole(name)
    for n, nth in enumerate((1, 9)):
        folder = tmp_path / f"full-{nth}"
        run.scenario.process(folder).run(dispose_at=3.5)
        process = run.scenario.process(folder)
        before, files = process.journal, process.work
        with Disk(nth, written=0.5, once=n % 2 == 0).used():
            story = process.resume()
        assert_failed(process, story)
        if nth == 1:  # not even the resumption is recorded
            assert [] == story.events
            assert [] == process.agent.begun
            assert files == process.work
            assert before.entries == process.journal.entries[: len(before.entries)]
            events = [entry.event for entry in process.journal.entries]
            assert not any(isinstance(event, RunContinued) for event in events)
        run.assert_resumes(run.scenario.process(folder), at=5000.0)


@pytest.mark.parametrize("error", [errno.EIO, errno.EDQUOT, errno.EROFS])
def test_the_reason_is_reported(error: int, tmp_path: Path) -> None:
    """The message contains the reason of the system, for the first and for later entries."""
    for nth in (1, 2, 12):
        process = CODING.process(tmp_path / f"full-{nth}")
        with Disk(nth, error=error).used():
            story = process.run()
        assert_failed(process, story, why=os.strerror(error))


class UnsafeSystem:
    """The `os` module for journals, with an `fsync` that fails from the nth call on."""

    def __init__(self, nth: int) -> None:
        self._left = nth - 1

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def fsync(self, file: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))


def _synced(entries: Iterable[Entry]) -> list[Entry]:
    """Return the ends of stages that had an event, or whose outcome is one."""
    synced: list[Entry] = []
    before: Event | None = None
    for entry in entries:
        match entry.event:
            case StageFinished(outcome={"_tag": str()}):
                synced.append(entry)
            case StageFinished() if not isinstance(before, StageStarted):
                synced.append(entry)
            case _:
                pass
        before = entry.event
    return synced


@pytest.mark.real_agent
def test_a_disk_that_cannot_sync(
    whole: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An outcome that is not safely on the disk is none: the run ends, and repeats the stage."""
    run = whole("coding")
    for nth in (2, 3, 5, 7):  # the first is of the folder of the new journal
        process = CODING.process(tmp_path / f"unsafe-{nth}")
        with monkeypatch.context() as patch:
            patch.setattr(sys.modules[Journal.__module__], "os", UnsafeSystem(nth))
            story = process.run()
        assert_failed(process, story, why=os.strerror(errno.EIO))
        assert nth - 2 == len(_synced(process.journal.entries))
        run.assert_resumes(CODING.process(process.folder))


# -- a watch on a full disk waits for room, and continues


class Longer(WatchProcess):
    """A process that takes a minute more than otherwise."""

    lasts: ClassVar[float] = WatchProcess.lasts + 65.0


@pytest.mark.real_agent
def test_a_watch(whole: Whole, tmp_path: Path) -> None:
    """It waits for a minute wherever it stands, repeats no finished session, and ends the same."""
    run = whole("watch")
    entries = sum(len(journal.entries) for journal in run.process.journals)
    with no_leaks():
        for nth in (1, 2, 9, 20, entries // 2, entries - 5):
            process = Longer(tmp_path / f"full-{nth}", run.scenario.turns)
            process.prepare()
            with Disk(nth, written=0.5, once=True).used():
                story = process.run()
            (waited,) = story.of(WatchDiskFull)
            assert (60.0, True) == (waited.retry_in, "No space left" in waited.message)
            assert [] == list(process.workspace.backlog.iterdir())
            assert run.end == process.end(waits=WATCH.waits)
            process.assert_released()


def test_until_there_is_room() -> None:
    """It looks again each minute."""
    t = Marbles(error=no_room(), F=WatchDiskFull, a=1)
    full = t.cold("#")
    watch = one_by_one([full, full, t.cold("a-|")]).pipe(waits_for_room())
    t.check(watch, "F 59s F 59s a-|")


@pytest.mark.parametrize(
    "error", [ProcessFailed("git", 1, "no"), StorageError("write", "read-only")]
)
def test_other_errors(error: CugginoError) -> None:
    """Another error ends the watch at once."""
    t = Marbles(error=error, a=1)
    t.check(t.cold("a#").pipe(waits_for_room()), "a#")


def test_interrupted_while_it_waits() -> None:
    """An interruption ends the pause."""
    t = Marbles(error=no_room(), x=1)
    watch = t.cold("#").pipe(waits_for_room(t.hot("-----x")))
    story: Story[object] = Story(t.record(watch))
    assert (5.0, Interrupted) == (story.ended_at, type(story.error))
