"""A resumed run of each loop keeps its cooldowns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents import Candidate, RoutedAgent
from cuggino.agents.base import Role
from cuggino.config import Config
from cuggino.errors import AgentFailed, QuotaExceeded
from cuggino.events import AgentFellBack, QuotaUsed, RunResumed, WatchItemCompleted
from cuggino.storage import Workspace, list_journals
from cuggino.testing import InMemoryAgent, Say, VirtualClock, VirtualRuntime, Wait, Write
from tests.testing.one_task import DONE, ENDED, runs

pytestmark = pytest.mark.usefixtures("nothing_is_left")

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


def limit(clock: VirtualClock) -> list[Any]:
    return [[QuotaExceeded("limit met", resets_at=clock.at("2h"))]]


def no_login(_clock: VirtualClock) -> list[Any]:
    return [[AgentFailed("log in", reason="auth")]]


def crashes(_clock: VirtualClock) -> list[Any]:
    """Return a failing session as often as it is started, with three retries."""
    return [[AgentFailed("it crashed", reason="crash")] for _ in range(4)]


@pytest.mark.parametrize(("failing", "back"), [(limit, "2h"), (no_login, "16m"), (crashes, "16m")])
@pytest.mark.parametrize("loop", ["run", "watch", "deliver", "loop"])
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
    planned = runs(DONE)
    first = Process(tmp_path, clock, {"planning": limit(clock)}, planned)
    item = first.cousin.write(".cuggino/backlog/one.md", "Do it.")
    story = first.begin("watch", until="5m")
    assert 1 == len(story.of(AgentFellBack))
    assert 1 == len(story.of(WatchItemCompleted))
    assert not item.exists()
    watch = list_journals(Workspace(tmp_path).journal)[-1]
    lines = watch.read_bytes().splitlines(keepends=True)
    assert b"RunEnded" in lines[-1]
    watch.write_bytes(b"".join(lines[:-1]))  # killed: it did not say that it ended

    second = Process(tmp_path, clock, {}, runs(DONE))
    second.cousin.write(".cuggino/backlog/two.md", "Do it.")
    story = second.resume("watch", until="10m")
    assert 1 == len(story.of(WatchItemCompleted))
    assert (0, 3) == second.asked


def test_later_cooldowns_are_not_changed(tmp_path: Path) -> None:
    """Resuming a run does not change cooldowns that its process has set since."""
    clock = VirtualClock()
    first = Process(tmp_path, clock, {"planning": limit(clock)}, {"planning": [[Wait("3h")]]})
    first.begin("run", until="5m")
    plan = [Write("$CUGGINO_PLAN_FILE", "# Plan\n"), Say("<SPEC_ISSUE>How?</SPEC_ISSUE>"), ENDED]
    second = Process(tmp_path, clock, {"planning": [plan, [Wait("3h")]]}, {})
    second.begin("run", until="6m")
    second.resume("run", until="10m")
    assert (2, 0) == second.asked
