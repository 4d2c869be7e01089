"""Transient and permanent failures of agents in the coding loop, in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, throw

from cuggino.errors import AgentFailed, AgentFailure, LoopError
from cuggino.events import AgentRetry, StageCost
from cuggino.testing import no_leaks
from tests.loops.coding_loop import CodingLoop
from tests.loops.supervised_loop import (
    HOUR,
    SupervisedMarbles,
    course,
    error_of,
    events_of,
    failed,
    limited,
    sessions,
)

PLANNED = ["IterationStart", "PlanningStart", "PlanComplete", "ImplementingStart"]
APPROVED = ["Done", "ReviewingStart", "Approved", "LoopApproved"]


def loop_of(
    folder: Path, t: SupervisedMarbles, *implementing: Observable[Any], can_resume: bool = True
) -> CodingLoop:
    """A loop that plans at once, implements as it is given, and is approved at once."""
    return CodingLoop(
        folder,
        planning=[t.agent("(c|)")],
        implementing=list(implementing),
        reviewing=[t.agent("(y|)")],
        can_resume=can_resume,
    )


class TestRetries:
    def test_a_transient_failure_is_retried(self, tmp_path: Path) -> None:
        """A transient failure is reported, and the same session is resumed after a pause."""
        t = SupervisedMarbles()
        first, second = t.agent("aa#", failed()), t.agent("-d|")
        loop = loop_of(tmp_path, t, first, second)
        with no_leaks():
            seen = t.record(loop.run(max_retries=3))
        assert [*PLANNED, "AgentRetry", *APPROVED] == [tag for _, tag in course(seen)]
        ((when, retry),) = events_of(seen, AgentRetry)
        assert (2, "overloaded", 1, 3) == (when, retry.reason, retry.attempt, retry.max_retries)
        assert 4 <= retry.retry_in <= 6
        again = when + retry.retry_in
        assert [(0, 2)] == first.subscriptions
        assert pytest.approx((again, again + 2), abs=0.01) == second.subscriptions[0]
        begun, resumed = sessions(loop, "implementing")
        assert begun.session_id == resumed.resume_session_id
        assert resumed.session_id is None
        assert "was cut off (it was overloaded)" in resumed.prompt
        assert (begun.turn, begun.env) == (resumed.turn, resumed.env)
        loop.assert_released()

    def test_without_session_resumption(self, tmp_path: Path) -> None:
        """Without session resumption a new session gets the same prompts."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("a#", failed()), t.agent("d|"), can_resume=False)
        t.record(loop.run(max_retries=1))
        begun, fresh = sessions(loop, "implementing")
        assert (begun.prompt, begun.system_prompt) == (fresh.prompt, fresh.system_prompt)
        assert fresh.resume_session_id is None
        assert fresh.session_id not in (None, begun.session_id)

    def test_a_session_without_events_is_not_resumed(self, tmp_path: Path) -> None:
        """A session that ended before its first event is not resumed."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("#", failed("connection")), t.agent("d|"))
        t.record(loop.run(max_retries=1))
        begun, fresh = sessions(loop, "implementing")
        assert fresh.resume_session_id is None
        assert begun.prompt == fresh.prompt

    def test_a_lost_session_is_replaced(self, tmp_path: Path) -> None:
        """A session that the agent has lost is replaced at once."""
        t = SupervisedMarbles()
        unknown = throw(AgentFailed("No conversation found", reason="bad_request"))
        loop = loop_of(tmp_path, t, t.agent("a#", failed()), unknown, t.agent("d|"))
        seen = t.record(loop.run(max_retries=1))
        assert [*PLANNED, "AgentRetry", *APPROVED] == [tag for _, tag in course(seen)]
        begun, refused, fresh = sessions(loop, "implementing")
        assert begun.session_id == refused.resume_session_id
        assert (None, begun.prompt) == (fresh.resume_session_id, fresh.prompt)

    def test_the_last_retry(self, tmp_path: Path) -> None:
        """After the last retry the loop fails, and the stage's cost is reported before."""
        t = SupervisedMarbles()
        broken = [t.agent("ax#", failed()) for _ in range(4)]
        loop = loop_of(tmp_path, t, *broken, t.agent("d|"))
        seen = t.record(loop.run(max_retries=3))
        expected = [*PLANNED, *["AgentRetry"] * 3, "StageCost", "LoopError 1"]
        assert expected == [tag for _, tag in course(seen)]
        begun, *resumed = sessions(loop, "implementing")
        assert [begun.session_id] * 3 == [options.resume_session_id for options in resumed]
        error = error_of(seen)
        assert isinstance(error, LoopError)
        assert "Loop error in implementing phase: it was overloaded" == error.message
        assert isinstance(error.cause, AgentFailed)
        assert [1.0] == [cost.cost_usd for _, cost in events_of(seen, StageCost)]
        loop.assert_released()

    def test_the_pauses_grow(self, tmp_path: Path) -> None:
        """Each retry pause is about twice the one before."""
        t = SupervisedMarbles()
        agents = [*(t.agent("a#", failed()) for _ in range(3)), t.agent("d|")]
        loop = loop_of(tmp_path, t, *agents)
        retries = events_of(t.record(loop.run(max_retries=3)), AgentRetry)
        for pause, (_, retry) in zip((5, 10, 20), retries, strict=True):
            assert 0.8 * pause <= retry.retry_in <= 1.2 * pause
        begun = [agent.subscriptions[0][0] for agent in agents[1:]]
        assert pytest.approx([when + e.retry_in for when, e in retries], abs=0.01) == begun

    @pytest.mark.parametrize(
        "reason", ["connection", "crash", "overloaded", "rate_limit", "server", "unknown"]
    )
    def test_every_transient_failure_is_retried(self, tmp_path: Path, reason: AgentFailure) -> None:
        """Each transient failure, such as a lost connection, is retried."""
        t = SupervisedMarbles()
        words = "This request would exceed your account's rate limit. Please try again later."
        loop = loop_of(tmp_path, t, t.agent("a#", AgentFailed(words, reason=reason)), t.agent("d|"))
        seen = t.record(loop.run(max_retries=1, wait_for_quota=True))
        assert [*PLANNED, "AgentRetry", *APPROVED] == [tag for _, tag in course(seen)]
        assert [reason] == [retry.reason for _, retry in events_of(seen, AgentRetry)]

    def test_each_stage_has_all_its_retries(self, tmp_path: Path) -> None:
        """Each stage has the full number of retries."""
        t = SupervisedMarbles()
        loop = CodingLoop(
            tmp_path,
            planning=[t.agent("a#", failed()), t.agent("a#", failed("server")), t.agent("c|")],
            implementing=[t.agent("a#", failed()), t.agent("a#", failed("crash")), t.agent("d|")],
            reviewing=[t.agent("(y|)")],
            can_resume=True,
        )
        seen = t.record(loop.run(max_retries=2))
        assert "LoopApproved" == course(seen)[-1][1]
        retries = [(retry.reason, retry.attempt) for _, retry in events_of(seen, AgentRetry)]
        expected = [("overloaded", 1), ("server", 2), ("overloaded", 1), ("crash", 2)]
        assert expected == retries

    @pytest.mark.parametrize("reason", ["auth", "billing", "bad_request", "prompt_too_long"])
    def test_permanent_failures_are_not_retried(self, tmp_path: Path, reason: AgentFailure) -> None:
        """A permanent failure, such as a refused key, ends the loop at once."""
        t = SupervisedMarbles()
        error = AgentFailed("no", reason=reason)
        loop = loop_of(tmp_path, t, t.agent("a#", error), t.agent("d|"))
        seen = t.record(loop.run(max_retries=3, wait_for_quota=True))
        assert (1, "LoopError 1") == course(seen)[-1]
        assert 1 == len(sessions(loop, "implementing"))

    def test_the_pause_can_be_set(self, tmp_path: Path) -> None:
        """`retry_pause` is the first pause, give or take a fifth."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("a#", failed()), t.agent("d|"))
        seen = t.record(loop.run(max_retries=1, retry_pause=100))
        assert 80 <= events_of(seen, AgentRetry)[0][1].retry_in <= 120


class TestTogether:
    def test_a_limit_after_a_retry(self, tmp_path: Path) -> None:
        """A retried session that meets a usage limit waits, and has the retries that are left."""
        t = SupervisedMarbles()
        loop = loop_of(
            tmp_path,
            t,
            t.agent("a#", failed()),
            t.agent("a#", limited(60)),
            t.agent("a#", failed()),
            t.agent("d|"),
        )
        seen = t.record(loop.run(max_retries=2, wait_for_quota=True))
        assert [
            *PLANNED,
            "AgentRetry",
            "QuotaWaiting",
            "QuotaWaiting",
            "QuotaLifted",
            "AgentRetry",
            *APPROVED,
        ] == [tag for _, tag in course(seen)]
        assert [1, 2] == [retry.attempt for _, retry in events_of(seen, AgentRetry)]
        begun, *resumed = sessions(loop, "implementing")
        assert [begun.session_id] * 3 == [options.resume_session_id for options in resumed]

    def test_crashes_and_limits_in_turn(self, tmp_path: Path) -> None:
        """Waits for usage limits restore no retries: crash, crash, limit in turn ends."""
        t = SupervisedMarbles()
        turns = [
            t.agent("a#", error)
            for n in range(4)
            for error in (failed("crash"), failed("crash"), limited(n * HOUR + HOUR))
        ]
        loop = loop_of(tmp_path, t, *turns)
        seen = t.record(loop.run(max_retries=3, wait_for_quota=True))
        assert [1, 2, 3] == [retry.attempt for _, retry in events_of(seen, AgentRetry)]
        assert "LoopError 1" == course(seen)[-1][1]
        assert 5 == len(sessions(loop, "implementing"))

    @pytest.mark.parametrize("pause", ["retry", "quota"])
    def test_disposal_in_a_pause(self, tmp_path: Path, pause: str) -> None:
        """Disposal during a retry pause leaves no timer and frees the workspace."""
        t = SupervisedMarbles()
        error = failed() if pause == "retry" else limited(HOUR)
        loop = loop_of(tmp_path, t, t.agent("a#", error), t.agent("d|"))
        with no_leaks():
            seen = t.record(
                loop.run(
                    max_retries=3,
                    wait_for_quota=True,
                    idle_timeout=900,
                    stage_timeout=9000,
                    max_duration=86400,
                ),
                dispose_at=3,
                until=3,
            )
        expected = "AgentRetry" if pause == "retry" else "QuotaWaiting"
        assert (1, expected) == course(seen)[-1]
        assert 0 == t.pending
        assert 1 == len(sessions(loop, "implementing"))
        loop.assert_released()
