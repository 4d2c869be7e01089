"""The deliverables loop and usage limits (AUT-053, AUT-054, AUT-062, AUT-070 to AUT-080)."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.errors import AgentFailed, QuotaExceeded
from tests.loops.deliver_loop import DONE, DeliverLoop, Turn, deliver_marbles
from tests.loops.supervised_loop import HOUR, limited, second

START = {"a": "pending"}
PASSED = {"a": "passed"}
LIMIT = ev.SessionEnded(outcome="quota", cost_usd=0.25)
MARGIN = 60.0


def test_the_default_is_to_end(tmp_path: Path) -> None:
    """By default a usage limit ends the run, then comes the error with the reset time (AUT-077)."""
    t = deliver_marbles(q=LIMIT)
    t.error = limited(HOUR)
    agent = t.cold("-aq#")
    project = DeliverLoop(tmp_path, [Turn(stream=agent)], START, t)
    story = project.run()
    assert ["quota"] == story.outcomes
    assert [3] == story.times(ev.DeliverSessionEnded)
    end = story.ended
    assert ("quota_exceeded", 1, 0.25, "limit met") == (
        end.reason,
        end.sessions,
        end.cost_usd,
        end.error,
    )
    assert isinstance(story.error, QuotaExceeded)
    assert second(HOUR) == story.error.resets_at
    assert [] == story.of(ev.QuotaWaiting, ev.DeliverSessionRetry)
    t.check_subscriptions(agent, "^--!")
    project.assert_released()


@pytest.mark.parametrize("error", [None, AgentFailed("exit code 1", reason="crash")])
def test_a_result_that_reports_the_limit(error: AgentFailed | None, tmp_path: Path) -> None:
    """A result that reports the limit counts, with or without an error after it (AUT-024)."""
    turn = Turn((ev.AgentMessage(text="You've hit your limit"), LIMIT), error=error)
    story = DeliverLoop(tmp_path, [turn], START).run()
    assert ["quota"] == story.outcomes
    assert "quota_exceeded" == story.ended.reason
    assert isinstance(story.error, QuotaExceeded)
    assert "You've hit your limit" == story.error.message


def test_an_agent_without_a_result(tmp_path: Path) -> None:
    """An error without a result is enough for a usage limit."""
    story = DeliverLoop(tmp_path, [Turn((), error=limited(HOUR))], START).run()
    assert ["quota"] == story.outcomes
    assert "quota_exceeded" == story.ended.reason


@pytest.mark.parametrize("can_resume", [True, False])
def test_a_wait_until_the_limit_is_lifted(can_resume: bool, tmp_path: Path) -> None:
    """A wait stays within one session, resumed if the agent supports it (AUT-078)."""
    t = deliver_marbles(q=LIMIT)
    t.error = limited(HOUR)
    first, second_ = t.cold("-aq#"), t.cold("--d|")
    turns = [Turn(stream=first), Turn(stream=second_, leaves=PASSED)]
    project = DeliverLoop(tmp_path, turns, START, t, can_resume=can_resume)
    story = project.run(wait_for_quota=True, session_pause=100.0)
    lifted = HOUR + MARGIN
    assert ["completed"] == story.outcomes
    assert [(3.0, None), (lifted, lifted + 3)] == [
        (first.subscriptions[0][1], None),
        second_.subscriptions[0],
    ]
    assert [lifted] == story.times(ev.QuotaLifted)
    assert 3 == story.times(ev.QuotaWaiting)[0]
    assert [0] == story.times(ev.DeliverSessionStarted)
    end = story.ended
    assert ("all_passed", 1, lifted + 3) == (end.reason, end.sessions, end.duration)
    assert pytest.approx(0.26) == end.cost_usd
    told = project.agent.spawned
    if can_resume:
        assert told[0].session_id == told[1].resume_session_id
        assert "cut off" in told[1].prompt
    else:
        assert told[0].prompt == told[1].prompt
        assert told[1].resume_session_id is None
    project.assert_released()


def test_limits_without_a_reset_time(tmp_path: Path) -> None:
    """Limits without a reset time are retried with growing pauses for a day (AUT-054)."""
    turns = [Turn((LIMIT,), error=limited())] * 10
    project = DeliverLoop(tmp_path, turns, START)
    story = project.run(wait_for_quota=True)
    lifted = [0.0, *story.times(ev.QuotaLifted)]
    pauses = [after - before for before, after in pairwise(lifted)]
    assert [900, 1800, 3600, 7200, 14400] == [round(pause) for pause in pauses[:5]]
    assert 86400 == sum(map(round, pauses))
    assert ["quota"] == story.outcomes
    assert ("quota_exceeded", 1) == (story.ended.reason, story.ended.sessions)
    assert isinstance(story.error, QuotaExceeded)
    project.assert_released()


def test_a_limit_in_every_session(tmp_path: Path) -> None:
    """Each limit is waited for and none is a failure; each session counts once (AUT-062)."""
    t = deliver_marbles(q=LIMIT)
    t.error = limited(HOUR)
    turns = []
    for n in range(1, 4):
        t.error = limited(n * HOUR)
        turns += [Turn(stream=t.cold("-q#")), Turn(stream=t.cold("-d|"))]
    turns[-1] = Turn(stream=t.cold("-d|"), leaves=PASSED)
    story = DeliverLoop(tmp_path, turns, START, t).run(wait_for_quota=True, max_retries=0)
    assert ["completed"] * 3 == story.outcomes
    assert ("all_passed", 3) == (story.ended.reason, story.ended.sessions)
    assert 3 == len(story.of(ev.QuotaLifted))


def test_a_wait_that_ends_in_a_crash(tmp_path: Path) -> None:
    """A session that crashes after a wait is a failed one."""
    crashed = Turn((), error=AgentFailed("oh", reason="crash"))
    turns = [Turn((LIMIT,), error=limited(HOUR)), crashed, Turn(leaves=PASSED)]
    story = DeliverLoop(tmp_path, turns, START).run(wait_for_quota=True)
    assert ["error", "completed"] == story.outcomes
    assert ("all_passed", 2) == (story.ended.reason, story.ended.sessions)


def test_the_gate_is_shared(tmp_path: Path) -> None:
    """A usage limit met by another loop is waited for before a session starts."""
    t = deliver_marbles()
    agent = t.cold("-d|")
    project = DeliverLoop(tmp_path, [Turn(stream=agent, leaves=PASSED)], START, t)
    project.gate.close(second(HOUR), now=second(0), resets_at=second(HOUR), message="theirs")
    story = project.run(wait_for_quota=True)
    assert [(HOUR + MARGIN, HOUR + MARGIN + 2)] == agent.subscriptions
    assert "all_passed" == story.ended.reason
    assert 0 == project.gate.remaining(second(t.now))


def test_a_closed_gate_without_waiting(tmp_path: Path) -> None:
    """With a closed gate and without waiting the session ends before its agent starts."""
    project = DeliverLoop(tmp_path, [], START)
    project.gate.close(second(HOUR), now=second(0), resets_at=second(HOUR), message="theirs")
    story = project.run()
    assert (["quota"], "quota_exceeded") == (story.outcomes, story.ended.reason)
    assert [] == project.agent.spawned
    assert [0] == story.times(ev.DeliverEnded)


def test_a_limit_in_the_last_session_allowed(tmp_path: Path) -> None:
    """A wait in the last session is not counted as another session."""
    turns = [Turn((LIMIT,), error=limited(HOUR)), Turn((DONE,))]
    story = DeliverLoop(tmp_path, turns, START).run(wait_for_quota=True, max_sessions=1)
    assert (["completed"], "max_iterations") == (story.outcomes, story.ended.reason)


def test_the_limit_comes_before_all_is_passed(tmp_path: Path) -> None:
    """A usage limit takes precedence over success (AUT-050)."""
    story = DeliverLoop(tmp_path, [Turn((LIMIT,), PASSED, limited(HOUR))], START).run()
    assert ("quota_exceeded", 1) == (story.ended.reason, story.ended.passed)
