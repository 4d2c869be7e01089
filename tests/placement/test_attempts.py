"""Several attempts at the same work, each placed on a worker: one lands, and the others end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from reactivex import Observable, defer, interval, operators as ops, timer

import cuggino
from cuggino import events as ev
from cuggino.agents.base import SpawnOptions
from cuggino.config import AttemptChoice
from cuggino.errors import AgentFailed, ConfigError
from cuggino.placement import on_cluster
from cuggino.testing import Item, Say, Wait, Write
from cuggino.testing.acts import session_of
from tests.placement.agent import PLAYS, SESSIONS, Play, sessions
from tests.placement.linked import ClusterProject


@pytest.fixture
def hello(project: ClusterProject, monkeypatch: pytest.MonkeyPatch) -> ClusterProject:
    """The project, whose work is done when there is a `hello.txt`, and four workers."""
    monkeypatch.setattr(on_cluster, "DaskLink", lambda *_args, **_given: project.link)
    project.link.names.append("w4")
    settings = {"check_command": "grep -q hello hello.txt", "max_iterations": 1, "max_retries": 0}
    project.config = project.config.model_copy(update=settings)
    return project


def writes(name: str, text: str = "hello\n", *, when: Callable[[], bool] = lambda: True) -> Play:
    """Write a file, once something is the case."""

    def play(options: SpawnOptions) -> Observable[Any]:
        written: Observable[Any] = defer(
            lambda _: session_of([Write(name, text), Say(f"<DONE>Write {name}</DONE>")], options)
        )
        due = interval(0.1).pipe(ops.filter(lambda _: when()), ops.take(1), ops.ignore_elements())
        return due.pipe(ops.concat(written))

    return play


def crashes(_: SpawnOptions) -> Sequence[Item]:
    return [AgentFailed("it crashed", reason="crash")]


def hangs(_: SpawnOptions) -> Sequence[Item]:
    return [Write("half.txt", "half\n"), Wait(600)]


def attempt_refs(project: ClusterProject) -> list[str]:
    listed = project.git.git("for-each-ref", "--format=%(refname)", "refs/cuggino")
    kinds = ("attempts", "candidates", "kept", "work", "runs")
    return [ref for ref in listed.split() if ref.split("/")[2] in kinds]


def test_the_first_that_passes_lands(hello: ClusterProject) -> None:
    """A liar and a crasher lose, the honest one lands, and the last one ends on its worker."""
    lost: dict[str, ev.AttemptLost] = {}
    hello.config = hello.config.model_copy(update={"attempts": 4})
    PLAYS["attempt-1", "implementing"] = [writes("wrong.txt")]
    PLAYS["attempt-2", "planning"] = [crashes]
    PLAYS["attempt-3", "implementing"] = [writes("hello.txt", when=lambda: len(lost) == 2)]
    PLAYS["attempt-4", "implementing"] = [hangs]

    def look(event: ev.Event) -> None:
        if isinstance(event, ev.AttemptLost):
            lost[event.filename] = event

    events = list(cuggino.iterate(hello.run().pipe(ops.do_action(look))))
    assert {"attempt-1": "not-approved", "attempt-2": "failed", "attempt-4": "overtaken"} == {
        name: one.why for name, one in lost.items()
    }
    liar = lost["attempt-1"]
    assert ("refs/cuggino/attempts/attempt-1/1", ("Write wrong.txt",)) == (liar.ref, liar.tried)
    assert [liar.ref] == attempt_refs(hello)
    assert isinstance(events[-1], ev.LoopApproved)
    assert "hello\n" == hello.git.git("show", "main:hello.txt")
    assert "attempt-4" in hello.link.cancelled
    assert all(one.is_over for one in hello.link.attempts)
    placed = {event.filename for event in events if isinstance(event, ev.WatchPlaced)}
    assert {f"attempt-{n}" for n in range(1, 5)} == placed
    assert all(one.cwd.is_relative_to(hello.place / "workers") for one in SESSIONS)
    assert [] == hello.shared_refs()
    assert [] == list(hello.workspace.wip.iterdir())


def test_what_a_worker_pushes_while_it_ends(hello: ClusterProject) -> None:
    """Nothing stays in the shared repository: an overtaken attempt is waited for."""
    hello.config = hello.config.model_copy(update={"attempts": 2})
    PLAYS["attempt-1", "implementing"] = [writes("hello.txt")]
    PLAYS["attempt-2", "implementing"] = [hangs]
    pushed: list[str] = []

    def push(_: object) -> None:
        (given,) = [ref for ref in hello.shared_refs() if ref.endswith("given/attempt-2/base")]
        pushed.append(given.replace("given/attempt-2/base", "work/attempt-2"))
        hello.git.git("push", "-q", "origin", f"+main:refs/cuggino/{pushed[0]}")

    ending = timer(0.2).pipe(ops.do_action(push), ops.ignore_elements())
    hello.link.endings["attempt-2"] = ending
    events = list(cuggino.iterate(hello.run()))
    assert isinstance(events[-1], ev.LoopApproved)
    assert 1 == len(pushed)
    assert [] == hello.shared_refs()


@pytest.mark.real_agent
def test_a_task_of_a_plan(hello: ClusterProject) -> None:
    """Its attempts have a worker each, and what is chosen lands in the clone of the run."""

    def plans(_: SpawnOptions) -> Sequence[Item]:
        text = "# Plan\n\n## Task 1: say hello\n\nafter: none\nattempts: 2\n"
        return [Write("$CUGGINO_PLAN_FILE", text), Say("<PLAN_COMPLETE>Planned.</PLAN_COMPLETE>")]

    hello.config = hello.config.model_copy(update={"hands": 2})
    PLAYS["", "planning"] = [plans]
    PLAYS["task-1.1-attempt-1", "implementing"] = [hangs]
    PLAYS["task-1.1-attempt-2", "implementing"] = [writes("hello.txt")]
    events = list(cuggino.iterate(hello.run()))
    (started,) = (event for event in events if isinstance(event, ev.HandsStarted))
    assert () == started.notes
    (chosen,) = (event for event in events if isinstance(event, ev.AttemptChosen))
    assert "task-1.1-attempt-2" == chosen.filename
    assert [] == sessions("task-1.1")
    assert "hello\n" == hello.git.git("show", "main:hello.txt")
    assert [] == hello.shared_refs()
    assert [] == list(hello.workspace.wip.iterdir())


def test_an_item(hello: ClusterProject) -> None:
    """Front matter asks for attempts; what comes back from the gate is one agent's, on a worker."""
    hello.item("one", text="---\nattempts: 2\n---\n# Say hello\n")
    hello.item("two")
    PLAYS["two", "implementing"] = [writes("hello.txt")]
    PLAYS["one.md-attempt-1", "implementing"] = [hangs]
    late = writes("hello.txt", "hello, you\n", when=lambda: hello.landed() == ["two"])
    PLAYS["one.md-attempt-2", "implementing"] = [late]
    PLAYS["one", "implementing"] = [writes("hello.txt", "hello, both\n")]
    events = hello.watch()
    assert ["two", "one"] == hello.landed()
    (back,) = (event for event in events if isinstance(event, ev.WatchSentBack))
    assert ("one.md", "conflict") == (back.filename, back.reason)
    assert ["implementing", "reviewing"] == sessions("one")
    assert "hello, both\n" == hello.git.git("show", "main:hello.txt")
    assert all(one.cwd.is_relative_to(hello.place / "workers") for one in SESSIONS)
    assert all(one.is_over for one in hello.link.attempts)
    assert [] == attempt_refs(hello)


