"""The workers of a cluster as events, and the worker of each item."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from reactivex import Observable, just, throw

from cuggino.errors import ConfigError
from cuggino.events import ClusterWorker, WatchPlaced, WatchPlaceGone, WatchWorkers
from cuggino.placement.dask.values import DaskWorker
from cuggino.placement.seen import workers_seen
from cuggino.report import NightReport, load_report
from cuggino.runs import RunState
from cuggino.storage.journal import list_journals, read_journal
from cuggino.testing import Marbles
from tests.placement.linked import ClusterProject

LINK = "http://head:8787/status"


def worker(name: str, *attempts: str, claude: float = 0.0) -> DaskWorker:
    return DaskWorker(name, f"tcp://{name}", 2, {"claude": 2.0}, {"claude": claude}, attempts)


def seen(name: str, busy: int = 0, **used: float) -> ClusterWorker:
    return ClusterWorker(name=name, places=2, busy=busy, resources={"claude": 2.0}, used=used)


class Scheduler:
    """Answers each look with the next of these; the last one from then on."""

    dashboard = LINK

    def __init__(self, *answers: Sequence[DaskWorker] | Exception) -> None:
        self._answers = list(answers)
        self.looks = 0

    def workers(self) -> Observable[tuple[DaskWorker, ...]]:
        self.looks += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return throw(answer) if isinstance(answer, Exception) else just(tuple(answer))


def events(
    link: Scheduler, *, before: WatchWorkers | None = None, until: float = 59
) -> list[tuple[float, WatchWorkers]]:
    return [
        (when, event)
        for when, _, event in Marbles().record(workers_seen(link, before=before), until=until)
    ]


def test_changes_only() -> None:
    """Workers come in the order of their names, with those that joined and left."""
    link = Scheduler(
        [worker("w2"), worker("w1")],
        [worker("w1"), worker("w2")],
        [worker("w1", "a", "b", claude=1.0), worker("w2")],
        [worker("w1", "a", "b", claude=1.0), worker("w3")],
    )
    one, two, three = events(link)
    both = (seen("w1"), seen("w2"))
    assert one == (0, WatchWorkers(workers=both, joined=("w1", "w2"), dashboard=LINK))
    busy = seen("w1", 2, claude=1.0)
    assert two == (20, WatchWorkers(workers=(busy, seen("w2")), dashboard=LINK))
    assert (30, ("w3",), ("w2",)) == (three[0], three[1].joined, three[1].left)
    assert (2, 4, 6) == (three[1].free, three[1].places, link.looks)


def test_a_scheduler_that_does_not_answer() -> None:
    """There are no workers until it answers again."""
    link = Scheduler([worker("w1")], ConfigError("away"), ConfigError("away"), [worker("w1")])
    told = [(when, event.joined, event.left) for when, event in events(link)]
    assert [(0, ("w1",), ()), (10, (), ("w1",)), (30, ("w1",), ())] == told


def test_after_an_earlier_look() -> None:
    """Workers seen before are not reported again."""
    before = WatchWorkers(workers=(seen("w1"), seen("w2")), joined=("w1", "w2"), dashboard=LINK)
    assert [] == events(Scheduler([worker("w1"), worker("w2")]), before=before)
    ((when, event),) = events(Scheduler([worker("w2")]), before=before)
    assert (0, (), ("w1",), LINK) == (when, event.joined, event.left, event.dashboard)


def test_overbooked_worker() -> None:
    """A worker never has fewer than no free places."""
    assert 0 == seen("w1", 3).free


# -- the view of a watch on a cluster: the worker of each item, and lost workers


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
