"""Playing strategies in virtual time, and what becomes of them."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from reactivex import just, never

from cuggino.events import Event
from cuggino.simulation.odds import Odds
from cuggino.simulation.strategies import Strategy, is_done
from cuggino.simulation.world import World, WorldAgent, WorldFiles
from cuggino.stages import Services
from cuggino.storage import Workspace
from cuggino.testing import Story, VirtualClock, VirtualRuntime, play

_MEMORY = "/dev/shm"
"""A file system in memory, where there is one: most of a trial's time would be that of a disk."""
_CONFIDENT = 1.959964
"""Standard deviations of an interval of 95 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The outcome of one run."""

    seed: int
    done: bool
    """The loop declared the work done."""
    right: bool
    """The work is right."""
    cost_usd: float
    sessions: int
    hours: float
    """The virtual time that it took."""


def trial(strategy: Strategy, odds: Odds, seed: int) -> Trial:
    """Run the strategy's loop once, in virtual time and in a folder of its own."""
    with world_of(odds, seed, tasks=strategy.tasks) as world:
        clock = VirtualClock()
        story = played(strategy, world, clock=clock)
        return Trial(
            seed=seed,
            done=is_done(story.last),
            right=world.is_right,
            cost_usd=world.cost,
            sessions=world.sessions,
            hours=clock.elapsed / 3600,
        )


@contextmanager
def world_of(odds: Odds, seed: int, *, tasks: int = 1) -> Iterator[World]:
    """Within the block there is a world, in a temporary folder."""
    memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="cuggino-simulation-", dir=memory) as folder:
        yield World(odds, seed, Path(folder, "project").resolve(), tasks=tasks)


def played(strategy: Strategy, world: World, *, clock: VirtualClock | None = None) -> Story[Event]:
    """Run the strategy's loop once, and return its story."""
    clock = clock or VirtualClock()
    services = _in_clones(world, clock) if strategy.in_clones else _in_memory(world)
    return play(strategy.start(services, world.project), clock=clock).check()


def _in_memory(world: World) -> Services:
    return Services(
        agent=WorldAgent(world),
        workspace=Workspace(world.project),
        shell=world.shell,
        work=WorldFiles(world),
        fingerprint=lambda *_, **__: just(world.version),
        trace=lambda *_, **__: just(""),
        commits=lambda *_: just([]),
        work_left=lambda _: just(""),
    )


def _in_clones(world: World, clock: VirtualClock) -> Services:
    """Return the services of a project with a real git."""
    project = VirtualRuntime(world.project, WorldAgent(world), git=True, clock=clock)
    # Without the folder of commands, the project does not become one of those that the user knows.
    kept = project.runtime.replace(shell=world.shell, control=never(), control_folder=None)
    return kept.services


def trials(strategy: Strategy, odds: Odds, seeds: Iterable[int]) -> Iterator[Trial]:
    """Yield a trial for each seed; the same ones each time."""
    return (trial(strategy, odds, seed) for seed in seeds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures of some trials of a strategy."""

    trials: int
    done: int
    """Trials whose loop declared the work done."""
    true: int
    """Those of them whose work is right."""
    missed: int
    """Trials with right work that was not declared done."""
    cost_usd: float
    """The mean cost."""
    sessions: float
    """The mean number of sessions."""
    hours: float = 0.0
    """The mean virtual time of a run."""

    @property
    def false(self) -> int:
        """The trials whose loop declared wrong work done."""
        return self.done - self.true

    @property
    def calibration(self) -> float | None:
        """The share of "done" that is true; None if nothing was done."""
        return self.true / self.done if self.done else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of 95 % (Wilson) around the calibration."""
        return wilson(self.true, self.done) if self.done else None

    @property
    def cost_per_true(self) -> float | None:
        """The cost of all trials for each that is truly done; None without one."""
        return self.cost_usd * self.trials / self.true if self.true else None


def summary(found: Iterable[Trial]) -> Summary:
    """Return the figures of the trials; there must be one."""
    known: Sequence[Trial] = tuple(found)
    return Summary(
        trials=len(known),
        done=sum(one.done for one in known),
        true=sum(one.done and one.right for one in known),
        missed=sum(one.right and not one.done for one in known),
        cost_usd=math.fsum(one.cost_usd for one in known) / len(known),
        sessions=sum(one.sessions for one in known) / len(known),
        hours=math.fsum(one.hours for one in known) / len(known),
    )


def wilson(successes: int, of: int) -> tuple[float, float]:
    """Return the interval of 95 % around a share, which holds near 0 and 1, too."""
    share, square = successes / of, _CONFIDENT**2
    middle = (share + square / (2 * of)) / (1 + square / of)
    spread = (
        _CONFIDENT
        * math.sqrt(share * (1 - share) / of + square / (4 * of * of))
        / (1 + square / of)
    )
    return max(0.0, middle - spread), min(1.0, middle + spread)
