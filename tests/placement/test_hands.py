"""A run with several hands whose tasks are done by workers: they land as from slots, once each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from reactivex import operators as ops
from reactivex.subject import Subject

import cuggino
from cuggino import events as ev
from cuggino.agents.base import SpawnOptions
from cuggino.errors import ConfigError, Interrupted
from cuggino.placement import on_cluster
from cuggino.storage import list_journals
from cuggino.testing import Do, Item, Say, Wait, Write
from tests.placement.agent import PLAYS, SESSIONS, sessions
from tests.placement.linked import ClusterProject

TASKS = ("task-1.1", "task-1.2", "task-1.3")


def plans(_: SpawnOptions) -> Sequence[Item]:
    """Plan three tasks that can be done at the same time."""
    text = "# Plan\n" + "".join(f"\n## Task {n}: write {n}\n\nafter: none\n" for n in (1, 2, 3))
    return [Write("$CUGGINO_PLAN_FILE", text), Say("<PLAN_COMPLETE>Planned.</PLAN_COMPLETE>")]


@pytest.fixture
def words(project: ClusterProject, monkeypatch: pytest.MonkeyPatch) -> ClusterProject:
    """The project with two hands, and workers that it is linked to."""
    monkeypatch.setattr(on_cluster, "DaskLink", lambda *_args, **_given: project.link)
    project.config = project.config.model_copy(update={"hands": 2})
    PLAYS["", "planning"] = [plans]
    return project


def is_done(words: ClusterProject, events: Sequence[ev.Event]) -> None:
    """Check that all tasks have landed, and that nothing is left."""
    assert isinstance(events[-1], ev.LoopApproved)
    subjects = words.git.git("log", "--reverse", "--format=%s", "main").splitlines()
    assert ["Begin", *(f"Do {name}" for name in TASKS)] == sorted(subjects)
    assert {f"{name}.txt" for name in TASKS} < set(words.git.committed())
    assert "" == words.git.git("status", "--porcelain")
    assert [] == words.shared_refs()
    assert 1 == len(list_journals(words.workspace.journal))
    assert [] == list(words.workspace.wip.iterdir())


def test_tasks_on_workers(words: ClusterProject) -> None:
    """Each is done once by a worker, planned and reviewed here, and nothing is left behind."""
    events = list(cuggino.iterate(words.run()))
    is_done(words, events)
    assert {name: ["implementing"] for name in TASKS} == {name: sessions(name) for name in TASKS}
    assert ["planning", "reviewing"] == sessions("")
    at_worker = {one.item for one in SESSIONS if one.cwd.is_relative_to(words.place / "workers")}
    assert set(TASKS) == at_worker
    placed = [
        (event.filename, event.worker) for event in events if isinstance(event, ev.WatchPlaced)
    ]
    assert sorted(TASKS) == sorted(name for name, _ in placed)
    assert all(worker in words.link.names for _, worker in placed)
    (seen,) = (event for event in events if isinstance(event, ev.WatchWorkers))
    assert ("w1", "w2", "w3") == seen.joined


@pytest.mark.real_agent
def test_a_lost_worker(words: ClusterProject) -> None:
    """Its task is placed again; the others are not disturbed."""

    def lose(_: SpawnOptions) -> Sequence[Item]:
        kill = Do(lambda _: words.link.kill(words.link.of("task-1.2")[-1]))
        return [Write("lost.txt", "lost\n"), kill, Wait(60)]

    PLAYS["task-1.2", "implementing"] = [lose]
    events = list(cuggino.iterate(words.run()))
    is_done(words, events)
    (gone,) = (event for event in events if isinstance(event, ev.WatchPlaceGone))
    assert ("task-1.2", "it was killed") == (gone.filename, gone.reason)
    assert Counter({"task-1.1": 1, "task-1.2": 2, "task-1.3": 1}) == Counter(
        one.item for one in words.link.attempts
    )


def ended_at(words: ClusterProject, is_end: Callable[[ev.Event], bool], *, detach: bool) -> None:
    """Run until such an event, and interrupt the run there."""

    def look(event: ev.Event) -> None:
        if is_end(event):
            words.interrupt.on_next("stop")

    with pytest.raises(Interrupted):
        list(cuggino.iterate(words.run(detach=detach).pipe(ops.do_action(look))))
    assert "1" == words.git.git("rev-list", "--count", "main").strip()


@pytest.mark.real_agent
@pytest.mark.parametrize("tag", ["WatchCandidate", "WatchLanded", "HandsEnded"])
def test_a_resumed_run_pays_for_no_task_twice(words: ClusterProject, tag: str) -> None:
    """What ended on workers is not done again; the attempts at work have ended with the run."""
    ended_at(words, lambda event: event.tag == tag, detach=False)
    assert all(one.is_over for one in words.link.attempts)
    done = {one.item for one in words.link.attempts if '"WatchCandidate"' in "".join(one.said)}
    assert done
    is_done(words, list(cuggino.iterate(words.run(resume=True))))
    assert {name: ["implementing"] for name in done} == {name: sessions(name) for name in done}


@pytest.mark.real_agent
def test_a_question(words: ClusterProject) -> None:
    """It waits for a person in the project, when the other tasks have landed in the clone."""
    PLAYS["task-1.1", "implementing"] = [lambda _: [Say("<SPEC_ISSUE>How?</SPEC_ISSUE>")]]
    last = list(cuggino.iterate(words.run()))[-1]
    assert isinstance(last, ev.LoopSpecIssue)
    assert [last.filename] == words.workspace.spec_issue_names()


@pytest.mark.real_agent
def test_commands(words: ClusterProject) -> None:
    """A message reaches the agent of its task alone, and a skipped task ends on its worker."""
    commands: Subject[ev.ControlEvent] = Subject()
    words.control = commands

    def look(event: ev.Event) -> None:
        match event:
            case ev.ImplementingStart(item="task-1.1"):
                commands.on_next(ev.SkipAsked(item="task-1.1"))
            case ev.ImplementingStart(item="task-1.2"):
                commands.on_next(ev.PauseAsked())
            case ev.RunPaused():
                commands.on_next(ev.ContinueAsked())
            case _:
                pass

    events = list(cuggino.iterate(words.run().pipe(ops.do_action(look))))
    (left,) = (event for event in events if isinstance(event, ev.TaskLeft))
    assert "task-1.1" == left.filename
    assert ["task-1.1"] == words.link.cancelled[:1]
    assert isinstance(events[-1], ev.LoopApproved)
    assert {"task-1.2.txt", "task-1.3.txt"} < set(words.git.committed())
    run = "/".join(words.shared_refs())
    assert "work/task-1.1" in run  # what it did is not lost
    assert "task-1.2" not in run


def test_what_a_cluster_cannot_do(words: ClusterProject) -> None:
    """One sentence before anything begins: for a single hand, and for approvals of money."""
    words.config = words.config.model_copy(update={"approve": ["plan", "spend:20"]})
    with pytest.raises(ConfigError, match="a run on a cluster cannot wait for approvals"):
        cuggino.run(words.run())
    words.config = words.config.model_copy(update={"approve": [], "hands": 1})
    with pytest.raises(ConfigError, match="only several hands or attempts have places"):
        cuggino.run(words.run())
    assert [] == SESSIONS
