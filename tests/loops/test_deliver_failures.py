"""Failed sessions and their consequences (AUT-020 to AUT-029, AUT-055 to AUT-065)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable

from cuggino import events as ev
from cuggino.agents.base import SpawnOptions
from cuggino.errors import (
    AgentFailed,
    AgentFailure,
    AgentNotFound,
    ConfigError,
    CugginoError,
    GuardNotLive,
    ProcessFailed,
    StorageError,
)
from tests.loops.deliver_loop import DONE, DeliverLoop, Sessions, Turn, crash, deliver_marbles

START = {"a": "pending"}
GOOD = Turn(leaves={"a": "passed"})


def test_a_crash_is_followed_by_another_session(tmp_path: Path) -> None:
    """A crash is counted and reported, and followed by a new session with the next number."""
    t = deliver_marbles()
    t.error = AgentFailed("it crashed", reason="crash")
    crashing = t.cold("-a#")
    project = DeliverLoop(tmp_path, [Turn(stream=crashing), GOOD], START, t)
    story = project.run(session_pause=3.0)
    assert ["error", "completed"] == story.outcomes
    assert [(2, "it crashed")] == [
        (when, event.message) for when, event in story.of(ev.DeliverSessionEnded)[:1]
    ]
    assert [
        (2, ev.DeliverSessionRetry(attempt=1, max_retries=3, message="it crashed"))
    ] == story.of(ev.DeliverSessionRetry)
    assert [0, 5] == story.times(ev.DeliverSessionStarted)
    assert ("all_passed", 2, "") == (story.ended.reason, story.ended.sessions, story.ended.error)
    first, second = project.agent.spawned
    assert first.session_id != second.session_id
    assert second.resume_session_id is None
    t.check_subscriptions(crashing, "^-!")


@pytest.mark.parametrize(("max_retries", "sessions"), [(0, 1), (1, 2), (3, 4)])
def test_retries_run_out(max_retries: int, sessions: int, tmp_path: Path) -> None:
    """After `max_retries` failures in a row the next one ends the loop (AUT-061)."""
    project = DeliverLoop(tmp_path, [crash(f"no {n}") for n in range(5)], START)
    story = project.run(max_retries=max_retries)
    end = story.ended
    assert ("max_retries_exceeded", sessions) == (end.reason, end.sessions)
    assert f"no {sessions - 1}" == end.error
    assert not end.success
    assert story.error is None
    told = [event.attempt for _, event in story.of(ev.DeliverSessionRetry)]
    assert list(range(1, sessions)) == told
    project.assert_released()


def test_a_success_resets_the_count(tmp_path: Path) -> None:
    """Only failures in a row count (AUT-057)."""
    turns = [crash(), crash(), Turn(), crash(), crash(), Turn(), crash(), crash(), GOOD]
    story = DeliverLoop(tmp_path, turns, START).run(max_retries=2)
    assert ("all_passed", 9) == (story.ended.reason, story.ended.sessions)
    assert [1, 2] * 3 == [event.attempt for _, event in story.of(ev.DeliverSessionRetry)]


def test_failed_sessions_count_as_sessions(tmp_path: Path) -> None:
    """A failure in the last session allowed ends with that limit (AUT-058, AUT-065)."""
    story = DeliverLoop(tmp_path, [Turn(), crash()], START).run(max_sessions=2)
    assert ("max_iterations", 2) == (story.ended.reason, story.ended.sessions)


def test_a_crash_that_has_passed_all(tmp_path: Path) -> None:
    """After a failed session the deliverables decide nothing: another one follows (AUT-058)."""
    failed = Turn(events=(), leaves={"a": "passed"}, error=crash().error)
    story = DeliverLoop(tmp_path, [failed, Turn()], START).run()
    assert ["error", "completed"] == story.outcomes
    assert "all_passed" == story.ended.reason


def test_execution_errors_count_as_failures(tmp_path: Path) -> None:
    """Execution errors count as failures, and their cost counts too (AUT-056)."""
    ended = ev.SessionEnded(outcome="failed", cost_usd=0.5, num_turns=3)
    failed = Turn((ev.AgentMessage(text="oh"), ended), error=AgentFailed("a\nb", reason="unknown"))
    story = DeliverLoop(tmp_path, [failed, failed], START).run(max_retries=1)
    assert ["execution_error"] * 2 == story.outcomes
    assert ("max_retries_exceeded", 1.0) == (story.ended.reason, story.ended.cost_usd)
    assert [0.5, 0.5] == [event.cost_usd for _, event in story.of(ev.DeliverSessionEnded)]
    assert "a\nb" == story.of(ev.DeliverSessionEnded)[0][1].message


def test_an_execution_error_that_has_passed_all(tmp_path: Path) -> None:
    """After an execution error, which has a result, passed deliverables end the loop."""
    ended = ev.SessionEnded(outcome="failed", cost_usd=0.5, num_turns=3)
    error = AgentFailed("oh", reason="unknown")
    story = DeliverLoop(tmp_path, [Turn((ended,), {"a": "passed"}, error)], START).run()
    assert ("all_passed", 1) == (story.ended.reason, story.ended.sessions)


def test_the_turn_limit_does_not_end_the_loop(tmp_path: Path) -> None:
    """The turn limit is not a failure; another session follows (AUT-055)."""
    ended = ev.SessionEnded(outcome="max_turns", cost_usd=0.5)
    limited = Turn((ended,), error=AgentFailed("40 turns", reason="max_turns"))
    story = DeliverLoop(tmp_path, [limited, limited, limited, GOOD], START).run(max_retries=0)
    assert ["max_turns"] * 3 + ["completed"] == story.outcomes
    assert [] == story.of(ev.DeliverSessionRetry)
    assert "all_passed" == story.ended.reason


@pytest.mark.parametrize("error", [crash().error, GuardNotLive("gone"), ValueError("oh")])
def test_an_error_behind_a_good_result(error: Exception, tmp_path: Path) -> None:
    """An error after a good result is ignored: the session is completed (AUT-024)."""
    turn = Turn((ev.AgentMessage(text="all done"), DONE), {"a": "passed"}, error)
    story = DeliverLoop(tmp_path, [turn], START).run()
    assert ["completed"] == story.outcomes
    assert "all done" == story.of(ev.DeliverSessionEnded)[0][1].message
    assert "all_passed" == story.ended.reason


def test_a_stream_without_a_result(tmp_path: Path) -> None:
    """A session without a result completes at no cost, with a warning (AUT-026)."""
    story = DeliverLoop(tmp_path, [Turn((ev.AgentMessage(text="hm"),)), GOOD], START).run()
    assert ["completed", "completed"] == story.outcomes
    assert ["session 1 reported no result"] == story.warnings
    first = story.of(ev.DeliverSessionEnded)[0][1]
    assert (None, "hm") == (first.cost_usd, first.message)
    assert ev.DeliverWarning in [type(event) for event in story.events[:4]]


def test_several_results(tmp_path: Path) -> None:
    """The last one counts (AUT-027)."""
    ended = ev.SessionEnded(outcome="failed", num_turns=1)
    story = DeliverLoop(tmp_path, [Turn((ended, DONE), {"a": "passed"})], START).run()
    assert ["completed"] == story.outcomes


@pytest.mark.parametrize("reason", ["overloaded", "connection", "server", "rate_limit"])
def test_an_outage_is_retried_within_the_session(reason: AgentFailure, tmp_path: Path) -> None:
    """Retries within a session have growing pauses, and earlier results do not count."""
    t = deliver_marbles(x=ev.SessionEnded(outcome="failed", cost_usd=0.25, num_turns=1))
    t.error = AgentFailed("529", reason=reason)
    streams = [t.cold("-x#"), t.cold("-#"), t.cold("-x#"), t.cold("-d|")]
    turns = [Turn(stream=stream) for stream in streams]
    turns[3] = Turn(stream=streams[3], leaves={"a": "passed"})
    story = DeliverLoop(tmp_path, turns, START, t).run(retry_pause=10.0)
    assert ["completed"] == story.outcomes
    retries = [event for _, event in story.of(ev.AgentRetry)]
    assert [1, 2, 3] == [event.attempt for event in retries]
    assert pytest.approx([10, 20, 40], rel=0.2) == [event.retry_in for event in retries]
    assert [] == story.of(ev.DeliverSessionRetry)
    assert ("all_passed", 1) == (story.ended.reason, story.ended.sessions)
    assert 0.51 == pytest.approx(story.ended.cost_usd)
    assert 0.51 == pytest.approx(story.of(ev.DeliverSessionEnded)[0][1].cost_usd)


def test_an_outage_that_lasts(tmp_path: Path) -> None:
    """An outage that outlasts its retries is a failed session, and another follows."""
    down = crash("529", reason="overloaded")
    story = DeliverLoop(tmp_path, [down, down, down, down], START).run(max_retries=1)
    assert ["error", "error"] == story.outcomes
    assert [1, 1] == [event.attempt for _, event in story.of(ev.AgentRetry)]
    assert "max_retries_exceeded" == story.ended.reason


def test_each_attempt_has_its_own_result(tmp_path: Path) -> None:
    """An attempt that crashes without a result is an error, despite results of earlier ones."""
    told = ev.SessionEnded(outcome="failed", cost_usd=0.25, num_turns=1)
    first = Turn((told,), error=AgentFailed("529", reason="overloaded"))
    story = DeliverLoop(tmp_path, [first, crash(), GOOD], START).run()
    assert ["error", "completed"] == story.outcomes


@pytest.mark.parametrize(
    "error",
    [
        AgentFailed("log in", reason="auth"),
        AgentFailed("no money", reason="billing"),
        AgentNotFound("no agent"),
        GuardNotLive("no guard"),
        ConfigError("no instruction"),
        StorageError("write", "disk full"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_failure_of_every_session(error: CugginoError, tmp_path: Path) -> None:
    """A failure that every session would meet ends the loop, with its error after the result."""
    t = deliver_marbles()
    t.error = error
    agent = t.cold("-#")
    project = DeliverLoop(tmp_path, [Turn(stream=agent)], START, t)
    story = project.run()
    assert [1] == story.times(ev.DeliverEnded)
    assert ("failed", 1, error.message) == (
        story.ended.reason,
        story.ended.sessions,
        story.ended.error,
    )
    assert error is story.error
    assert [] == story.of(ev.AgentRetry, ev.DeliverSessionRetry)
    assert ["error"] == story.outcomes
    t.check_subscriptions(agent, "^!")
    project.assert_released()


@pytest.mark.parametrize("error", [ValueError("oh"), KeyError(), ProcessFailed("my", 3, "")])
def test_an_exception_of_a_custom_agent(error: Exception, tmp_path: Path) -> None:
    """An exception of a custom agent is a failed session (AUT-064)."""
    story = DeliverLoop(tmp_path, [Turn(error=error, events=()), GOOD], START).run()
    assert ["error", "completed"] == story.outcomes
    assert "all_passed" == story.ended.reason
    (retry,) = [event for _, event in story.of(ev.DeliverSessionRetry)]
    assert retry.message


class Unwilling(Sessions):
    def spawn(self, options: SpawnOptions) -> Observable[Any]:
        raise RuntimeError("not today")


def test_an_agent_that_cannot_spawn(tmp_path: Path) -> None:
    """An exception of `spawn` itself is a failed session."""
    project = DeliverLoop(tmp_path, [], START, sessions=Unwilling)
    story = project.run(max_retries=1)
    assert ["error", "error"] == story.outcomes
    assert "not today" == story.ended.error


def test_a_defect_of_the_loop_is_its_end(tmp_path: Path) -> None:
    """An unexpected exception ends the run with a result and that error."""
    project = DeliverLoop(tmp_path, [Turn()], START)
    defect = RuntimeError("defect")

    def broken(*_args: object, **_options: object) -> Observable[str]:
        raise defect

    project.replace(fingerprint=broken)
    story = project.run(progress_patience=1)
    assert ("failed", "defect") == (story.ended.reason, story.ended.error)
    assert defect is story.error
    project.assert_released()


def test_a_subscriber_that_fails(tmp_path: Path) -> None:
    """An exception in a subscriber ends the stream and is not a failed session."""
    project = DeliverLoop(tmp_path, [Turn()], START)
    stream = project.stream()
    errors: list[Exception] = []

    def picky(event: object) -> None:
        if isinstance(event, ev.AgentMessage):
            raise LookupError("not that")

    stream.subscribe(picky, errors.append, scheduler=project.marbles.scheduler)
    project.marbles.scheduler.advance_to(1000)
    assert [LookupError] == [type(error) for error in errors]
    assert 1 == len(project.agent.spawned)
    project.assert_released()


def test_a_good_result_and_then_an_interruption(tmp_path: Path) -> None:
    """A session that completed before the interruption is kept (AUT-050)."""
    t = deliver_marbles()
    agent = t.cold("-d----|")
    project = DeliverLoop(tmp_path, [Turn(stream=agent, leaves={"a": "passed"})], START, t)
    stop: Observable[object] = t.hot("---S")
    story = project.run(interrupt=stop)
    assert ["completed"] == story.outcomes
    assert ("interrupted", 1, 3) == (story.ended.reason, story.ended.passed, story.ended.duration)
    t.check_subscriptions(agent, "^--!")
