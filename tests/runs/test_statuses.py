"""Following the status of several projects, in virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
from reactivex.subject import Subject

from cuggino import events as ev
from cuggino.runs import ProjectStatus, follow_statuses, project_status
from cuggino.storage import Workspace
from cuggino.storage.journal import Journal
from cuggino.testing import VirtualClock

ONE = "0193b2c1-0000-7000-8000-000000000000"
BEGIN = ev.IterationStart(iteration=1, max_iterations=2)


class Projects:
    """Projects that are followed in virtual time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: list[Path] = []
        self.clock = VirtualClock()
        self.changes: dict[Path, Subject[object]] = {}
        self.seen: list[tuple[float, tuple[ProjectStatus, ...]]] = []
        self.held = ExitStack()

    def make(self, name: str) -> Workspace:
        workspace = Workspace(self.folder / name)
        workspace.root.mkdir()
        workspace.open()
        self.known.append(workspace.root)
        return workspace

    def work(self, workspace: Workspace) -> Journal:
        """Let this process work in the project."""
        self.held.enter_context(workspace.lock(command="cuggino run"))
        started = ev.RunStarted(run_id=ONE, kind="run", command="cuggino run", focus="it")
        journal = Journal.create(workspace.journal, started, at=datetime.now(UTC), sync=False)
        self.held.callback(journal.close)
        return journal

    def at(self, second: float, act: object) -> None:
        assert callable(act)
        self.clock.schedule_relative(second, lambda *_: act())

    def follow(self, seconds: float) -> None:
        def watch(journal: Path) -> Subject[object]:
            return self.changes.setdefault(journal.parent.parent, Subject())

        statuses = follow_statuses(lambda: self.known, period=1, changes=watch)
        listening = statuses.subscribe(
            lambda found: self.seen.append((self.clock.elapsed, found)), scheduler=self.clock
        )
        self.at(seconds, listening.dispose)
        self.clock.start()

    def write(self, journal: Journal, *events: ev.Event) -> None:
        for event in events:
            journal.append(event, at=datetime.now(UTC))


@pytest.fixture
def projects(tmp_path: Path) -> Iterator[Projects]:
    projects = Projects(tmp_path)
    with projects.held:
        yield projects


def test_a_change_of_a_journal_is_seen_at_once(projects: Projects) -> None:
    """What a run appends is seen when its folder changes, many entries in one look."""
    shop = projects.make("shop")
    journal = projects.work(shop)

    def append() -> None:
        projects.write(journal, BEGIN, ev.PlanningStart(iteration=1))
        for _ in range(3):
            projects.changes[shop.root].on_next(None)

    projects.at(0.5, append)
    projects.follow(0.9)
    assert [0, 0.54] == [time for time, _ in projects.seen]
    roles = [found[0].activity.role for _, found in projects.seen if found[0].activity]
    assert ["", "planning"] == roles
    assert [] == projects.changes[shop.root].observers


def test_a_journal_is_folded_as_a_status_folds_it(projects: Projects) -> None:
    """The state that was folded in parts equals that of one reading of the whole journal."""
    shop = projects.make("shop")
    journal = projects.work(shop)
    events = [
        BEGIN,
        ev.PlanningStart(iteration=1),
        ev.SessionEnded(outcome="completed", cost_usd=0.5),
        ev.PauseAsked(),
        ev.ImplementingStart(iteration=1),
        ev.ToolCall(name="Bash", input={"command": "make"}, id="t"),
    ]
    for second, event in enumerate(events):
        projects.at(second + 0.5, lambda event=event: projects.write(journal, event))
    projects.follow(len(events) + 0.5)
    (last,) = projects.seen[-1][1]
    assert project_status(shop.root, at=last.at) == last
    assert last.activity is not None and "make" == getattr(last.activity.tool, "target", "")


def test_journal_that_begins_anew_is_folded_anew(projects: Projects) -> None:
    """A journal that was replaced by a shorter one leaves nothing of the earlier one."""
    shop = projects.make("shop")
    journal = projects.work(shop)
    lines = journal.path.read_bytes()
    projects.write(journal, BEGIN, ev.PlanningStart(iteration=1))
    projects.at(0.5, lambda: journal.path.write_bytes(lines))
    projects.follow(1.5)
    (last,) = projects.seen[-1][1]
    assert last.activity is not None
    assert ("", 0) == (last.activity.role, last.activity.iteration)


def test_projects_come_and_go(projects: Projects) -> None:
    """Each look asks for the projects again; a project without a run is not watched any more."""
    shop = projects.make("shop")
    journal = projects.work(shop)

    def end() -> None:
        projects.write(journal, ev.RunEnded(state="approved"))
        projects.held.close()

    projects.at(0.5, lambda: projects.make("blog"))
    projects.at(1.5, end)
    projects.at(2.5, lambda: projects.known.reverse())
    projects.at(3.5, lambda: projects.known.pop())
    projects.follow(4.5)
    named = [
        [(one.folder.name, one.owner is not None) for one in found] for _, found in projects.seen
    ]
    assert [
        [("shop", True)],
        [("shop", True), ("blog", False)],
        [("shop", False), ("blog", False)],
        [("blog", False), ("shop", False)],
        [("blog", False)],
    ] == named
    assert [] == projects.changes[shop.root].observers


def test_project_that_cannot_be_read(projects: Projects) -> None:
    """A broken journal is a problem of its project, until it is good again."""
    shop = projects.make("shop")
    journal = projects.work(shop)
    good = journal.path.read_bytes()
    projects.at(0.5, lambda: journal.path.write_bytes(good + b"broken\n"))
    projects.at(1.5, lambda: journal.path.write_bytes(good))
    projects.follow(2.5)
    assert [False, True, False] == [bool(found[0].problem) for _, found in projects.seen]
