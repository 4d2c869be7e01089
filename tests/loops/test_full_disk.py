"""A watch on a full disk waits for room, and continues."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from cuggino.errors import CugginoError, Interrupted, ProcessFailed, StorageError
from cuggino.events import WatchDiskFull
from cuggino.loops.watch.full_disk import waits_for_room
from cuggino.testing import Marbles, Story, no_leaks
from tests.loops.crashes import WATCH, Uninterrupted
from tests.loops.durable_runs import WatchProcess
from tests.loops.full_disk import no_room
from tests.loops.test_journal_full import Disk
from tests.test_drawings import one_by_one

Whole = Callable[[str], Uninterrupted]


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
