"""A watch with several slots, with real git and agents that wait."""

from __future__ import annotations

import resource
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cuggino import Config, Runtime, events as ev
from cuggino.edges import iterate
from tests.benchmarks.measuring import Figure
from tests.benchmarks.project import Project, prints, project
from tests.benchmarks.sessions import session


class Worked(NamedTuple):
    """Time and CPU of a watch for all of its items."""

    wall: float
    """Seconds, all items."""
    own_cpu: float
    """Seconds of this process, per item."""
    landing: float
    """Seconds, per item, without its check."""


def at_once(*, items: int = 8, slots: int = 4, wait: float = 10.0) -> Iterator[Figure]:
    """Measure the speed-up of slots, and what an attempt and a landing cost."""
    with project() as here:
        one, many = (_worked(here, items, count, wait) for count in (1, slots))
    yield Figure(
        key="slots.speed",
        name=f"watch: {items} items of {wait:g} s in {slots} slots, wall time",
        value=many.wall,
        unit="s",
        floor=one.wall,
        floor_name="one after the other",
    )
    yield Figure(
        key="slots.attempt",
        name=f"watch: an attempt in one of {slots} slots, own CPU",
        value=many.own_cpu * 1e3,
        unit="ms",
        floor=one.own_cpu * 1e3,
        floor_name="an item without slots",
    )
    yield Figure(
        key="slots.landing",
        name="watch: a landing without its check, wall time",
        value=many.landing * 1e3,
        unit="ms",
    )


def memory(*, slots: int = 32, wait: float = 20.0) -> Iterator[Figure]:
    """Measure the memory of many attempts at the same time."""
    with project() as here:
        peaks = []
        for count in (2, slots):
            _prepare(here, count, wait)
            act = (
                "from pathlib import Path\n"
                "from tests.benchmarks.slots import work\n"
                f"work(Path({str(here.folder)!r}), Path({str(here.agent)!r}), {count}, {count})"
            )
            here.env["PYTHONPATH"] = _ROOT
            peaks.append(here.run_python(act).peak)
    yield Figure(
        key="slots.memory",
        name=f"watch: {slots} slots at work, memory of each above two",
        value=(peaks[1] - peaks[0]) / (slots - 2),
        unit="MiB",
    )


def _worked(here: Project, items: int, slots: int, wait: float) -> Worked:
    _prepare(here, items, wait)
    return work(here.folder, here.agent, items, slots)


def work(folder: Path, agent: Path, items: int, slots: int) -> Worked:
    """Run a watch until all items have landed."""
    config = Config(
        agent_path=str(agent),
        check_command="true",
        commit=True,
        guard="off",
        login_check=False,
        sandbox="off",
        settle_seconds=0.05,
        slots=slots,
    )
    began, before = time.perf_counter(), _own_cpu()
    landings: list[float] = []
    landed_at = checked = checked_at = 0.0
    done = 0
    events = iterate(Runtime.live(cwd=folder, config=config).watch())
    landing: str | None = None
    try:
        for event in events:
            now = time.perf_counter()
            match event:
                case ev.WatchLanding(filename=name):
                    landing, landed_at, checked = name, now, 0.0
                case ev.CheckCommandStarted(item=str(name)) if name == landing:
                    checked_at = now
                case ev.CheckCommandOutput(item=str(name)) if name == landing:
                    checked = now - checked_at
                case ev.WatchLanded():
                    landings.append(now - landed_at - checked)
                    landing = None
                case ev.WatchItemCompleted():
                    done += 1
                    if done == items:
                        break
                case _:
                    pass
    finally:
        events.close()
    return Worked(
        wall=time.perf_counter() - began,
        own_cpu=(_own_cpu() - before) / items,
        landing=sum(landings) / len(landings) if landings else 0.0,
    )


def _own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _prepare(here: Project, items: int, wait: float) -> None:
    """Restore the project with a backlog whose items wait, and each add a file."""
    here.restore()
    shutil.rmtree(here.folder.with_name(f"{here.folder.name}.cuggino-slots"), ignore_errors=True)
    backlog = here.folder / ".cuggino" / "backlog"
    backlog.mkdir(parents=True)
    for number in range(items):
        (backlog / f"{number:03}.md").write_text("Do it.\n")
    here.agent.write_text(_AGENT.format(wait=wait, **_SESSIONS))


_ROOT = str(Path(__file__).parents[2])
_SESSIONS = {
    "plan": prints(session(ending="<PLAN_COMPLETE>Planned.</PLAN_COMPLETE>")),
    "work": prints(session(ending="<DONE>Did it.</DONE>")),
    "review": prints(session(ending="<APPROVED>Good.</APPROVED>")),
}
_AGENT = """#!/bin/sh
case "$1" in
    --version) echo "2.1.329 (Claude Code)"; exit;;
esac
case "$CUGGINO_ROLE" in
    planning)
        printf '# Plan\\n\\n## Task 1: x\\n' >"$CUGGINO_PLAN_FILE"
        {plan};;
    implementing)
        sleep {wait}
        echo x >"note-$$.txt"
        {work};;
    *)
        {review};;
esac
"""
"""An agent that any number of sessions can run at the same time, unlike that of the project."""
