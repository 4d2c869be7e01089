"""Commands of a person to items on workers, and the state that all attempts share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from reactivex import Observable, operators as ops
from reactivex.subject import Subject

import cuggino
from cuggino import events as ev
from cuggino.agents.base import SpawnOptions
from cuggino.errors import BudgetExceeded, Interrupted, QuotaExceeded
from cuggino.placement.wire import Limits, decode
from cuggino.testing import Item, Say, Wait, Write
from tests.placement.agent import PLAYS, SESSIONS, sessions
from tests.placement.linked import Attempt, ClusterProject, tags, works

FULL = ["planning", "implementing", "reviewing"]


class Commands:
    """Commands to the watch of a project, each given once at its own event."""

    def __init__(self, project: ClusterProject) -> None:
        self._commands: Subject[ev.ControlEvent] = Subject()
        self._due: list[tuple[Callable[[ev.Event], bool], ev.ControlEvent]] = []
        self._project = project
        project.control = self._commands

    def give(self, when: Callable[[ev.Event], bool], command: ev.ControlEvent) -> None:
        self._due.append((when, command))

    def watch(self) -> list[ev.Event]:
        return list(cuggino.iterate(self._project.stream().pipe(ops.do_action(self._look))))

    def _look(self, event: ev.Event) -> None:
        for due in list(self._due):
            if due[0](event):
                self._due.remove(due)
                self._commands.on_next(due[1])


def orders(attempt: Attempt) -> list[str]:
    """Return the tags of the commands that the attempt received."""
    return [type(decode(text)).__name__ for text in attempt.told]


@pytest.mark.real_agent
def test_message(project: ClusterProject) -> None:
    """A message reaches one agent of its item, once, and no other item."""
    commands = Commands(project)
    commands.give(works("implementing"), ev.SteerAsked(text="use tabs", item="one.md"))
    project.item("one", "two")
    events = commands.watch()
    assert {"one", "two"} == set(project.landed())
    prompts = [(session.item, session.role) for session in SESSIONS if "use tabs" in session.prompt]
    assert [("one", "reviewing")] == prompts or [("one", "implementing")] == prompts
    (one,), (two,) = project.link.of("one"), project.link.of("two")
    assert (["SteerAsked"], []) == (orders(one), orders(two))
    assert 1 == len([event for event in events if isinstance(event, ev.Steered)])


@pytest.mark.real_agent  # watches on several machines: with the second command
def test_message_to_a_lost_worker(project: ClusterProject) -> None:
    """A message that no agent has received reaches the next attempt."""
    commands = Commands(project)
    commands.give(works("implementing"), ev.SteerAsked(text="use tabs", item="one.md"))
    project.link.when("ReviewingStart", project.link.kill)
    project.item("one")
    commands.watch()
    assert ["one"] == project.landed()
    told = [session.role for session in SESSIONS if "use tabs" in session.prompt]
    assert 1 == len(told)
    assert [["SteerAsked"]] * 2 == [orders(attempt) for attempt in project.link.attempts]


@pytest.mark.real_agent  # watches on several machines: with the second command
def test_pause(project: ClusterProject) -> None:
    """A pause begins before the next agent and ends on `ContinueAsked`."""
    commands = Commands(project)
    commands.give(works("implementing"), ev.PauseAsked())
    commands.give(lambda event: isinstance(event, ev.RunPaused), ev.ContinueAsked())
    project.item("one")
    events = commands.watch()
    (attempt,) = project.link.attempts
    assert (["one"], FULL) == (project.landed(), sessions("one"))
    assert ["PauseAsked", "ContinueAsked"] == orders(attempt)
    names = ("PauseAsked", "RunPaused", "ContinueAsked", "PauseEnded", "ReviewingStart")
    seen = [event.tag for event in events if event.tag in names]
    assert ["PauseAsked", "RunPaused", "ContinueAsked", "PauseEnded"] == sorted(
        set(seen) - {"ReviewingStart"}, key=names.index
    )
    assert [1] * 4 == [seen.count(name) for name in names[:4]]
    assert any(isinstance(event, ev.PauseEnded) for event in events)


@pytest.mark.real_agent
def test_stop(project: ClusterProject) -> None:
    """A stop ends the items after their agents; the next watch continues."""
    commands = Commands(project)
    commands.give(works("implementing"), ev.StopAsked())
    project.item("one")
    with pytest.raises(Interrupted):
        commands.watch()
    assert FULL[:2] == sessions("one")
    assert ["StopAsked"] == orders(project.link.attempts[0])
    project.control = None
    project.watch()
    assert (["one"], FULL) == (project.landed(), sessions("one"))


@pytest.mark.real_agent
def test_skip(project: ClusterProject) -> None:
    """A skipped item is ended on its worker and parked; the other one lands."""
    commands = Commands(project)
    commands.give(works("implementing"), ev.SkipAsked(item="one.md"))
    project.item("one", "two")
    PLAYS["two", "planning"] = []
    events = project_events(project, commands)
    assert ["WatchItemParked one"] == tags(events, "WatchItemParked")
    assert "one" in project.link.cancelled
    assert ["two"] == project.landed()
    assert "reviewing" not in sessions("one")


def project_events(project: ClusterProject, commands: Commands) -> list[ev.Event]:
    """Watch again after an item was parked, until the other has landed."""
    events = commands.watch()
    assert any(isinstance(event, ev.WatchItemParked) for event in events)
    project.control = None
    return [*events, *project.watch()]


def costing(usd: float, *more: Item) -> Callable[[SpawnOptions], Sequence[Item]]:
    """Return a session of an implementing agent with a cost."""
    return lambda _: [
        Write("costly.txt", "costly\n"),
        *more,
        Say("<DONE>Do it</DONE>"),
        ev.SessionEnded(outcome="completed", cost_usd=usd),
    ]


@pytest.mark.real_agent
def test_budget_of_all(project: ClusterProject) -> None:
    """When the attempts exceed the budget together, the watch and all work in progress end."""
    PLAYS["one", "implementing"] = [costing(0.6)]
    PLAYS["two", "implementing"] = [costing(0.6)]
    project.config = project.config.model_copy(update={"budget": 1.0})
    project.item("one", "two")
    with pytest.raises(BudgetExceeded):
        project.watch()
    assert all(attempt.is_over for attempt in project.link.attempts)


@pytest.mark.real_agent  # watches on several machines: with the second command
def test_budget_of_a_resumed_run(project: ClusterProject) -> None:
    """A run that continues elsewhere is not charged twice for its earlier costs."""
    PLAYS["one", "implementing"] = [costing(0.6)]
    project.config = project.config.model_copy(update={"budget": 1.0})
    lost = lambda _: [Wait(0), *kill(project), Wait(60)]  # noqa: E731
    PLAYS["one", "reviewing"] = [lost]
    project.item("one")
    project.watch()
    assert (["one"], [*FULL, "reviewing"]) == (project.landed(), sessions("one"))
    first, second = (attempt.given["options"]["budget"] for attempt in project.link.attempts)
    assert pytest.approx(1.0) == first == second


def kill(project: ClusterProject) -> list[Item]:
    """Return what kills the worker of the last attempt."""
    from cuggino.testing import Do

    return [Do(lambda _: project.link.kill(project.link.attempts[-1]))]


@pytest.mark.real_agent  # watches on several machines: with the second command
def test_usage_limit(project: ClusterProject) -> None:
    """A usage limit that one attempt has met is reported to the others, and to later ones."""
    resets_at = datetime.now(UTC) + timedelta(hours=3)
    PLAYS["one", "planning"] = [lambda _: [QuotaExceeded("used up", resets_at=resets_at)]]
    PLAYS["two", "planning"] = [lambda _: [Wait(60)]]
    project.item("one", "two")
    stream: Observable[ev.Event] = project.stream()
    told = lambda _: not any(two.told for two in project.link.of("two"))  # noqa: E731
    list(cuggino.iterate(stream.pipe(ops.take_while(told))))
    (two,) = project.link.of("two")
    (said,) = (decode(text) for text in two.told)
    assert isinstance(said, Limits)
    assert {""} == {limit.account for limit in said.limits}
    assert {resets_at} == {limit.resets_at for limit in said.limits}
