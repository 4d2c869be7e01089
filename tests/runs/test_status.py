"""The status of projects: what runs, what ran last, what waits, and following it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from reactivex.subject import Subject

from cuggino import events as ev
from cuggino.runs import (
    ProjectStatus,
    RecordedRun,
    Runs,
    follow_statuses,
    project_status,
    status_json,
    waiting_runs,
)
from cuggino.storage import Backlog, Origins, Workspace
from cuggino.storage.journal import Journal
from cuggino.testing import VirtualClock

NOW = datetime.now(UTC)
ONE, TWO, THREE = (f"0193b2c{n}-0000-7000-8000-000000000000" for n in "123")
WORK: list[ev.Event] = [
    ev.IterationStart(iteration=1, max_iterations=3),
    ev.PlanningStart(iteration=1),
    ev.SessionEnded(outcome="completed", cost_usd=0.5),
    ev.ImplementingStart(iteration=1),
    ev.ToolCall(name="Bash", input={"command": "make"}, id="t"),
]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    workspace = Workspace(tmp_path)
    workspace.open()
    return workspace


@contextmanager
def working(workspace: Workspace, *events: ev.Event, kind: str = "run") -> Iterator[Journal]:
    """Hold the workspace as a run that has recorded these events."""
    with workspace.lock(command=f"cuggino {kind}"):
        journal = recorded(workspace, ONE, *events, kind=kind)
        yield journal
        journal.close()


def recorded(
    workspace: Workspace, run_id: str, *events: ev.Event, kind: str = "run", item: str | None = None
) -> Journal:
    started = ev.RunStarted.model_validate(
        {"run_id": run_id, "kind": kind, "command": "c", "focus": "the page", "item": item}
    )
    journal = Journal.create(workspace.journal, started, at=datetime.now(UTC), sync=False)
    for event in events:
        journal.append(event, at=datetime.now(UTC))
    return journal


def status(workspace: Workspace) -> ProjectStatus:
    found = project_status(workspace.root, at=datetime.now(UTC))
    assert found.folder == workspace.root
    json.dumps(status_json(found))
    return found


def test_no_workspace(tmp_path: Path) -> None:
    """A folder without anything is idle, and stays empty."""
    found = project_status(tmp_path, at=NOW)
    assert ("idle", None, None, ()) == (found.state, found.owner, found.last, found.waiting)
    assert [] == list(tmp_path.iterdir())


def test_a_run_at_work(workspace: Workspace) -> None:
    """A run is shown with stage, tool and cost."""
    with working(workspace, *WORK):
        found = status(workspace)
    assert "running" == found.state
    assert found.owner is not None
    assert os.getpid() == found.owner.pid
    activity = found.activity
    assert activity is not None
    assert activity.tool is not None
    assert ("implementing", "make", 0.5) == (
        activity.role,
        activity.tool.target,
        activity.cost_usd,
    )


def test_a_silent_run(workspace: Workspace) -> None:
    """The list of runs counts the time since the last event of a run at work, as the status does.

    The time of a killed run ends with its last event.
    """
    later = datetime.now(UTC) + timedelta(hours=1)
    with working(workspace, *WORK):
        (run,) = Runs(workspace.root, at=later).all()
        activity = project_status(workspace.root, at=later).activity
        assert isinstance(run, RecordedRun)
        assert activity is not None
        assert pytest.approx(activity.elapsed(later)) == run.totals.duration
    (run,) = Runs(workspace.root, at=later).all()
    assert isinstance(run, RecordedRun)
    assert run.state == "killed"
    assert run.totals.duration < 3600


def test_a_watch_at_work(workspace: Workspace) -> None:
    """A watch has the stage of its item's run, and the cost of all items."""
    begun = ev.WatchProcessingItem(filename="b.md", title="B", position=2, total=5)
    cost = ev.SessionEnded(outcome="completed", cost_usd=2.0)
    with working(workspace, begun, cost, kind="watch"):
        item = recorded(workspace, TWO, *WORK, item="b.md x")
        activity = status(workspace).activity
        item.close()
    assert activity is not None
    assert ("watch", "B", 2, 5) == (
        activity.kind,
        activity.title,
        activity.position,
        activity.total,
    )
    assert ("implementing", 2.0, ONE) == (activity.role, activity.cost_usd, activity.run_id)


