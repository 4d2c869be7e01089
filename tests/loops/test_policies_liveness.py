"""Agents that hang in the coding loop, in virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.config import Config
from cuggino.errors import AgentStalled, LoopError
from cuggino.events import AgentNudged, AgentReplaced, AgentRetry, QuotaLifted
from cuggino.testing import no_leaks
from tests.loops.supervised_loop import (
    BEFORE,
    HOUR,
    SupervisedMarbles,
    course,
    error_of,
    events_of,
    failed,
    limited,
    loop_of,
    sessions,
)


def approved_at(when: float) -> list[tuple[float, str]]:
    return [(when, tag) for tag in ("Done", "ReviewingStart", "Approved", "LoopApproved")]


class TestSilence:
    def test_the_ladder(self, tmp_path: Path) -> None:
        """Silence leads to a nudge, then to a new agent, then to exit code 14."""
        t = SupervisedMarbles()
        agents = [t.agent("a-"), t.agent("a-a-"), t.agent("-")]
        loop = loop_of(tmp_path, t, *agents)
        with no_leaks():
            seen = t.record(loop.run(idle_timeout=5, max_retries=3))
        ends = [(5, "AgentNudged"), (12, "AgentReplaced"), (17, "LoopError 14")]
        assert [*BEFORE, *ends] == course(seen)
        assert [[(0, 5)], [(5, 12)], [(12, 17)]] == [agent.subscriptions for agent in agents]
        begun, nudged, fresh = sessions(loop, "implementing")
        assert begun.session_id == nudged.resume_session_id
        assert "the agent was silent for 5 s (no tool was running)" in nudged.prompt
        assert (None, begun.prompt) == (fresh.resume_session_id, fresh.prompt)
        assert fresh.session_id not in (None, begun.session_id)
        error = error_of(seen)
        assert isinstance(error, LoopError)
        assert isinstance(error.cause, AgentStalled)
        assert "again after a nudge and a fresh agent" in error.message
        assert "idleTimeout" in (error.hint or "")
        loop.assert_released()

    def test_a_nudge_may_help(self, tmp_path: Path) -> None:
        """The nudged session ends the stage as any other would."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("a-"), t.agent("-(d|)"))
        seen = t.record(loop.run(idle_timeout=5))
        assert [*BEFORE, (5, "AgentNudged"), *approved_at(6)] == course(seen)
        assert [AgentNudged(idle=5.0)] == [nudge for _, nudge in events_of(seen, AgentNudged)]

    def test_each_stage_has_its_own_remedies(self, tmp_path: Path) -> None:
        """Each stage has its own nudge."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("a-"), t.agent("(g|)"), t.agent("a-"), t.agent("(d|)"))
        seen = t.record(loop.run(idle_timeout=5))
        assert [5, 10] == [when for when, _ in events_of(seen, AgentNudged)]
        assert [] == events_of(seen, AgentReplaced)
        assert (10, "LoopApproved") == course(seen)[-1]

    def test_an_agent_that_cannot_resume_is_replaced(self, tmp_path: Path) -> None:
        """Without session resumption a silent agent is replaced at once."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("a-"), t.agent("-"), can_resume=False)
        seen = t.record(loop.run(idle_timeout=5))
        assert [*BEFORE, (5, "AgentReplaced"), (10, "LoopError 14")] == course(seen)

    def test_a_long_tool_is_healthy(self, tmp_path: Path) -> None:
        """A tool that is silent for twenty minutes is not interrupted."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("at 20m o(d|)"))
        seen = t.record(loop.run(idle_timeout=900, tool_timeout=7200))
        assert [*BEFORE, *approved_at(1203)] == course(seen)

    def test_a_tool_that_hangs(self, tmp_path: Path) -> None:
        """A running tool has a separate timeout and is named."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("at-"), t.agent("(d|)"))
        seen = t.record(loop.run(idle_timeout=900, tool_timeout=7200))
        assert [(7201, AgentNudged(idle=7200.0, tool="Bash"))] == events_of(seen, AgentNudged)
        assert "(Bash was running)" in sessions(loop, "implementing")[1].prompt

    @pytest.mark.parametrize("limits", [{"idle_timeout": 2}, {"stage_timeout": 2}])
    def test_an_agent_that_lingers(self, tmp_path: Path, limits: dict[str, float]) -> None:
        """An agent that emitted its terminal marker is not nudged."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("d-"), t.agent("(g|)"))
        seen = t.record(loop.run(linger=10, **limits))
        assert [*BEFORE, (2, "AgentNudged"), *approved_at(2)] == course(seen)
        assert 1 == len(sessions(loop, "implementing"))


class TestStageTimeout:
    def test_the_ladder(self, tmp_path: Path) -> None:
        """A stage timeout leads to a nudge, a new agent and exit code 14, like silence."""
        t = SupervisedMarbles()
        busy = "aaaaaaaaaaaaaaaaaaaa"
        agents = [t.agent(busy), t.agent(busy), t.agent(busy)]
        loop = loop_of(tmp_path, t, *agents)
        seen = t.record(loop.run(stage_timeout=6, idle_timeout=5))
        steps = [(6, "AgentNudged"), (12, "AgentReplaced"), (18, "LoopError 14")]
        assert [*BEFORE, *steps] == course(seen)
        assert [AgentNudged()] == [nudge for _, nudge in events_of(seen, AgentNudged)]
        assert "stageTimeout" in (error_of(seen).hint or "")

    def test_it_shares_the_remedies(self, tmp_path: Path) -> None:
        """A stage nudged for silence is replaced at its timeout."""
        t = SupervisedMarbles()
        busy = "aaaaaaaaaaaaaaaaaaaa"
        loop = loop_of(tmp_path, t, t.agent("a-"), t.agent(busy), t.agent("(d|)"))
        seen = t.record(loop.run(stage_timeout=10, idle_timeout=5))
        steps = [(5, "AgentNudged"), (15, "AgentReplaced")]
        assert [*BEFORE, *steps, *approved_at(15)] == course(seen)
        assert [AgentReplaced()] == [replaced for _, replaced in events_of(seen, AgentReplaced)]

    def test_a_replacement_is_supervised(self, tmp_path: Path) -> None:
        """An agent nudged at its timeout is replaced for silence."""
        t = SupervisedMarbles()
        busy = "aaaaaaaaaaaaaaaaaaaa"
        loop = loop_of(tmp_path, t, t.agent(busy), t.agent("a-"), t.agent("(d|)"))
        seen = t.record(loop.run(stage_timeout=10, idle_timeout=5))
        steps = [(10, "AgentNudged"), (15, "AgentReplaced")]
        assert [*BEFORE, *steps, *approved_at(15)] == course(seen)


class TestRepetition:
    def test_the_ladder(self, tmp_path: Path) -> None:
        """An agent that repeats a tool call is nudged, replaced, and ends with exit code 14."""
        t = SupervisedMarbles()
        agents = [t.agent("a" + "to" * 9) for _ in range(3)]
        loop = loop_of(tmp_path, t, *agents)
        with no_leaks():
            seen = t.record(loop.run(repetition_limit=3, idle_timeout=900, max_retries=3))
        steps = [(6, "AgentNudged"), (12, "AgentReplaced"), (18, "LoopError 14")]
        assert [*BEFORE, *steps] == course(seen)
        begun, nudged, fresh = sessions(loop, "implementing")
        assert begun.session_id == nudged.resume_session_id
        assert "called Bash 3 times in a row" in nudged.prompt
        assert (None, begun.prompt) == (fresh.resume_session_id, fresh.prompt)
        loop.assert_released()

    def test_the_projects_default(self, tmp_path: Path) -> None:
        """The settings of a project limit repetition to 20 calls."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("to" * 30), t.agent("to" * 19 + "(d|)"))
        seen = t.record(loop.run(repetition_limit=Config().repetition_limit))
        ((when, nudged),) = events_of(seen, AgentNudged)
        assert (39, AgentNudged(tool="Bash", repeated=20)) == (when, nudged)
        assert "LoopApproved" == course(seen)[-1][1]


