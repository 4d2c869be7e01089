"""Interruption and disposal of the deliverables loop at any instant."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, defer, never, operators as ops, throw, timer
from reactivex.disposable import Disposable
from reactivex.subject import ReplaySubject, Subject

from cuggino import events as ev
from cuggino.errors import AgentFailed, QuotaExceeded, WorkspaceLocked
from cuggino.operators import LoopScheduler
from cuggino.testing import DrawnStream, Marbles
from tests.limits import LIMIT
from tests.loops.deliver_loop import (
    DONE,
    DeliverLoop,
    RecordedDelivery,
    Turn,
    Writes,
    deliver_marbles,
)
from tests.loops.supervised_loop import limited

START = {"a": "pending"}


def replayed(t: Marbles, at: float) -> ReplaySubject[object]:
    """Return a subject that emits a stop to present and later subscribers."""
    subject: ReplaySubject[object] = ReplaySubject()
    t.scheduler.schedule_absolute(at, lambda *_: subject.on_next("stop"))
    return subject


def story_of(
    folder: Path,
) -> tuple[DeliverLoop, list[DrawnStream], DrawnStream]:
    """Three sessions of five seconds with a pause of three, an outage and a change within."""
    t = deliver_marbles(O=Writes({"a": "passed"}), x=ev.SessionEnded(outcome="failed"))
    t.error = AgentFailed("529", reason="overloaded")
    agents = [t.cold("-a--d|"), t.cold("-x#"), t.cold("--a-d|"), t.cold("-O--d|")]
    watch = t.hot("- 27s !----")
    return (
        DeliverLoop(folder, [Turn(stream=agent) for agent in agents], START, t, watch),
        agents,
        watch,
    )


SETTINGS: dict[str, Any] = {"session_pause": 3.0, "retry_pause": 0.0}
ENDS = 23.0
"""When that story has ended: sessions at 0, 8 and 18."""


def test_without_an_interruption(tmp_path: Path) -> None:
    """It takes three sessions, one of them in two attempts."""
    project, agents, watch = story_of(tmp_path)
    story = project.run(**SETTINGS)
    assert ("all_passed", 3, ENDS) == (story.ended.reason, story.ended.sessions, ENDS)
    assert [ENDS] == story.times(ev.DeliverEnded)
    assert [[(0, 5)], [(8, 10)], [(10, 15)], [(18, 23)]] == [a.subscriptions for a in agents]
    assert [(0, 5), (8, 15), (18, 23)] == watch.subscriptions


@pytest.mark.parametrize("tenths", range(0, 230, 15))
def test_interrupted_at_every_instant(tenths: int, tmp_path: Path) -> None:
    """Everything is released at the instant of the interruption, which is the last event."""
    at = tenths / 10
    project, agents, watch = story_of(tmp_path)
    stop = replayed(project.marbles, at)
    story = project.run(interrupt=stop, **SETTINGS)
    assert ("interrupted", at) == (story.ended.reason, story.ended.duration)
    assert ([at], "completed") == (story.times(ev.DeliverEnded), story.seen[-1][1])
    assert all(end <= at for stream in (*agents, watch) for _, end in _closed(stream))
    in_session = [s for s in watch.subscriptions if s[1] == at and s[0] < at]
    if in_session and at not in (5.0, 15.0):
        last = story.of(ev.DeliverSessionEnded)[-1]
        begun = in_session[0][0]
        told = [event for when, event in story.of(ev.SessionEnded) if when >= begun]
        expected = "completed" if told[-1:] == [DONE] else "interrupted"
        assert (at, expected) == (last[0], last[1].outcome)
    assert [] == stop.observers
    project.assert_released()
    assert "all_passed" == again(project).ended.reason


@pytest.mark.parametrize("tenths", range(0, 231, 15))
def test_disposed_at_every_instant(tenths: int, tmp_path: Path) -> None:
    """Agent, file watch, timers, the interruption and the lock are released without an event."""
    at = tenths / 10
    project, agents, watch = story_of(tmp_path)
    stop: ReplaySubject[object] = ReplaySubject()
    story = project.run(interrupt=stop, dispose_at=at, **SETTINGS)
    assert [] == story.of(ev.DeliverEnded)
    assert all(when <= at for when, _, _ in story.seen)
    assert "next" == story.seen[-1][1] if story.seen else at == 0
    for stream in (*agents, watch):
        assert all(end <= at for _, end in _closed(stream))
    assert [] == stop.observers
    project.assert_released()
    assert "all_passed" == again(project).ended.reason


def _closed(stream: DrawnStream) -> list[tuple[float, float]]:
    """All subscriptions, each of which has ended."""
    closed = [(begin, end) for begin, end in stream.subscriptions if end is not None]
    assert len(closed) == len(stream.subscriptions)
    return closed


def again(project: DeliverLoop) -> RecordedDelivery:
    """Another run in the same project, whose agent does all at once."""
    return DeliverLoop(project.folder, [Turn(leaves={"a": "passed"})]).run(recheck=True)


def test_before_the_start(tmp_path: Path) -> None:
    """A run interrupted before its start starts no agent."""
    project = DeliverLoop(tmp_path, [], START)
    stop: ReplaySubject[object] = ReplaySubject()
    stop.on_next("stop")
    story = project.run(interrupt=stop)
    assert ("interrupted", 0, 1) == (story.ended.reason, story.ended.sessions, story.ended.total)
    assert [] == project.agent.spawned
    project.assert_released()


def test_an_interrupted_session_is_reported(tmp_path: Path) -> None:
    """Events, cost and changes of an interrupted session are reported."""
    t = deliver_marbles(O=Writes({"a": "passed"}), S="stop")
    agent = t.cold("-aO--------")
    project = DeliverLoop(tmp_path, [Turn(stream=agent)], START, t)
    story = project.run(interrupt=t.hot("-----S"))
    (_, ended) = story.of(ev.DeliverSessionEnded)[0]
    assert ("interrupted", 5.0, None) == (ended.outcome, ended.duration, ended.cost_usd)
    assert [(5, "a", "pending", "passed")] == story.changes
    assert ("interrupted", 1) == (story.ended.reason, story.ended.passed)
    t.check_subscriptions(agent, "^----!")


def test_in_a_wait_for_the_usage_limit(tmp_path: Path) -> None:
    """A wait for usage ends at once (AUT-079)."""
    t = deliver_marbles(q=ev.SessionEnded(outcome="quota"))
    t.error = limited(3600.0)
    project = DeliverLoop(tmp_path, [Turn(stream=t.cold("-q#"))], START, t)
    story = project.run(interrupt=replayed(t, 100.0), wait_for_quota=True)
    assert [2, 62] == story.times(ev.QuotaWaiting)
    assert ("interrupted", 100.0) == (story.ended.reason, story.ended.duration)
    assert ["interrupted"] == story.outcomes
    project.assert_released()


def test_in_the_pause_before_a_retry(tmp_path: Path) -> None:
    """A retry pause ends at once."""
    t = deliver_marbles()
    t.error = AgentFailed("529", reason="overloaded")
    project = DeliverLoop(tmp_path, [Turn(stream=t.cold("-#"))], START, t)
    story = project.run(interrupt=replayed(t, 2.0), retry_pause=100.0)
    assert ("interrupted", 2.0) == (story.ended.reason, story.ended.duration)
    project.assert_released()


def test_during_a_fingerprint(tmp_path: Path) -> None:
    """Fingerprinting a large project is canceled."""
    t = deliver_marbles()
    project = DeliverLoop(tmp_path, [], START, t)
    look = t.cold("- 1h -")
    project.replace(fingerprint=lambda *_, **__: look)
    story = project.run(interrupt=replayed(t, 5.0), progress_patience=1)
    assert ("interrupted", 0, 5.0) == (
        story.ended.reason,
        story.ended.sessions,
        story.ended.duration,
    )
    t.check_subscriptions(look, "^----!")
    project.assert_released()


def test_an_interruption_that_fails(tmp_path: Path) -> None:
    """A failing interruption stops the loop."""
    t = deliver_marbles()
    project = DeliverLoop(tmp_path, [Turn(stream=t.cold("-----d|"))], START, t)
    stop: Observable[object] = timer(2).pipe(ops.flat_map(lambda _: throw(OSError("no signals"))))
    assert ("interrupted", 2.0) == (
        (story := project.run(interrupt=stop)).ended.reason,
        story.ended.duration,
    )


def test_an_interruption_that_only_completes(tmp_path: Path) -> None:
    """An interruption that completes stops nothing."""
    t = deliver_marbles()
    project = DeliverLoop(tmp_path, [Turn(stream=t.cold("--d|"), leaves={"a": "passed"})], START, t)
    assert "all_passed" == project.run(interrupt=t.hot("|")).ended.reason


def test_it_is_subscribed_once(tmp_path: Path) -> None:
    """The interruption is subscribed from the start to the end of the run."""
    project, _, _ = story_of(tmp_path)
    stop = project.marbles.hot("- 1m S")
    project.run(interrupt=stop, **SETTINGS)
    assert [(0, ENDS)] == stop.subscriptions


def test_the_second_of_two_loops(tmp_path: Path) -> None:
    """A second loop in the same folder fails and starts nothing."""
    t = deliver_marbles()
    project = DeliverLoop(
        tmp_path, [Turn(stream=t.cold("----d|"), leaves={"a": "passed"})], START, t
    )
    other = DeliverLoop(tmp_path, [], None, t)
    refused: list[object] = []

    def begin(*_: object) -> None:
        other.stream().subscribe(refused.append, refused.append, scheduler=t.scheduler)

    t.scheduler.schedule_absolute(2.0, begin)
    story = project.run()
    assert [WorkspaceLocked] == [type(error) for error in refused]
    assert [] == other.agent.spawned
    assert "all_passed" == story.ended.reason


def test_from_another_thread(tmp_path: Path) -> None:
    """Events and the agent's release stay on the loop's thread if another one interrupts."""
    threads: set[str] = set()

    def agent(_scheduler: object) -> Observable[object]:
        note = Disposable(lambda: threads.add(threading.current_thread().name))
        waiting: Observable[object] = never()
        return waiting.pipe(
            ops.start_with(ev.AgentMessage(text="working")), ops.finally_action(note.dispose)
        )

    project = DeliverLoop(tmp_path, [Turn(stream=defer(agent))], START)
    stop: ReplaySubject[object] = ReplaySubject()
    loop = LoopScheduler()
    seen: list[object] = []
    begun, over = threading.Event(), threading.Event()

    def hear(event: object) -> None:
        threads.add(threading.current_thread().name)
        seen.append(event)
        if isinstance(event, ev.AgentMessage):
            begun.set()

    project.stream(interrupt=stop).subscribe(hear, lambda _: over.set(), over.set, scheduler=loop)
    assert begun.wait(LIMIT)
    stop.on_next("stop")
    assert over.wait(LIMIT)
    loop.dispose()
    assert 1 == len(threads)
    assert threading.current_thread().name not in threads
    assert isinstance(seen[-1], ev.DeliverEnded)
    assert "interrupted" == seen[-1].reason


def test_no_wait_is_left_behind(tmp_path: Path) -> None:
    """A run that ends with a usage limit leaves no subscription to the interruption."""
    project = DeliverLoop(
        tmp_path, [Turn((ev.SessionEnded(outcome="quota"),), error=limited())], START
    )
    stop: Subject[object] = Subject()
    story = project.run(interrupt=stop)
    assert isinstance(story.error, QuotaExceeded)
    assert [] == stop.observers
    project.assert_released()
