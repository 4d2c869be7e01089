"""A failure is followed by another agent; a resumed run keeps its cooldowns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.agents import Candidate, RoutedAgent
from cuggino.agents.base import LlmAgent, Role
from cuggino.config import Config
from cuggino.errors import AgentFailed, QuotaExceeded
from cuggino.events import AgentFellBack, QuotaUsed, RunResumed, WatchItemCompleted
from cuggino.storage import Workspace, list_journals
from cuggino.testing import InMemoryAgent, Say, VirtualClock, VirtualRuntime, Wait, Write
from tests.loops import plan_build_loop
from tests.loops.deliver_loop import DeliverLoop, Sessions, Turn, crash
from tests.loops.plan_build_loop import Builders, PlanBuildLoop, has, verdict
from tests.loops.session_loop import DONE
from tests.loops.supervised_loop import HOUR, limited, second
from tests.testing.one_task import DONE as ONE_DONE, ENDED, runs

pytestmark = pytest.mark.usefixtures("nothing_is_left")

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


# -- a resumed run of each loop keeps its cooldowns


FILES = {
    ".specs/page.md": "A page.",
    "SPEC.md": "A page.",
    "PLAN.PROMPT.md": "Plan.",
    "BUILD.PROMPT.md": "Build.",
    "docs/requirements/bread/SPECIFICATION.md": "# Bread\n\n## REQ-1\n\nBake.\n",
}
ROLES: dict[str, Role] = {
    "run": "planning",
    "watch": "planning",
    "deliver": "initializer",
    "loop": "plan",
}


class Process:
    """One process that works in the folder, with its own agents `A` and `B`."""

    def __init__(
        self,
        folder: Path,
        clock: VirtualClock,
        a: Mapping[Role, Any],
        b: Mapping[Role, Any],
        **settings: Any,
    ) -> None:
        self.a, self.b = InMemoryAgent(a, name="A"), InMemoryAgent(b, name="B")
        agents = (self.a, self.b)
        routed = RoutedAgent([Candidate(agent=agent, name=agent.name) for agent in agents])
        config = Config(guard="off", audit=False, **settings)
        self.cousin = VirtualRuntime(folder, routed, config=config, files=FILES, clock=clock)

    @property
    def asked(self) -> tuple[int, int]:
        """The number of sessions of each agent."""
        return len(self.a.spawned), len(self.b.spawned)

    def begin(self, loop: str, *, until: str) -> Any:
        begin: dict[str, Callable[[], Any]] = {
            "run": lambda: self.cousin.run(focus="it", until=until),
            "watch": lambda: self.cousin.watch(until=until),
            "deliver": lambda: self.cousin.deliver(until=until),
            "loop": lambda: self.cousin.plan_build(until=until),
        }
        return begin[loop]()

    def resume(self, loop: str, *, until: float | str) -> Any:
        """Resume the run; a watch is started again."""
        runtime = self.cousin.runtime
        go_on: dict[str, Callable[[], Any]] = {
            "run": runtime.resume,
            "watch": runtime.watch,
            "deliver": runtime.resume_delivery,
            "loop": runtime.resume_plan_build,
        }
        return self.cousin.play(go_on[loop](), until=until)


def usage_limit(clock: VirtualClock) -> list[Any]:
    return [[QuotaExceeded("limit met", resets_at=clock.at("2h"))]]


def no_login(_clock: VirtualClock) -> list[Any]:
    return [[AgentFailed("log in", reason="auth")]]


def crashes(_clock: VirtualClock) -> list[Any]:
    """Return a failing session as often as it is started, with three retries."""
    return [[AgentFailed("it crashed", reason="crash")] for _ in range(4)]


@pytest.mark.parametrize(
    ("loop", "failing", "back"),
    [
        ("run", usage_limit, "2h"),
        ("watch", no_login, "16m"),
        ("deliver", crashes, "16m"),
        ("loop", usage_limit, "2h"),
    ],
)
def test_cooldowns_are_kept(
    loop: str, failing: Callable[[VirtualClock], list[Any]], back: str, tmp_path: Path
) -> None:
    """A resumed run keeps its cooldowns, until they are over."""
    clock, role = VirtualClock(), ROLES[loop]
    first = Process(tmp_path, clock, {role: failing(clock)}, {role: [[Wait("3h")]]})
    first.cousin.write(".cuggino/backlog/one.md", "Do it.")
    story = first.begin(loop, until="5m")
    (fell,) = story.of(AgentFellBack)
    assert (role, "A", "B") == (fell.role, fell.from_agent, fell.to_agent)

    second = Process(tmp_path, clock, {}, {role: [[Wait("3h")]]})
    story = second.resume(loop, until="10m")
    assert 1 == len(story.of(RunResumed))
    assert [] == story.of(AgentFellBack)
    assert (0, 1) == second.asked
    assert story.error is None

    clock.advance_to(clock.at(back))
    third = Process(tmp_path, clock, {role: [[Wait("3h")]]}, {})
    third.resume(loop, until=clock.elapsed + 60)
    assert (1, 0) == third.asked


@pytest.mark.parametrize("loop", ["run", "watch", "deliver", "loop"])
def test_usage_windows_are_kept(loop: str, tmp_path: Path) -> None:
    """A resumed run knows the usage windows that were reported, until they are reset."""
    clock, role = VirtualClock(), ROLES[loop]
    used = QuotaUsed(window="five_hour", used=0.85, resets_at=clock.at("2h"))
    first = Process(tmp_path, clock, {role: [[used, Wait("3h")]]}, {}, quota_reserve=0.2)
    first.cousin.write(".cuggino/backlog/one.md", "Do it.")
    first.begin(loop, until="5m")
    assert (1, 0) == first.asked

    second = Process(tmp_path, clock, {}, {role: [[Wait("3h")]]}, quota_reserve=0.2)
    story = second.resume(loop, until="10m")
    (fell,) = story.of(AgentFellBack)
    assert ("A", "B", clock.at("2h")) == (fell.from_agent, fell.to_agent, fell.until)
    assert (0, 1) == second.asked

    clock.advance_to(clock.at("2h"))
    third = Process(tmp_path, clock, {role: [[Wait("3h")]]}, {}, quota_reserve=0.2)
    third.resume(loop, until=clock.elapsed + 60)
    assert (1, 0) == third.asked


def test_a_killed_watch_keeps_its_cooldowns(tmp_path: Path) -> None:
    """A watch that was killed during a wait keeps its cooldowns."""
    clock = VirtualClock()
    planned = runs(ONE_DONE)
    first = Process(tmp_path, clock, {"planning": usage_limit(clock)}, planned)
    item = first.cousin.write(".cuggino/backlog/one.md", "Do it.")
    story = first.begin("watch", until="5m")
    assert 1 == len(story.of(AgentFellBack))
    assert 1 == len(story.of(WatchItemCompleted))
    assert not item.exists()
    watch = list_journals(Workspace(tmp_path).journal)[-1]
    lines = watch.read_bytes().splitlines(keepends=True)
    assert b"RunEnded" in lines[-1]
    watch.write_bytes(b"".join(lines[:-1]))  # killed: it did not say that it ended

    second = Process(tmp_path, clock, {}, runs(ONE_DONE))
    second.cousin.write(".cuggino/backlog/two.md", "Do it.")
    story = second.resume("watch", until="10m")
    assert 1 == len(story.of(WatchItemCompleted))
    assert (0, 3) == second.asked


def test_later_cooldowns_are_not_changed(tmp_path: Path) -> None:
    """Resuming a run does not change cooldowns that its process has set since."""
    clock = VirtualClock()
    first = Process(tmp_path, clock, {"planning": usage_limit(clock)}, {"planning": [[Wait("3h")]]})
    first.begin("run", until="5m")
    plan = [Write("$CUGGINO_PLAN_FILE", "# Plan\n"), Say("<SPEC_ISSUE>How?</SPEC_ISSUE>"), ENDED]
    second = Process(tmp_path, clock, {"planning": [plan, [Wait("3h")]]}, {})
    second.begin("run", until="6m")
    second.resume("run", until="10m")
    assert (2, 0) == second.asked
