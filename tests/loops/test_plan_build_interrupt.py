"""Interruption and disposal of the plan/build loop at any instant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, timer
from reactivex.subject import ReplaySubject

from cuggino.errors import AgentFailed
from cuggino.events import (
    PlanBuildEnded,
    PlanBuildSessionEnded,
    QuotaWaiting,
    SessionEnded,
)
from cuggino.testing import DrawnStream, Marbles
from tests.loops.deliver_loop import pending
from tests.loops.plan_build_loop import Does, PlanBuildLoop, Turn, has, plan_build_marbles
from tests.loops.supervised_loop import limited

SETTINGS: dict[str, Any] = {
    "start": "plan",
    "iteration_pause": 2.0,
    "retry_pause": 0.0,
    "verify_test": "test",
    "auto_commit": True,
}
ENDS = 25.0


def replayed(t: Marbles, at: float) -> ReplaySubject[object]:
    """Return a subject that emits a stop to present and later subscribers."""
    subject: ReplaySubject[object] = ReplaySubject()
    t.scheduler.schedule_absolute(at, lambda *_: subject.on_next("stop"))
    return subject


def story_of(folder: Path) -> tuple[PlanBuildLoop, list[DrawnStream]]:
    """A plan of three seconds, a build of four with an outage within; a verified one of four.

    ::

        plan 0-3, build 3-5 5-9, build verified 9-11, pause 11-13,
        build 13-17, tests 17-20, build verified 20-22, job verified 22-25
    """
    t = plan_build_marbles(
        P=Does(has(J1="open")), D=Does(has(True, J1="done")), x=SessionEnded(outcome="failed")
    )
    t.error = AgentFailed("529", reason="overloaded")
    plan, failing, first = t.cold("aPd|"), t.cold("-x#"), t.cold("-a-d|")
    second, tests = t.cold("-D-d|"), t.cold("---|")
    judges = [t.cold("-(jd)|"), t.cold("-(jd)|"), t.cold("-j-(d|)")]
    project = PlanBuildLoop(
        folder,
        [Turn(stream=failing), Turn(stream=first), Turn(stream=second)],
        [Turn(stream=judge) for judge in judges],
        [Turn(stream=plan)],
        marbles=t,
        shells={"test": tests},
    )
    return project, [plan, failing, first, second, tests, *judges]


def test_without_an_interruption(tmp_path: Path) -> None:
    """Each stream is subscribed in its turn and released at its end."""
    project, streams = story_of(tmp_path)
    story = project.run(**SETTINGS)
    assert ("complete", 3, ENDS) == (story.ended.reason, story.ended.iterations, ENDS)
    assert [ENDS] == story.times(PlanBuildEnded)
    plan, failing, first, second, tests, *judges = streams
    project.marbles.check_subscriptions(plan, "^--!")
    project.marbles.check_subscriptions(failing, "---^-!")
    project.marbles.check_subscriptions(first, "-----^---!")
    project.marbles.check_subscriptions(judges[0], "---------^-!")
    project.marbles.check_subscriptions(second, "-------------^---!")
    project.marbles.check_subscriptions(tests, "-----------------^--!")
    project.marbles.check_subscriptions(judges[1], "--------------------^-!")
    project.marbles.check_subscriptions(judges[2], "----------------------^--!")
    assert ["chore(loop): iteration 2", "chore(loop): iteration 3"] == project.log


def closed(stream: DrawnStream) -> list[tuple[float, float]]:
    """All subscriptions, each of which has ended."""
    ended = [(begin, end) for begin, end in stream.subscriptions if end is not None]
    assert len(ended) == len(stream.subscriptions)
    return ended


def assert_another_can_begin(project: PlanBuildLoop) -> None:
    done = PlanBuildLoop(project.folder, spare=Turn(has(True, J1="done")), plan=[Turn()])
    assert "complete" == done.run(start="plan").ended.reason


@pytest.mark.parametrize("halves", range(0, 50, 3))
def test_interrupted_at_every_instant(halves: int, tmp_path: Path) -> None:
    """Everything is released at the instant of the interruption, which is the last event."""
    at = halves / 2
    project, streams = story_of(tmp_path)
    stop = replayed(project.marbles, at)
    story = project.run(interrupt=stop, **SETTINGS)
    assert ("interrupted", at) == (story.ended.reason, story.ended.duration)
    assert ([at], "completed") == (story.times(PlanBuildEnded), story.seen[-1][1])
    for stream in streams:
        assert all(end <= at for _, end in closed(stream))
    assert [] == stop.observers
    project.assert_released()
    assert_another_can_begin(project)


@pytest.mark.parametrize("halves", range(0, 51, 3))
def test_disposed_at_every_instant(halves: int, tmp_path: Path) -> None:
    """Agents, commands, timers, the interruption and the lock are released without an event."""
    at = halves / 2
    project, streams = story_of(tmp_path)
    stop: ReplaySubject[object] = ReplaySubject()
    story = project.run(interrupt=stop, dispose_at=at, **SETTINGS)
    assert [] == story.of(PlanBuildEnded)
    assert all(when <= at for when, _, _ in story.seen)
    for stream in streams:
        assert all(end <= at for _, end in closed(stream))
    assert [] == stop.observers
    project.assert_released()
    assert_another_can_begin(project)


def test_before_the_start(tmp_path: Path) -> None:
    """A run interrupted before its start counts its jobs and starts no agent."""
    project = PlanBuildLoop(tmp_path, files=has(J1="open"))
    stop: ReplaySubject[object] = ReplaySubject()
    stop.on_next("stop")
    story = project.run(interrupt=stop)
    assert ("interrupted", 0, 1) == (story.ended.reason, story.ended.iterations, story.ended.open)
    assert [] == project.agent.spawned
    project.assert_released()


@pytest.mark.parametrize("phase", ["plan", "build"])
def test_an_interrupted_session_is_reported(phase: str, tmp_path: Path) -> None:
    """An interrupted session has an end event with its outcome, and its iteration has none."""
    t = plan_build_marbles()
    agent = t.cold("-a-------")
    turns: Any = {phase: [Turn(stream=agent)]}
    project = PlanBuildLoop(tmp_path, marbles=t, **turns)
    story = project.run(interrupt=t.hot("-----S"), start=phase)
    (ended,) = story.of(PlanBuildSessionEnded)
    assert ("interrupted", 5.0, 1) == (ended.outcome, ended.duration, story.ended.iterations)
    t.check_subscriptions(agent, "^----!")


def test_in_a_wait_for_the_usage_limit(tmp_path: Path) -> None:
    """A wait for usage, also in a verification, ends at once."""
    for n, role in enumerate(("build", "judge")):
        t = plan_build_marbles(q=SessionEnded(outcome="quota"))
        t.error = limited(3600.0)
        turns: Any = {"build": [Turn()], role: [Turn(stream=t.cold("-q#"))]}
        project = PlanBuildLoop(tmp_path / str(n), marbles=t, **turns)
        story = project.run(interrupt=replayed(t, 100.0), wait_for_quota=True)
        assert 2 == story.times(QuotaWaiting)[0]
        assert ("interrupted", 100.0) == (story.ended.reason, story.ended.duration)
        project.assert_released()


def test_during_a_fingerprint(tmp_path: Path) -> None:
    """Reading a large project or its commits is canceled."""
    t = plan_build_marbles()
    look = t.cold("- 1h -")
    for n, slow in enumerate(("fingerprint", "commits", "head")):
        t = plan_build_marbles()
        look = t.cold("- 1h -")
        project = PlanBuildLoop(tmp_path / slow, [Turn()], marbles=t)
        if slow == "fingerprint":
            project.replace(fingerprint=lambda *_args, seen=look, **_given: seen)
        elif slow == "head":
            project.head = look
        else:
            calls: list[int] = []
            commits = project.service.services.commits

            def looked(cwd: Path, base: str | None, seen: Any = look) -> Any:
                calls.append(n)
                return seen if len(calls) > 1 else commits(cwd, base)

            project.replace(commits=looked)
        story = project.run(interrupt=replayed(t, 5.0), progress_patience=1)
        assert ("interrupted", 5.0) == (story.ended.reason, story.ended.duration)
        t.check_subscriptions(look, "^----!")
        project.assert_released()


def test_in_the_commit(tmp_path: Path) -> None:
    """A hanging commit hook does not delay an interruption."""
    t = plan_build_marbles()
    hook = t.cold("- 1h -")
    project = PlanBuildLoop(tmp_path, [Turn()], marbles=t)
    project.committing = hook
    story = project.run(interrupt=replayed(t, 5.0), auto_commit=True)
    assert ("interrupted", 5.0) == (story.ended.reason, story.ended.duration)
    t.check_subscriptions(hook, "^----!")
    project.assert_released()


def test_after_the_result_of_a_session(tmp_path: Path) -> None:
    """A session that reported a result is completed; its verification is not started."""
    t = plan_build_marbles()
    agent = t.cold("-ad 9s |")
    project = PlanBuildLoop(tmp_path, [Turn(stream=agent)], [], marbles=t)
    story = project.run(interrupt=replayed(t, 5.0))
    assert ["completed"] == story.outcomes
    assert ("interrupted", 5.0) == (story.ended.reason, story.ended.duration)
    project.assert_released()


def test_an_interruption_that_only_completes(tmp_path: Path) -> None:
    """An interruption that completes stops nothing; one that fails stops the loop."""
    t = plan_build_marbles()
    project = PlanBuildLoop(tmp_path, [Turn(has(True), stream=t.cold("--d|"))], marbles=t)
    assert "complete" == project.run(interrupt=t.hot("|")).ended.reason
    t = plan_build_marbles()
    project = PlanBuildLoop(tmp_path / "b", [Turn(stream=t.cold("----d|"))], marbles=t)
    stop: Observable[object] = t.hot("--#")
    assert ("interrupted", 2.0) == (
        (story := project.run(interrupt=stop)).ended.reason,
        story.ended.duration,
    )


def test_it_is_subscribed_once(tmp_path: Path) -> None:
    """The interruption is subscribed from the start to the end of the run."""
    project, _ = story_of(tmp_path)
    stop = project.marbles.hot("- 1m S")
    project.run(interrupt=stop, **SETTINGS)
    assert [(0, ENDS)] == stop.subscriptions


def test_a_subscriber_that_fails(tmp_path: Path) -> None:
    """An exception in a subscriber ends the run and releases everything."""
    project, streams = story_of(tmp_path)
    errors: list[Exception] = []
    count = 0

    def hear(_event: object) -> None:
        nonlocal count
        count += 1
        if count == 8:
            raise KeyError("bad consumer")

    project.stream(**SETTINGS).subscribe(hear, errors.append, scheduler=project.marbles.scheduler)
    project.marbles.scheduler.advance_to(1000)
    assert [KeyError] == [type(error) for error in errors]
    assert all(closed(stream) or not stream.subscriptions for stream in streams)
    assert 0 == pending(project.marbles)
    project.assert_released()


def test_a_late_second_loop(tmp_path: Path) -> None:
    """A second loop in the same folder fails and starts nothing."""
    project, _ = story_of(tmp_path)
    other = PlanBuildLoop(tmp_path, marbles=project.marbles)
    refused: list[object] = []
    later: Observable[Any] = timer(4.0)
    later.subscribe(
        lambda _: (
            other.stream().subscribe(
                refused.append, refused.append, scheduler=project.marbles.scheduler
            )
            and None
        ),
        scheduler=project.marbles.scheduler,
    )
    assert "complete" == project.run(**SETTINGS).ended.reason
    assert ["WorkspaceLocked"] == [type(error).__name__ for error in refused]
    assert [] == other.agent.spawned