@pytest.mark.parametrize(
    ("events", "state"),
    [
        ([*WORK, ev.PauseAsked()], "running"),
        ([*WORK, ev.StopAsked()], "running"),
        ([*WORK, ev.PauseAsked(), ev.RunPaused()], "waiting"),
        ([ev.WatchBacklogWaiting()], "idle"),
        (
            [
                ev.WatchProcessingItem(filename="b.md"),
                ev.WatchItemRetry(
                    filename="b.md",
                    message="not logged in",
                    attempt=1,
                    max_attempts=3,
                    retry_in=60,
                    counted=False,
                    login=True,
                ),
            ],
            "waiting",
        ),
    ],
)
def test_states(workspace: Workspace, events: list[ev.Event], state: str) -> None:
    """Only what works counts as running."""
    kind = "watch" if events[0].tag.startswith("Watch") else "run"
    with working(workspace, *events, kind=kind):
        assert state == status(workspace).state


def test_a_watch_that_asks(workspace: Workspace) -> None:
    """A spec issue waits for a person while the watch does; not while it works."""
    workspace.write_spec_issue("# Which beta?\n")
    with working(workspace, ev.WatchSpecIssueWaiting(), kind="watch") as journal:
        found = status(workspace)
        assert ("waiting", ["Which beta?"]) == (found.state, [one.title for one in found.waiting])
        journal.append(ev.WatchProcessingItem(filename="b.md"), at=datetime.now(UTC))
        assert "running" == status(workspace).state


def test_a_process_without_a_journal(workspace: Workspace) -> None:
    """A run that writes no journal works, and nothing more is known."""
    recorded(workspace, TWO, *WORK, ev.RunEnded(state="approved")).close()
    with workspace.lock(command="cuggino run"):
        found = status(workspace)
    assert ("running", None, None) == (found.state, found.activity, found.last)


def test_what_waits_while_nothing_runs(workspace: Workspace) -> None:
    """Spec issues come first, then parked items with their reasons."""
    (workspace.backlog / "a.md").write_text("# A\n")
    Backlog(workspace).park("a.md", "it failed")
    workspace.write_spec_issue("# Which beta?\n")
    found = status(workspace)
    assert "waiting" == found.state
    assert [("spec-issue", "Which beta?"), ("parked", "it failed")] == [
        (one.kind, one.title) for one in found.waiting
    ]


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_run_with_a_question(workspace: Workspace, is_killed: bool) -> None:
    """The list of runs names what a waiting run asks, until it is answered."""
    issue = workspace.write_spec_issue("# Which beta?\n")
    until = ev.PersonAnswers(question="Which beta?", issue=issue)
    recorded(workspace, TWO, ev.RunEnded(state="approved")).close()
    with working(workspace, ev.WaitingStarted(until=until, since=NOW)):
        if not is_killed:
            assert {ONE: "Which beta?"} == waits(workspace)
    if is_killed:
        assert {ONE: "Which beta?"} == waits(workspace)
    (workspace.spec_issues / issue).unlink()
    assert {} == waits(workspace)


def waits(workspace: Workspace) -> dict[str, str]:
    """Return what waits for the user by the id of its run."""
    runs = [run for run in Runs(workspace.root).all() if isinstance(run, RecordedRun)]
    return {run: one.title for run, one in waiting_runs(workspace.root, runs).items()}


def test_a_killed_run(workspace: Workspace) -> None:
    """A killed run is named with the command that resumes it, torn line or not."""
    journal = recorded(workspace, ONE, *WORK)
    journal.close()
    with journal.path.open("a") as file:
        file.write('{"v":1,"seq":7,"at":"20')
    found = status(workspace)
    assert found.last is not None
    assert ("idle", "killed", "cuggino run --resume 0193b2c1") == (
        found.state,
        found.last.state,
        found.last.resume,
    )
    assert 0.5 == found.last.activity.cost_usd


def test_a_killed_watch(workspace: Workspace) -> None:
    """Of a watch and its item, the watch is the one to resume."""
    watch = recorded(workspace, ONE, ev.WatchProcessingItem(filename="b.md"), kind="watch")
    recorded(workspace, TWO, *WORK, item="b.md x").close()
    watch.close()
    last = status(workspace).last
    assert last is not None
    assert (ONE, "killed", "cuggino watch") == (last.run_id, last.state, last.resume)


def test_a_run_that_has_ended(workspace: Workspace) -> None:
    """The last run is shown as it ended."""
    recorded(workspace, ONE, ev.LoopApproved(iteration=1), ev.RunEnded(state="approved")).close()
    os.utime(workspace.journal / f"{ONE}.jsonl", (1, 1))
    recorded(workspace, TWO, ev.RunEnded(state="quota", message="limit")).close()
    last = status(workspace).last
    assert last is not None
    assert (TWO, "quota", "limit", "cuggino run --resume 0193b2c2") == (
        last.run_id,
        last.state,
        last.message,
        last.resume,
    )


