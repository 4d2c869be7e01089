"""Following runs of other processes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from reactivex.subject import Subject

import cuggino
from cuggino import events as ev
from cuggino.runs import JournalNews, RecordedRun, Runs, RunState, RunTail, follow, project_status
from cuggino.storage import Workspace
from cuggino.storage.journal import Entry, Journal, JournalTail
from cuggino.testing import VirtualClock
from tests.git_project import isolate_git
from tests.loops.slot_project import SlotProject
from tests.screen.test_slot_rows import printed
from tests.web.journals import AT

ONE, TWO, THREE, FOUR = (f"0193b2c{n}-0000-7000-8000-000000000000" for n in "1234")
BEGIN = ev.IterationStart(iteration=1, max_iterations=2)
END = ev.RunEnded(state="approved")


class Followed:
    """A journal that is written and followed in virtual time."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.workspace = Workspace(project)
        self.clock = VirtualClock()
        self.seen: list[tuple[float, str]] = []
        self.is_alive = True
        self.changes: Subject[object] = Subject()
        self.at_first: Callable[[], None] = lambda: None
        self._journals: list[Journal] = []
        self.journal = self.run(ONE)

    def run(
        self,
        run_id: str,
        *,
        kind: str = "run",
        item: str | None = None,
        options: dict[str, int] | None = None,
    ) -> Journal:
        started = ev.RunStarted.model_validate(
            {
                "run_id": run_id,
                "kind": kind,
                "command": "cuggino",
                "item": item,
                "options": options or {},
            }
        )
        journal = Journal.create(self.workspace.journal, started, at=self.now(), sync=False)
        self._journals.append(journal)
        return journal

    def close(self) -> None:
        for journal in self._journals:
            journal.close()

    def now(self) -> datetime:
        return AT + timedelta(seconds=self.clock.elapsed)

    def write(self, *events: ev.Event, to: Journal | None = None, stage: str | None = None) -> None:
        for event in events:
            (to or self.journal).append(event, at=self.now(), stage=stage)

    def at(self, second: float, *events: ev.Event, alive: bool | None = None) -> None:
        """Write events at this time; from then on the process lives or not."""

        def act(*_: object) -> None:
            self.write(*events)
            self.is_alive = self.is_alive if alive is None else alive

        self.clock.schedule_relative(second, act)

    def follow(self, journal: Journal | None = None) -> list[tuple[float, str]]:
        """Return the tags of the entries emitted, with their times, and the end."""
        entries = follow(
            self.project,
            (journal or self.journal).path,
            period=1,
            changes=lambda _folder: self.changes,
            is_worked_on=lambda _: self.is_alive,
            on_lost=lambda: self._see("lost"),
        )
        listening = entries.subscribe(
            lambda entry: self._see(entry.event.tag),
            lambda error: self._see(type(error).__name__),
            lambda: self._see("end"),
            scheduler=self.clock,
        )
        self.clock.schedule_relative(20, lambda *_: listening.dispose())
        self.clock.start()
        return self.seen

    def _see(self, what: str) -> None:
        if not self.seen:
            self.at_first()
        self.seen.append((self.clock.elapsed, what))


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Followed]:
    followed = Followed(tmp_path)
    yield followed
    followed.close()


def test_replays_then_follows(run: Followed) -> None:
    """Existing entries come at once, the rest within a period, and the end completes."""
    run.at(2.5, BEGIN)
    run.at(4.5, ev.LoopApproved(iteration=1), END)
    assert [
        (0, "RunStarted"),
        (3, "IterationStart"),
        (5, "LoopApproved"),
        (5, "RunEnded"),
        (5, "end"),
    ] == run.follow()


def test_changes_of_the_folder_are_read_at_once(run: Followed) -> None:
    """Entries come when the folder changes, not at the next poll, and nothing after the end."""
    run.at(2.5, BEGIN)
    run.at(4.5, ev.LoopApproved(iteration=1), END)
    for second in (2.6, 4.6):
        run.clock.schedule_relative(second, lambda *_: run.changes.on_next(None))
    assert [
        (0, "RunStarted"),
        (2.6, "IterationStart"),
        (4.6, "LoopApproved"),
        (4.6, "RunEnded"),
        (4.6, "end"),
    ] == run.follow()
    assert [] == run.changes.observers


def test_journal_that_is_removed_between_polls(run: Followed) -> None:
    """A change of the folder shows that the journal is gone."""

    def remove(*_: object) -> None:
        (run.workspace.journal / f"{ONE}.jsonl").unlink()
        run.changes.on_next(None)

    run.clock.schedule_relative(2.5, remove)
    assert [(0, "RunStarted"), (2.5, "StorageError")] == run.follow()
    assert [] == run.changes.observers