@pytest.mark.real_agent
def test_an_agent_of_its_own(hello: ClusterProject) -> None:
    """The worker gets the agent and the advice of its attempt."""
    own = "tests.placement.agent:ItemAgent"
    choices = [AttemptChoice(hint="be quick"), AttemptChoice(agent=own, model="big")]
    hello.config = hello.config.model_copy(update={"attempts": choices, "agent": own})
    for n in (1, 2):
        PLAYS[f"attempt-{n}", "implementing"] = [writes("hello.txt")]
    list(cuggino.iterate(hello.run()))
    given = {one.item: one.given for one in hello.link.attempts}
    assert "be quick" in given["attempt-1"]["options"]["focus"]
    assert (own, "big") == (
        given["attempt-2"]["config"]["agent"],
        given["attempt-2"]["options"]["model"],
    )


def test_the_approval_of_plans(hello: ClusterProject) -> None:
    """An attempt on a worker cannot wait for a person: one sentence before anything begins."""
    hello.config = hello.config.model_copy(update={"attempts": 2, "approve": ["plan", "landing"]})
    with pytest.raises(ConfigError, match="a run on a cluster cannot wait for approvals") as caught:
        cuggino.run(hello.run())
    assert 'remove plan from "approve"' in str(caught.value.hint)
    assert [] == SESSIONS
