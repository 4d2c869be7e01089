"""A watch with many slots in virtual time: attempts and landings take time and nothing else."""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from cuggino.events import WatchEvent, WatchItemCompleted, WatchItemRetry, WatchPlaceGone
from tests.benchmarks.measuring import Figure
from tests.loops.slot_watching import SlotWatching
from tests.loops.test_placement import Fragile

_LIMIT = timedelta(days=10_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """What became of a backlog."""

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
    speed_up: float
    """Beside one item after the other, without landings."""
    cpu: float
    """Seconds that the watch took."""


def work(
    items: int, slots: int, *, check: float, conflicts: float, lost: float = 0.0, seed: int = 1
) -> Worked:
    """Run a watch until all items have landed, each half an hour of work on average.

    A check of `check` minutes decides each landing; `conflicts` is the share of items that are sent
    back once, `lost` that of items that lose a place, and of these that lose another one.
    """
    chance = random.Random(seed)
    seconds = {f"{n:05}.md": chance.lognormvariate(0, 0.5) * 1589 for n in range(items)}
    losses: dict[str, list[float]] = {}
    for name in seconds:
        while chance.random() < lost:
            losses.setdefault(name, []).append(chance.random() * seconds[name])
    drawn = sum(map(len, losses.values()))
    with tempfile.TemporaryDirectory() as folder:
        watch = SlotWatching(
            Path(folder).resolve() / "project",
            slots=slots,
            attempts={name: [(each, "candidate")] * 9 for name, each in seconds.items()},
            landings={name: ["conflict"] for name in seconds if chance.random() < conflicts},
            landing=check * 60,
            placed=lambda inner: Fragile(inner, losses),
            max_attempts=9,
        )
        for name in seconds:
            watch.write(name)
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

        clock, begun = watch.t.scheduler, time.process_time()
        held = watch.stream.subscribe(look, fail, scheduler=clock)
        clock.advance_to(clock.at(_LIMIT), unless=lambda: completed.total() == items)
        at_work = watch.at_work
        held.dispose()
        return Worked(
            landed=Counter(watch.trunk.landed),
            completed=completed,
            drawn=drawn,
            lost=gone,
            most_at_work=watch.most_at_work,
            at_work=at_work,
            speed_up=sum(seconds.values()) / clock.elapsed,
            cpu=time.process_time() - begun,
        )


def watches(*, items: int = 1000, slots: int = 16, workers: int = 100) -> Iterator[Figure]:
    """Measure a watch with slots, and one over workers that are lost again and again."""
    for key, name, worked in (
        ("slots.watch", f"{slots} slots", work(items, slots, check=3, conflicts=0.2)),
        (
            "placed.virtual",
            f"{workers} workers with losses",
            work(items, workers, check=0.2, conflicts=0.1, lost=0.2),
        ),
    ):
        name = f"{items:,} items with {name} in virtual time, CPU"
        yield Figure(key=key, name=name, value=worked.cpu, unit="s")
