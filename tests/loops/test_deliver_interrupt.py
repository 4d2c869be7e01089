"""A person stops the deliverables loop, or its subscriber does, in every instant of it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, defer, never, operators as ops, throw, timer
from reactivex.disposable import Disposable
from reactivex.subject import ReplaySubject, Subject

from cuggino.errors import AgentFailed, QuotaExceeded, WorkspaceLocked
from cuggino.events import (
    AgentMessage,
    DeliverEnded,
    DeliverSessionEnded,
    QuotaWaiting,
    SessionEnded,
)
from cuggino.operators import LoopScheduler
from cuggino.testing import DrawnStream, Marbles
from tests.loops.delivered import DONE, Delivered, Story, Turn, Writes, deliver_marbles
from tests.loops.policed import limited

START = {"a": "pending"}


def replayed(t: Marbles, at: float) -> ReplaySubject[object]:
    """A subject that tells everybody, also those who come later, that it was asked to stop."""
    subject: ReplaySubject[object] = ReplaySubject()
    t.scheduler.schedule_absolute(at, lambda *_: subject.on_next("stop"))
    return subject


def story_of(
    folder: Path,
) -> tuple[Delivered, list[DrawnStream], DrawnStream]:
    """Three sessions of five seconds with a pause of three, an outage and a change within."""
    t = deliver_marbles(O=Writes({"a": "passed"}), x=SessionEnded(outcome="failed"))
    t.error = AgentFailed("529", reason="overloaded")
    agents = [t.cold("-a--d|"), t.cold("-x#"), t.cold("--a-d|"), t.cold("-O--d|")]
    watch = t.hot("- 27s !----")
    return (
        Delivered(folder, [Turn(stream=agent) for agent in agents], START, t, watch),
        agents,
        watch,
    )


SETTINGS: dict[str, Any] = {"session_pause": 3.0, "retry_pause": 0.0}
ENDS = 23.0
"""When that story has ended: sessions at 0, 8 and 18."""


def test_the_story_undisturbed(tmp_path: Path) -> None:
    """It takes three sessions, one of them in two attempts."""
    project, agents, watch = story_of(tmp_path)
    story = project.run(**SETTINGS)
    assert ("all_passed", 3, ENDS) == (story.ended.reason, story.ended.sessions, ENDS)
    assert [ENDS] == story.times(DeliverEnded)
    assert [[(0, 5)], [(8, 10)], [(10, 15)], [(18, 23)]] == [a.subscriptions for a in agents]
    assert [(0, 5), (8, 15), (18, 23)] == watch.subscriptions


@pytest.mark.parametrize("tenths", range(0, 230, 5))
def test_interrupted_at_every_instant(tenths: int, tmp_path: Path) -> None:
    """What runs is released at that very instant; the end says so, and nothing follows."""
    at = tenths / 10
    project, agents, watch = story_of(tmp_path)
    stop = replayed(project.marbles, at)
    story = project.run(interrupt=stop, **SETTINGS)
    assert ("interrupted", at) == (story.ended.reason, story.ended.duration)
    assert ([at], "completed") == (story.times(DeliverEnded), story.seen[-1][1])
    assert all(end <= at for stream in (*agents, watch) for _, end in _closed(stream))
    in_session = [s for s in watch.subscriptions if s[1] == at and s[0] < at]
    if in_session and at not in (5.0, 15.0):
        last = story.of(DeliverSessionEnded)[-1]
        begun = in_session[0][0]
        told = [event for when, event in story.of(SessionEnded) if when >= begun]
        expected = "completed" if told[-1:] == [DONE] else "interrupted"
        assert (at, expected) == (last[0], last[1].outcome)
    assert [] == stop.observers
    project.assert_released()
    assert "all_passed" == again(project).ended.reason


@pytest.mark.parametrize("tenths", range(0, 231, 5))
def test_disposed_at_every_instant(tenths: int, tmp_path: Path) -> None:
    """Agent, watch, timers, the interruption and the lock are released, and no word is said."""
    at = tenths / 10
    project, agents, watch = story_of(tmp_path)
    stop: ReplaySubject[object] = ReplaySubject()
    story = project.run(interrupt=stop, dispose_at=at, **SETTINGS)
    assert [] == story.of(DeliverEnded)
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


def again(project: Delivered) -> Story:
    """Another run in the same project, whose agent does all at once."""
    return Delivered(project.folder, [Turn(leaves={"a": "passed"})]).run(recheck=True)


def test_before_the_start(tmp_path: Path) -> None:
    """Nobody is spawned when it was asked for before."""
    project = Delivered(tmp_path, [], START)
    stop: ReplaySubject[object] = ReplaySubject()
    stop.on_next("stop")
    story = project.run(interrupt=stop)
    assert ("interrupted", 0, 1) == (story.ended.reason, story.ended.sessions, story.ended.total)
    assert [] == project.agent.spawned
    project.assert_released()


def test_what_an_interrupted_session_had_done(tmp_path: Path) -> None:
    """Its words, its cost and what it had changed are told; a plain subject does as well."""
    t = deliver_marbles(O=Writes({"a": "passed"}), S="stop")
    agent = t.cold("-aO--------")
    project = Delivered(tmp_path, [Turn(stream=agent)], START, t)
    story = project.run(interrupt=t.hot("-----S"))
    (_, ended) = story.of(DeliverSessionEnded)[0]
    assert ("interrupted", 5.0, None) == (ended.outcome, ended.duration, ended.cost_usd)
    assert [(5, "a", "pending", "passed")] == story.changes
    assert ("interrupted", 1) == (story.ended.reason, story.ended.passed)
    t.check_subscriptions(agent, "^----!")


def test_in_a_wait_for_the_usage_limit(tmp_path: Path) -> None:
    """The wait ends at once, hours before the limit is lifted (AUT-079)."""
    t = deliver_marbles(q=SessionEnded(outcome="quota"))
    t.error = limited(3600.0)
    project = Delivered(tmp_path, [Turn(stream=t.cold("-q#"))], START, t)
    story = project.run(interrupt=replayed(t, 100.0), wait_for_quota=True)
    assert [2, 62] == story.times(QuotaWaiting)
    assert ("interrupted", 100.0) == (story.ended.reason, story.ended.duration)
    assert ["interrupted"] == story.outcomes
    project.assert_released()


def test_in_the_pause_before_a_retry(tmp_path: Path) -> None:
    """The wait between two attempts of a session ends at once too."""
    t = deliver_marbles()
    t.error = AgentFailed("529", reason="overloaded")
    project = Delivered(tmp_path, [Turn(stream=t.cold("-#"))], START, t)
    story = project.run(interrupt=replayed(t, 2.0), retry_pause=100.0)
    assert ("interrupted", 2.0) == (story.ended.reason, story.ended.duration)
    project.assert_released()


def test_while_the_project_is_looked_at(tmp_path: Path) -> None:
    """A look at a large project is given up."""
    t = deliver_marbles()
    project = Delivered(tmp_path, [], START, t)
    look = t.cold("- 1h -")
    project.service.fingerprint = lambda *_, **__: look
    story = project.run(interrupt=replayed(t, 5.0), progress_patience=1)
    assert ("interrupted", 0, 5.0) == (
        story.ended.reason,
        story.ended.sessions,
        story.ended.duration,
    )
    t.check_subscriptions(look, "^----!")
    project.assert_released()


def test_an_interruption_that_fails(tmp_path: Path) -> None:
    """A loop that nobody could stop any more stops."""
    t = deliver_marbles()
    project = Delivered(tmp_path, [Turn(stream=t.cold("-----d|"))], START, t)
    stop: Observable[object] = timer(2).pipe(ops.flat_map(lambda _: throw(OSError("no signals"))))
    assert ("interrupted", 2.0) == (
        (story := project.run(interrupt=stop)).ended.reason,
        story.ended.duration,
    )


def test_an_interruption_that_only_completes(tmp_path: Path) -> None:
    """It stops nothing."""
    t = deliver_marbles()
    project = Delivered(tmp_path, [Turn(stream=t.cold("--d|"), leaves={"a": "passed"})], START, t)
    assert "all_passed" == project.run(interrupt=t.hot("|")).ended.reason


def test_it_is_subscribed_once(tmp_path: Path) -> None:
    """The interruption is listened to from the start to the end of the run."""
    project, _, _ = story_of(tmp_path)
    stop = project.marbles.hot("- 1m S")
    project.run(interrupt=stop, **SETTINGS)
    assert [(0, ENDS)] == stop.subscriptions


def test_the_second_of_two_loops(tmp_path: Path) -> None:
    """Two loops cannot work in one folder: the second has one error and starts nothing."""
    t = deliver_marbles()
    project = Delivered(tmp_path, [Turn(stream=t.cold("----d|"), leaves={"a": "passed"})], START, t)
    other = Delivered(tmp_path, [], None, t)
    refused: list[object] = []

    def begin(*_: object) -> None:
        other.stream().subscribe(refused.append, refused.append, scheduler=t.scheduler)

    t.scheduler.schedule_absolute(2.0, begin)
    story = project.run()
    assert [WorkspaceLocked] == [type(error) for error in refused]
    assert [] == other.agent.spawned
    assert "all_passed" == story.ended.reason


def test_from_another_thread(tmp_path: Path) -> None:
    """All events and the release of the agent are on the loop's thread, whoever interrupts."""
    threads: set[str] = set()

    def agent(_scheduler: object) -> Observable[object]:
        note = Disposable(lambda: threads.add(threading.current_thread().name))
        waiting: Observable[object] = never()
        return waiting.pipe(
            ops.start_with(AgentMessage(text="working")), ops.finally_action(note.dispose)
        )

    project = Delivered(tmp_path, [Turn(stream=defer(agent))], START)
    stop: ReplaySubject[object] = ReplaySubject()
    loop = LoopScheduler()
    seen: list[object] = []
    begun, over = threading.Event(), threading.Event()

    def hear(event: object) -> None:
        threads.add(threading.current_thread().name)
        seen.append(event)
        if isinstance(event, AgentMessage):
            begun.set()

    project.stream(interrupt=stop).subscribe(hear, lambda _: over.set(), over.set, scheduler=loop)
    assert begun.wait(30)
    stop.on_next("stop")
    assert over.wait(30)
    loop.dispose()
    assert 1 == len(threads)
    assert threading.current_thread().name not in threads
    assert isinstance(seen[-1], DeliverEnded)
    assert "interrupted" == seen[-1].reason


def test_no_wait_is_left_behind(tmp_path: Path) -> None:
    """A run that ends with the usage limit holds nothing of the interruption."""
    project = Delivered(tmp_path, [Turn((SessionEnded(outcome="quota"),), error=limited())], START)
    stop: Subject[object] = Subject()
    story = project.run(interrupt=stop)
    assert isinstance(story.error, QuotaExceeded)
    assert [] == stop.observers
    project.assert_released()
