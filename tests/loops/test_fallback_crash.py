"""A failure that the loops follow by another session: that is the session of the next agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.agents import Candidate, RoutedAgent
from cuggino.agents.base import LlmAgent
from cuggino.errors import AgentFailed, AgentFailure, QuotaExceeded
from tests.loops import plan_build_loop
from tests.loops.deliver_loop import DeliverLoop, Sessions, Turn, crash
from tests.loops.plan_build_loop import Builders, PlanBuildLoop, has, verdict
from tests.loops.session_loop import DONE
from tests.loops.supervised_loop import HOUR, limited, second

START = {"a": "pending", "b": "pending"}
ONE = {"a": "passed", "b": "pending"}
BOTH = {"a": "passed", "b": "passed"}
LIMIT = Turn(events=(ev.SessionEnded(outcome="quota"),), error=limited(HOUR))


def routed(*agents: LlmAgent) -> RoutedAgent:
    """Candidates `A` and `B`."""
    return RoutedAgent([Candidate(agent=one, name="AB"[n]) for n, one in enumerate(agents)])


def delivery(folder: Path, first: list[Turn], then: list[Turn]) -> tuple[DeliverLoop, Sessions]:
    """A deliverables loop in which B is there for when A cannot go on."""
    project = DeliverLoop(folder, first, START)
    spare = Sessions(then, folder)
    project.replace(agent=routed(project.agent, spare))
    return project, spare


def building(folder: Path, then: dict[str, Any], **first: Any) -> tuple[PlanBuildLoop, Builders]:
    """The plan/build loop, as `delivery`; both agents play turns by phase, in one folder."""
    project = PlanBuildLoop(folder, **first)
    spare = PlanBuildLoop(folder, **then).agent
    project.replace(agent=routed(project.agent, spare))
    return project, spare


def fell(events: list[Any]) -> list[tuple[str, str, str, str]]:
    """Return role, agent, fallback and reason of each fallback."""
    return [
        (event.role, event.from_agent, event.to_agent, event.reason)
        for event in events
        if isinstance(event, ev.AgentFellBack)
    ]


class TestDeliver:
    def test_the_fallback_takes_over(self, tmp_path: Path) -> None:
        """The fallback agent starts with the same prompt, within the same session of the run."""
        project, spare = delivery(tmp_path, [crash()], [Turn(leaves=BOTH)])
        story = project.run(max_retries=0)
        assert [("coding", "A", "B", "crash")] == fell(story.events)
        assert ["completed"] == story.outcomes
        assert [] == story.of(ev.DeliverSessionRetry)
        assert ("all_passed", 1) == (story.ended.reason, story.ended.sessions)
        (one,), (other,) = project.agent.spawned, spare.spawned
        assert (one.prompt, one.turn) == (other.prompt, other.turn)
        assert one.session_id != other.session_id
        project.assert_released()

    def test_an_execution_error(self, tmp_path: Path) -> None:
        """An agent that reports a failed result is replaced as well, and its cost counts."""
        ended = ev.SessionEnded(outcome="failed", cost_usd=0.5, num_turns=3)
        failed = Turn((ended,), error=AgentFailed("oh", reason="unknown"))
        project, _ = delivery(tmp_path, [failed], [Turn(leaves=BOTH)])
        story = project.run()
        assert [("coding", "A", "B", "unknown")] == fell(story.events)
        assert ["completed"] == story.outcomes
        assert 0.51 == pytest.approx(story.ended.cost_usd)

    def test_further_sessions_use_the_fallback(self, tmp_path: Path) -> None:
        """Further sessions use the fallback for 15 minutes, then the first agent again."""
        project, spare = delivery(
            tmp_path, [crash(), Turn(leaves=BOTH)], [Turn(leaves=START), Turn(leaves=ONE)]
        )
        story = project.run(session_pause=500.0)
        (told,) = story.of(ev.AgentFellBack)
        assert second(900) == told.until
        assert [0, 500, 1000] == story.times(ev.DeliverSessionStarted)
        assert ("all_passed", 3) == (story.ended.reason, story.ended.sessions)
        assert (2, 2) == (len(project.agent.spawned), len(spare.spawned))

    def test_a_second_crash_doubles_the_cooldown(self, tmp_path: Path) -> None:
        """A second crash after the cooldown doubles it."""
        project, _ = delivery(tmp_path, [crash(), crash()], [Turn(leaves=ONE), Turn(leaves=BOTH)])
        story = project.run(session_pause=1000.0)
        until = [event.until for event in story.of(ev.AgentFellBack)]
        assert [second(900), second(1000 + 1800)] == until

    def test_both_crash(self, tmp_path: Path) -> None:
        """If all agents crash, the session has failed, and the last agent runs the next one."""
        project, spare = delivery(tmp_path, [crash("a")], [crash("b"), Turn(leaves=BOTH)])
        story = project.run()
        assert [("coding", "A", "B", "crash")] == fell(story.events)
        assert ["error", "completed"] == story.outcomes
        assert ["b"] == [event.message for event in story.of(ev.DeliverSessionRetry)]
        assert (1, 2) == (len(project.agent.spawned), len(spare.spawned))

    @pytest.mark.parametrize("wait", [False, True])
    def test_a_crash_of_the_fallback(self, wait: bool, tmp_path: Path) -> None:
        """A crash of the fallback does not end the loop during the limit of the first agent."""
        project, spare = delivery(tmp_path, [LIMIT], [crash(), Turn(leaves=BOTH)])
        story = project.run(wait_for_quota=wait)
        assert [("coding", "A", "B", "quota")] == fell(story.events)
        assert ["error", "completed"] == story.outcomes
        assert [] == story.of(ev.QuotaWaiting)
        assert ("all_passed", 2) == (story.ended.reason, story.ended.sessions)
        assert (1, 2) == (len(project.agent.spawned), len(spare.spawned))

    def test_an_outage_of_the_fallback(self, tmp_path: Path) -> None:
        """A lasting outage of the fallback ends the loop with the first agent's limit."""
        down = crash("529", reason="overloaded")
        project, _ = delivery(tmp_path, [LIMIT], [down, down])
        story = project.run(max_retries=1)
        assert isinstance(story.error, QuotaExceeded)
        assert second(HOUR) == story.error.resets_at
        assert "no agent is available (A: limit met; B: 529)" == story.error.message

    @pytest.mark.parametrize("reason", ["crash", "overloaded"])
    def test_a_good_result_needs_no_fallback(self, reason: AgentFailure, tmp_path: Path) -> None:
        """An error after a good result causes no fallback (AUT-024)."""
        turn = Turn(leaves=BOTH, error=AgentFailed("late", reason=reason))
        project, spare = delivery(tmp_path, [turn], [])
        story = project.run()
        assert [] == fell(story.events)
        assert ["completed"] == story.outcomes
        assert (1, 0) == (len(project.agent.spawned), len(spare.spawned))

    @pytest.mark.parametrize("reason", ["prompt_too_long", "bad_request"])
    def test_a_failure_of_every_agent(self, reason: AgentFailure, tmp_path: Path) -> None:
        """A failure that every agent would meet is followed by a session of the same one."""
        project, spare = delivery(tmp_path, [crash(reason=reason), Turn(leaves=BOTH)], [])
        story = project.run()
        assert ["error", "completed"] == story.outcomes
        assert [] == spare.spawned


