"""The view of a watch on a cluster: the worker of each item, and lost workers."""

from __future__ import annotations

import pytest

from cuggino.events import WatchPlaced, WatchPlaceGone, WatchWorkers
from cuggino.report import NightReport, load_report
from cuggino.runs import RunState
from cuggino.storage.journal import list_journals, read_journal
from tests.placement.linked import ClusterProject


@pytest.mark.real_agent
def test_a_lost_worker_is_seen(project: ClusterProject) -> None:
    """Its item names it, then waits, then names the next one, in the journal as in the stream."""
    project.item("one")
    project.link.when("PlanningStart", project.link.kill)
    events = project.watch()
    first = project.link.attempts[0].placed.worker
    second = project.link.attempts[1].placed.worker
    assert first != second
    entries = next(
        journal.entries
        for journal in map(read_journal, list_journals(project.workspace.journal))
        if journal.started.kind == "watch"
    )
    kinds = WatchPlaced | WatchPlaceGone
    for told in (events, [entry.event for entry in entries]):
        assert [("WatchPlaced", first), ("WatchPlaceGone", first), ("WatchPlaced", second)] == [
            (event.tag, event.worker) for event in told if isinstance(event, kinds)
        ]
        (seen,) = [event for event in told if isinstance(event, WatchWorkers)]
        assert ("w1", "w2", "w3") == seen.joined
    watch = RunState()
    workers: list[str] = []
    for entry in entries:
        watch = watch.add(entry.event, at=entry.at)
        item = watch.of_item("one.md")
        if item is not None and item.worker not in workers[-1:]:
            workers.append(item.worker)
    assert ["", first, "", second, ""] == workers
    report = load_report(project.folder)
    assert isinstance(report, NightReport)
    assert report.slots is not None
    assert [(first, True), (second, False)] == [
        (use.worker, use.is_lost) for use in report.slots.uses
    ]
