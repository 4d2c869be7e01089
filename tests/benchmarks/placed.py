"""A watch over the workers of a cluster in virtual time, whose workers are lost again and again.

Run `python -m tests.benchmarks.placed`. The watch is cuggino's own; attempts and landings take time
and nothing else.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cuggino.events import WatchEvent, WatchItemCompleted, WatchItemRetry, WatchPlaceGone
from cuggino.loops import Placement
from tests.benchmarks.measuring import Figure
from tests.benchmarks.simulation import LIMIT, Model
from tests.loops.slot_watching import SlotWatching
from tests.loops.test_placement import Fragile


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The figures of one simulation."""

    landed: Counter[str]
    """How often each item has landed."""
    completed: Counter[str]
    drawn: int
    """Losses that were to happen."""
    lost: int
    """Places that were gone."""
    most_at_work: int
    at_work: int
    """Attempts that are at work at the end."""
    hours: float
    cpu: float
    """Seconds that the simulation took."""


def simulate(model: Model, workers: int, *, lost: float = 0.2) -> Placed:
    """Return the figures of a watch that loses the places of this share of its items, or more."""
    chance = random.Random(model.seed)
    work = {f"{n:05}.md": minutes * 60 for n, minutes in enumerate(model.work_of_all())}
    losses: dict[str, list[float]] = {}
    for name, seconds in work.items():
        while chance.random() < lost:
            losses.setdefault(name, []).append(chance.random() * seconds)
    losses_drawn = sum(map(len, losses.values()))

    def wrap(inner: Placement) -> Fragile:
        return Fragile(inner, losses)

    with tempfile.TemporaryDirectory() as folder:
        watch = SlotWatching(
            Path(folder).resolve() / "project",
            slots=workers,
            attempts={name: [(seconds, "candidate")] * 9 for name, seconds in work.items()},
            landings={name: ["conflict"] for name in work if chance.random() < 0.1},
            landing=model.check * 60,
            placed=wrap,
            max_attempts=9,
        )
        for name in work:
            watch.write(name)
        begun = time.process_time()
        completed: Counter[str] = Counter()
        gone = 0

        def look(event: WatchEvent) -> None:
            nonlocal gone
            if isinstance(event, WatchItemCompleted):
                completed[event.filename] += 1
            # With its third place, an attempt fails.
            gone += isinstance(event, WatchPlaceGone | WatchItemRetry)

        def fail(error: Exception) -> None:
            raise error

        clock = watch.t.scheduler
        held = watch.stream.subscribe(look, fail, scheduler=clock)
        clock.advance_to(clock.at(LIMIT), unless=lambda: completed.total() == len(work))
        at_work = watch.at_work
        held.dispose()
        return Placed(
            landed=Counter(watch.trunk.landed),
            completed=completed,
            drawn=losses_drawn,
            lost=gone,
            most_at_work=watch.most_at_work,
            at_work=at_work,
            hours=clock.elapsed / 3600,
            cpu=time.process_time() - begun,
        )


def in_virtual_time(*, items: int = 1000, workers: int = 100) -> Iterator[Figure]:
    """Measure a watch over workers that are lost again and again."""
    yield Figure(
        key="placed.virtual",
        name=f"{items:,} items on {workers} workers with losses in virtual time, CPU",
        value=simulate(Model(items=items, check=0.2), workers).cpu,
        unit="s",
    )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.placed", description=__doc__)
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--lost", type=float, default=0.2)
    asked = parser.parse_args()
    found = simulate(Model(items=asked.items, check=0.2), asked.workers, lost=asked.lost)
    print(
        f"{len(found.landed):,} of {asked.items:,} items landed, {found.lost:,} places lost, "
        f"{found.most_at_work} at most at once, {found.hours:.1f} h, CPU {found.cpu:.1f} s"
    )


if __name__ == "__main__":
    main()
