"""The journal of a deliverables run that cannot be written, at each of its entries in turn."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from cuggino.errors import StorageError
from cuggino.events import DeliverEnded
from cuggino.storage import list_journals
from cuggino.testing import no_leaks
from tests.loops.delivered_runs import Process, Turns, Undisturbed, works
from tests.loops.delivered_stories import assert_resumed
from tests.loops.test_journal_full import Disk

SHORT: Turns = {
    "initializer": [works({"a": "pending"})],
    "coding": [works({"a": "passed"})],
    "verify": [works(verifies="a")],
}


@pytest.mark.parametrize(("taken", "once"), [(0.0, False), (0.5, True), (1.0, True)])
def test_at_every_append(
    taken: float, once: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is one error, behind which nothing runs; the run then goes on to the same end."""
    story = Undisturbed(tmp_path, SHORT, monkeypatch)
    with no_leaks():
        for nth in count(1):
            process = Process(tmp_path / f"full-{nth}", SHORT)
            disk = Disk(nth, taken=taken, once=once)
            with disk.used(monkeypatch):
                seen = process.run()
            if not disk.has_failed:
                break
            error = seen.error
            assert isinstance(error, StorageError)
            assert "write journal" == error.operation
            assert ["next"] * (len(seen.seen) - 1) + ["error"] == [k for _, k, _ in seen.seen]
            begun = list(process.agent.begun)
            process.t.scheduler.advance_to(2e6)
            assert begun == process.agent.begun  # a long time after it
            process.assert_released()
            # Before the first entry there is no run, and nothing of one is left.
            assert (nth == 1) == ([] == list_journals(process.workspace.journal))
            assert (nth == 1) == ([] == list(process.workspace.wip.iterdir()))
            # The last two entries are the end that was told, and that of the run.
            assert bool(seen.of(DeliverEnded)) == (nth == len(story.journal.entries))
            assert_resumed(story, Process(process.folder, SHORT))
    assert len(story.journal.entries) + 1 == nth
    story.assert_equals(process)