def test_usage_windows(workspace: Workspace) -> None:
    """The windows that are not reset are shown while a run works, and after it."""
    later = datetime.now(UTC) + timedelta(hours=1)
    reports = [
        ev.QuotaUsed(window=window, used=0.62, agent="claude", resets_at=resets_at)
        for window, resets_at in (("five_hour", later), ("seven_day", NOW - timedelta(hours=1)))
    ]
    shown = [
        {"agent": "claude", "window": "five_hour", "used": 0.62, "resets_at": later.isoformat()}
    ]
    with working(workspace, *WORK, *reports):
        assert shown == status_json(status(workspace))["run"]["windows"]
    assert shown == status_json(status(workspace))["last"]["windows"]


def test_spending(workspace: Workspace) -> None:
    """Money, tokens and their limits are the same while a run works, and after it."""
    names = ("cost_usd", "cost_estimated", "tokens", "count_tokens", "budget", "max_tokens")

    def spent(of: str) -> list[object]:
        shown = status_json(status(workspace))[of]
        return [shown[name] for name in names]

    paid = ev.SessionEnded(outcome="completed", cost_usd=0.5, usage=ev.Usage(output_tokens=7))
    with working(workspace, *WORK, paid):
        during = spent("run")
    assert during == spent("last")
    assert 7 == during[2]


@pytest.mark.parametrize("content", ["", "x\n", '{"v":2,"seq":1}\n', '{"v":1,"seq":1'])
def test_foreign_journals(workspace: Workspace, content: str) -> None:
    """A journal that cannot be read is named with the reason."""
    workspace.journal.mkdir()
    (workspace.journal / f"{ONE}.jsonl").write_text(content)
    last = status(workspace).last
    assert last is not None
    assert (ONE, "unreadable") == (last.run_id, last.state)
    assert last.message
    with workspace.lock(command="cuggino run"):
        assert "running" == status(workspace).state


def test_the_owner_of_a_killed_process(workspace: Workspace) -> None:
    """The file of a process that was killed counts for nothing."""
    since = (NOW - timedelta(hours=1)).isoformat()
    (workspace.folder / "lock.json").write_text(json.dumps({"pid": 1, "since": since}))
    assert "idle" == status(workspace).state


def test_a_watch_with_slots(workspace: Workspace) -> None:
    """Each item has the stage of its run, and the watch itself has none."""
    begun = [
        ev.WatchProcessingItem(filename=name, position=place, total=5, slot=place)
        for place, name in enumerate(("a.md", "b.md"), 1)
    ]
    on_cluster = [
        ev.WatchWorkers(
            workers=(ev.ClusterWorker(name="w1", places=2, busy=1),), dashboard="http://h"
        ),
        ev.WatchPlaced(filename="a.md", slot=1, worker="w0"),
        ev.WatchPlaceGone(filename="a.md", slot=1, worker="w0", reason="killed"),
        ev.WatchPlaced(filename="a.md", slot=1, worker="w1"),
    ]
    Origins(workspace).change("b.md", source="github", id="7", url="https://forge/7")
    with working(workspace, *begun, *on_cluster, kind="watch"):
        items = [
            recorded(workspace, TWO, *WORK, item="b.md x"),
            recorded(workspace, THREE, ev.PlanningStart(iteration=1), item="a.md x"),
        ]
        found = status(workspace)
        for item in items:
            item.close()
    assert found.activity is not None
    told = status_json(found)["run"]
    assert (told["stage"], told["item"], told["state"]) == (None, None, "working")
    assert [(one["slot"], one["item"], one["stage"]) for one in told["items"]] == [
        (1, "a.md", "planning"),
        (2, "b.md", "implementing"),
    ]
    assert told["items"][1]["tool"]["target"] == "make"
    assert [None, "https://forge/7"] == [one["issue"] for one in told["items"]]
    assert [("w1", ["w0"]), (None, [])] == [
        (one["worker"], one["lost_workers"]) for one in told["items"]
    ]
    (worker,) = told["workers"]
    assert ("w1", 1, "http://h") == (worker["name"], worker["free"], told["dashboard"])
    assert (told["items"][0]["tool"], told["items"][0]["place"]) == (None, "slot")


FIRST = "0193b2c1-0000-7000-8000-000000000000"
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
        started = ev.RunStarted(run_id=FIRST, kind="run", command="cuggino run", focus="it")
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