class TestPlanBuild:
    @pytest.mark.parametrize("phase", ["plan", "build"])
    def test_the_fallback_takes_over(self, phase: str, tmp_path: Path) -> None:
        """The fallback agent starts the phase with the same prompt, within the same iteration."""
        good = {"plan": [plan_build_loop.Turn()], "build": [plan_build_loop.Turn(has(True))]}
        project, spare = building(tmp_path, good, **{**good, phase: [plan_build_loop.crash()]})
        story = project.run(start="plan", max_retries=0)
        assert [(phase, "A", "B", "crash")] == fell(story.events)
        assert ["completed", "completed"] == story.outcomes
        assert [] == story.of(ev.PlanBuildSessionRetry)
        assert ("complete", 2) == (story.ended.reason, story.ended.iterations)
        (other,) = spare.of(phase)
        assert project.agent.of(phase)[0].prompt == other.prompt
        project.assert_released()

    def test_further_sessions_use_the_fallback(self, tmp_path: Path) -> None:
        """All phases use the fallback for 15 minutes, then the first agent again."""
        project, spare = building(
            tmp_path,
            {
                "plan": [plan_build_loop.Turn()],
                "build": [plan_build_loop.Turn(), plan_build_loop.Turn()],
            },
            plan=[plan_build_loop.crash()],
            build=[plan_build_loop.Turn(has(True))],
        )
        story = project.run(start="plan", iteration_pause=500.0)
        assert [("plan", "A", "B", "crash")] == fell(story.events)
        assert ["completed"] * 4 == story.outcomes
        assert (1, 2) == (len(project.agent.of("build")), len(spare.of("build")))

    def test_a_verification(self, tmp_path: Path) -> None:
        """A crash of the verifying agent is not a refutation: the fallback answers."""
        project, spare = building(
            tmp_path,
            {"judge": [verdict(), verdict()]},
            build=[plan_build_loop.Turn(has(True, J1="done"))],
            judge=[plan_build_loop.crash()],
        )
        story = project.run()
        assert [("judge", "A", "B", "crash")] == fell(story.events)
        assert [("J1", True)] == story.verdicts
        assert [] == story.warnings
        assert ("complete", 1) == (story.ended.reason, story.ended.iterations)
        assert 2 == len(spare.of("judge"))

    def test_the_verdict_of_the_fallback(self, tmp_path: Path) -> None:
        """Words of an agent that crashed are no verdict if its fallback gives none."""
        yes = verdict().events[0]
        silent = plan_build_loop.Turn(events=(DONE,))
        project, _ = building(
            tmp_path,
            {"judge": [silent], "build": []},
            build=[plan_build_loop.Turn(has(J1="done"))],
            judge=[verdict(), plan_build_loop.Turn(events=(yes,), error=crash().error)],
        )
        story = project.run(max_sessions=1)
        assert [("judge", "A", "B", "crash")] == fell(story.events)
        assert [("J1", False)] == story.verdicts