def test_a_kill_and_a_resumption(run: Followed) -> None:
    """After a kill it waits for the process that resumes the run."""
    run.at(2.5, BEGIN, alive=False)
    run.at(5.5, ev.RunContinued(), alive=True)
    run.at(7.5, alive=False)
    run.at(9.5, ev.RunContinued(), END)
    assert [
        (0, "RunStarted"),
        (3, "IterationStart"),
        (3, "lost"),
        (6, "RunContinued"),
        (8, "lost"),
        (10, "RunContinued"),
        (10, "RunEnded"),
        (10, "end"),
    ] == run.follow()


def test_a_kill_while_the_beginning_is_shown(run: Followed) -> None:
    """A process that ends while a slow subscriber takes its first entries was at work."""
    run.at_first = lambda: setattr(run, "is_alive", False)
    run.at(5.5, ev.RunContinued(), END, alive=True)
    assert [
        (0, "RunStarted"),
        (0, "lost"),
        (6, "RunContinued"),
        (6, "RunEnded"),
        (6, "end"),
    ] == run.follow()


def test_a_run_that_was_killed_before(run: Followed) -> None:
    """A run that no process works on is shown as it is."""
    run.is_alive = False
    run.write(BEGIN)
    assert [(0, "RunStarted"), (0, "IterationStart"), (0, "end")] == run.follow()


def test_a_removed_journal(run: Followed) -> None:
    """A journal that is removed ends it with an error."""
    run.clock.schedule_relative(2.5, lambda *_: run.journal.path.unlink())
    assert [(0, "RunStarted"), (3, "StorageError")] == run.follow()


def test_a_broken_line(run: Followed) -> None:
    """Entries before a broken line are shown, then its error."""
    run.write(BEGIN)
    with run.journal.path.open("a") as file:
        file.write('{"v":2,"seq":3}\n')
    assert [(0, "RunStarted"), (0, "IterationStart"), (0, "StorageError")] == run.follow()


def test_it_is_left(run: Followed) -> None:
    """Disposal ends the looking."""
    run.at(25, BEGIN)
    assert [(0, "RunStarted")] == run.follow()
    assert [(0, "RunStarted")] == run.seen


def test_a_watch_with_its_items(run: Followed) -> None:
    """The runs of items come in the order of time, without what the watch repeats of them."""
    watch = run.run(TWO, kind="watch")
    done = ev.LoopApproved(iteration=1)

    def work(*_: object) -> None:
        run.write(ev.WatchProcessingItem(filename="a.md"), to=watch)
        item = run.run(THREE, item="a.md x")
        run.write(BEGIN, done, END, to=item)
        run.write(done, to=watch, stage="item")

    run.clock.schedule_relative(2.5, work)
    run.clock.schedule_relative(
        3.5, lambda *_: run.write(ev.WatchItemCompleted(filename="a.md"), END, to=watch)
    )
    found = run.follow(watch)
    assert [
        "RunStarted",
        "WatchProcessingItem",
        "RunStarted",
        "IterationStart",
        "LoopApproved",
        "RunEnded",
        "WatchItemCompleted",
        "RunEnded",
        "end",
    ] == [tag for _, tag in found]
    assert [0.0, 3.0, 4.0] == sorted({at for at, _ in found})


