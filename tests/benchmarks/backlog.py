"""The watch: an item of it, and a full backlog."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import repeat
from pathlib import Path

from cuggino import Config, Runtime
from cuggino.edges import iterate
from cuggino.events import AgentMessage, WatchItemCompleted, WatchProcessingItem
from cuggino.testing import AgentRun, InMemoryAgent
from tests.benchmarks.measuring import Figure, Took, run, took, took_in_turns, wall_and_cpu
from tests.benchmarks.project import iterations, project


def items(*, count: int = 40) -> Iterator[Figure]:
    """Measure an item of a watch with three instant agents, in a repository."""
    with project() as here:
        here.plays(*iterations(1) * count)
        _fill(here.folder, count)
        config = Config(settle_seconds=0.05, guard="off", sandbox="off", agent_path=str(here.agent))
        events = iterate(Runtime.live(cwd=here.folder, config=config).watch())

        def until(done: int) -> None:
            for event in events:
                if isinstance(event, WatchItemCompleted):
                    done -= 1
                    if not done:
                        break

        try:
            until(1)  # which includes the start
            taken = took(partial(until, count - 1)).each(count - 1)
        finally:
            events.close()
        (agent,) = took_in_turns(9, here.run_agent)
    agents = agent.plus(agent).plus(agent)
    name = "watch: an item more than its agents"
    more = taken.minus(agents)
    yield from wall_and_cpu("watch.item", name, more, agents, "its agents alone", unit="ms")


def full(*, count: int = 100_000, worked: int = 20) -> Iterator[Figure]:
    """Measure a watch on a full backlog, and its list."""
    few, many = _watched(worked, worked), _watched(count, worked)
    for key, name, least, taken in (
        ("backlog.first", f"watch: until the first of {count:,} items", few[0], many[0]),
        ("backlog.item", f"watch: an item of {count:,}, without a process", few[1], many[1]),
        ("backlog.list", f"cuggino backlog list with {count:,} items", few[2], many[2]),
    ):
        yield Figure(
            key=key,
            name=f"{name}, CPU",
            value=taken.cpu,
            unit="s",
            floor=least.cpu,
            floor_name=f"the same with {worked}",
        )


def _watched(count: int, worked: int) -> tuple[Took, Took, Took]:
    """Measure a watch until its first item, for each further item, and the listing of its items."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / ".specs").mkdir()
        (folder / ".specs" / "a.md").write_text("A specification.\n")
        _fill(folder, count)
        argv = [sys.executable, "-m", "cuggino_cli", "backlog", "list"]
        (listed,) = took_in_turns(1, lambda: run(argv, cwd=folder), warm=0)
        config = Config(settle_seconds=0.05, guard="off")
        events = iterate(Runtime.live(cwd=folder, config=config, agent=_agent()).watch())

        def until(kind: type[object], done: int) -> None:
            for event in events:
                if isinstance(event, kind):
                    done -= 1
                    if not done:
                        break

        try:
            first = took(lambda: until(WatchProcessingItem, 1))
            rest = took(lambda: until(WatchItemCompleted, worked))
        finally:
            events.close()
        return first, rest.each(worked), listed


def _fill(folder: Path, count: int) -> None:
    backlog = folder / ".cuggino" / "backlog"
    backlog.mkdir(parents=True)
    for number in range(count):
        (backlog / f"{number:06}.md").write_text("Do it.\n")


def _agent() -> InMemoryAgent:
    """Return an agent that plans, implements and approves immediately, without a process."""

    def says(text: str, plan: str | None = None) -> Iterator[AgentRun]:
        return repeat(AgentRun([AgentMessage(text=text)], plan=plan))

    return InMemoryAgent(
        {
            "planning": says("<PLAN_COMPLETE>x</PLAN_COMPLETE>", "# Plan\n\n## Task 1: x\n"),
            "implementing": says("<DONE>x</DONE>"),
            "reviewing": says("<APPROVED>x</APPROVED>"),
        }
    )