class TestTogether:
    def test_a_retry_after_a_nudge(self, tmp_path: Path) -> None:
        """A nudged session that fails is retried, without a second nudge for silence."""
        t = SupervisedMarbles()
        loop = loop_of(
            tmp_path, t, t.agent("a-"), t.agent("a#", failed()), t.agent("a-"), t.agent("(d|)")
        )
        seen = t.record(loop.run(idle_timeout=5, max_retries=1))
        ((failed_at, retry),) = events_of(seen, AgentRetry)
        assert 6 == failed_at
        ((replaced, _),) = events_of(seen, AgentReplaced)
        assert replaced == pytest.approx(6 + retry.retry_in + 5, abs=0.002)
        steps = [(5, "AgentNudged"), (6, "AgentRetry"), (replaced, "AgentReplaced")]
        assert [*BEFORE, *steps, *approved_at(replaced)] == course(seen)
        begun, nudged, retried, fresh = sessions(loop, "implementing")
        assert [begun.session_id] * 2 == [nudged.resume_session_id, retried.resume_session_id]
        assert fresh.resume_session_id is None

    def test_silence_after_a_retry(self, tmp_path: Path) -> None:
        """A retried session has an idle timeout, which excludes the pause."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("a#", failed()), t.agent("a-"), t.agent("(d|)"))
        seen = t.record(loop.run(idle_timeout=5, max_retries=1, retry_pause=60))
        ((failed_at, retry),) = events_of(seen, AgentRetry)
        ((nudged, _),) = events_of(seen, AgentNudged)
        assert nudged == pytest.approx(failed_at + retry.retry_in + 5, abs=0.002)
        steps = [(1, "AgentRetry"), (nudged, "AgentNudged")]
        assert [*BEFORE, *steps, *approved_at(nudged)] == course(seen)
        begun, *others = sessions(loop, "implementing")
        assert [begun.session_id] * 2 == [options.resume_session_id for options in others]

    def test_silence_after_a_usage_limit(self, tmp_path: Path) -> None:
        """A session resumed after a usage limit has an idle timeout, which excludes the wait."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("a#", limited(HOUR)), t.agent("a-"), t.agent("(d|)"))
        seen = t.record(loop.run(idle_timeout=5, stage_timeout=60, wait_for_quota=True))
        assert [HOUR + 60] == [when for when, _ in events_of(seen, QuotaLifted)]
        assert [HOUR + 65] == [when for when, _ in events_of(seen, AgentNudged)]
        assert (HOUR + 65, "LoopApproved") == course(seen)[-1]

    def test_a_limit_after_a_nudge(self, tmp_path: Path) -> None:
        """A nudged session that meets a usage limit waits and is resumed."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("a-"), t.agent("a#", limited(60)), t.agent("(d|)"))
        seen = t.record(loop.run(idle_timeout=5, wait_for_quota=True))
        assert ["AgentNudged", "QuotaWaiting"] == [tag for _, tag in course(seen)[4:6]]
        assert (120, "LoopApproved") == course(seen)[-1]
        begun, nudged, after = sessions(loop, "implementing")
        assert begun.session_id == nudged.resume_session_id == after.resume_session_id

    def test_a_reminder_is_supervised(self, tmp_path: Path) -> None:
        """A session reminded of its missing marker is supervised too."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("a|"), t.agent("a#", failed()), t.agent("a-"))
        seen = t.record(loop.run(idle_timeout=5, max_retries=1), until=30)
        assert ["AgentRetry", "AgentNudged"] == [tag for _, tag in course(seen)[4:6]]

    @pytest.mark.parametrize("when", [3, 7])
    def test_disposal_between_the_steps(self, tmp_path: Path, when: float) -> None:
        """Disposal before or after a nudge leaves no timer and no agent."""
        t = SupervisedMarbles()
        agents = [t.agent("a-"), t.agent("a-")]
        loop = loop_of(tmp_path, t, *agents)
        with no_leaks():
            t.record(
                loop.run(idle_timeout=5, stage_timeout=60, max_duration=600),
                dispose_at=when,
                until=when,
            )
        assert when == [agent.subscriptions for agent in agents if agent.subscriptions][-1][0][1]
        assert 0 == t.pending
        loop.assert_released()