def test_an_item_that_begins_in_mid_look(run: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier entries of the watch precede those of its item, even between two looks."""
    watch = run.run(TWO, kind="watch")
    tail = RunTail(watch.path)
    assert ["RunStarted"] == [entry.event.tag for entry in tail.read()]
    read, pending = JournalTail.read, [1]

    def look(journal: JournalTail, **options: int) -> list[Entry]:
        found = read(journal, **options)
        if pending and journal.path == watch.path:
            pending.clear()
            run.clock.advance_to(1.0)
            run.write(ev.WatchProcessingItem(filename="a.md"), to=watch)
            run.clock.advance_to(2.0)
            run.write(BEGIN, to=run.run(THREE, item="a.md x"))
        return found

    monkeypatch.setattr(JournalTail, "read", look)
    run.write(ev.WatchItemCompleted(filename="b.md"), to=watch)
    tags = [entry.event.tag for entry in tail.read()]
    begun = ["WatchProcessingItem", "RunStarted", "IterationStart"]
    assert ["WatchItemCompleted", *begun] == tags


def test_a_watch_without_the_items_of_the_next(run: Followed) -> None:
    """Later items of another watch are not shown."""
    watch = run.run(TWO, kind="watch")
    run.write(ev.RunEnded(state="interrupted"), to=watch)
    run.clock.advance_to(5.0)
    later = run.run(THREE, item="a.md x")
    run.write(BEGIN, to=later)
    assert ["RunStarted", "RunEnded", "end"] == [tag for _, tag in run.follow(watch)]


def test_news(run: Followed) -> None:
    """News are the entries written from now on, in old and new journals."""
    run.write(BEGIN)
    news = JournalNews(run.workspace)
    assert [] == news.read()
    run.write(END)
    run.run(TWO)
    found: list[Entry] = news.read()
    assert {"RunEnded", "RunStarted"} == {entry.event.tag for entry in found}
    assert [] == news.read()


def test_a_watch_with_slots(run: Followed) -> None:
    """The entries of items at the same time name their item, and each comes once."""
    watch = run.run(TWO, kind="watch", options={"slots": 2})
    for slot, name in enumerate(("a.md", "b.md"), 1):
        run.write(ev.WatchProcessingItem(filename=name, slot=slot), to=watch)
    one, two = run.run(THREE, item="a.md 1"), run.run(FOUR, item="b.md 1")
    ended = ev.SessionEnded(outcome="completed")
    run.write(BEGIN, to=one)
    run.write(BEGIN, ended, ev.SteerAsked(text="x", item="b.md"), to=two)
    run.write(ended.of_item("b.md"), ev.SteerAsked(text="x", item="b.md"), to=watch, stage="slots")
    check = ev.CheckCommandStarted(iteration=0, command="make", item="b.md")
    run.write(check, ev.WatchItemCompleted(filename="b.md"), to=watch, stage="slots")
    run.write(ev.SkipAsked(item="a.md"), to=watch)
    seen: list[tuple[str, str | None]] = []
    entries = follow(run.project, watch.path, is_worked_on=lambda _: False)
    entries.subscribe(lambda e: seen.append((e.event.tag, e.event.item)), scheduler=run.clock)
    run.clock.start()
    first = [one for one in seen if not (one[1] or "").startswith("b.md")]
    assert first == [
        ("RunStarted", None),
        ("WatchProcessingItem", None),
        ("WatchProcessingItem", None),
        ("WatchItemCompleted", None),
        ("SkipAsked", "a.md"),
        ("RunStarted", "a.md 1"),
        ("IterationStart", "a.md"),
    ]
    assert [one for one in seen if one not in first] == [
        ("CheckCommandStarted", "b.md"),
        ("RunStarted", "b.md 1"),
        ("IterationStart", "b.md"),
        ("SessionEnded", "b.md"),
        ("SteerAsked", "b.md"),
    ]


def test_a_watch_of_many_items(run: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each journal is looked at a few times, however many entries there are."""
    watch = run.run(TWO, kind="watch")
    for number in range(20):
        item = run.run(f"0193b2c5-{number:04}-7000-8000-000000000000", item=f"{number}.md x")
        for _ in range(20):
            run.write(BEGIN, to=item)
    looks = 0
    has_changed = JournalTail.has_changed

    def look(tail: JournalTail) -> bool:
        nonlocal looks
        looks += 1
        return has_changed(tail)

    monkeypatch.setattr(JournalTail, "has_changed", look)
    entries = list(RunTail(watch.path).read())
    assert len(entries) == 1 + 20 * 21
    assert looks <= 4 * 21


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    isolate_git(monkeypatch, tmp_path / "home")


def lasting(events: list[ev.Event]) -> Counter[str]:
    """Return the lines of the events that a journal keeps."""
    kinds = ev.PingEvent | ev.MessageDelta | ev.WatchPolling | ev.ControlEvent
    return Counter(ev.dump_event(event) for event in events if not isinstance(event, kinds))


@pytest.mark.real_agent
def test_followed_as_it_was_seen(tmp_path: Path) -> None:
    """Each event comes once, with its item; the status counts what the events say."""
    project = SlotProject(tmp_path)
    for name in "123":
        project.item(name, f"echo {name} >word{name}.txt")
    seen = project.watch()
    recorded = [run for run in Runs(project.folder).all() if isinstance(run, RecordedRun)]
    (watch,) = [run for run in recorded if run.started.kind == "watch"]
    items = sorted(run.started.item or "" for run in recorded if run is not watch)
    assert [item.partition(" ")[0] for item in items] == ["1.md", "2.md", "3.md"]
    entries = list(cuggino.iterate(follow(project.folder, watch.path)))
    followed = [entry.event for entry in entries if not ev.is_journal_event(entry.event)]
    assert lasting(followed) == lasting(seen)
    activity = RunState()
    now = datetime.now(UTC)
    stages: Counter[str] = Counter()
    for event in seen:
        activity = activity.add(event, at=now)
        slots = [one.slot for one in activity.at_work]
        assert slots in ([], [1], [2], [1, 2])
        assert [one.place for one in activity.queue].count("landing") <= 1
        stages.update(one.role for one in activity.at_work)
    assert {"preparing", "planning", "implementing", "reviewing"} == stages.keys()
    last = project_status(project.folder, at=now).last
    assert last is not None
    for one in (activity, last.activity):
        assert (one.done, len(one.items)) == (3, 0)
        assert one.cost_usd == pytest.approx(0.03)
    assert isinstance(seen[-1], ev.WatchBacklogWaiting)
    lines = printed(*seen).splitlines()
    assert any(line.startswith("[→ 1] [Check] Running: sh check.sh") for line in lines)
    calls = [line for line in lines if "▶" in line]
    assert calls
    assert all(re.match(r"\[[12] [123]\] ▶", line) for line in calls)
