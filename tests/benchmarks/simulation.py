"""A watch with several slots in virtual time: its speed-up, and how much is sent back.

Run `python -m tests.benchmarks.simulation`. It consists of the same parts as the watch: the choice
of items that may begin (`ready_order`), a limit of simultaneous attempts (`merge_at_most`), and one
landing after the other (`LandingQueue`). Agents and checks only take time; whether a candidate
conflicts depends on the files that it and those that landed meanwhile have touched.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

from reactivex import Observable, defer, operators as ops, timer
from reactivex.subject import Subject

from cuggino.domain import LandingQueue, SlotLimit, ready_order
from cuggino.events import (
    WatchCandidate,
    WatchLanded,
    WatchLoopEvent,
    WatchSentBack,
)
from cuggino.operators import merge_at_most
from cuggino.operators.merge_now import merge_now
from cuggino.testing import VirtualClock
from tests.benchmarks.measuring import Figure
from tests.loops.slot_watching import SlotWatching

LIMIT = timedelta(days=10_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The simulated backlog and its durations."""

    items: int = 1000
    work: float = 30.0
    """Minutes of an item, on average."""
    check: float = 3.0
    """Minutes of the check on each candidate."""
    files: int = 400
    touched: int = 3
    """Files that an item touches, popular ones more often."""
    conflicting: float = 1 / 3
    """The share of files touched twice that conflict."""
    red: float = 0.03
    """The share of checks that fail after a merge without conflicts."""
    rework: float = 0.3
    """The share of its work that an item takes when it was sent back."""
    chained: float = 0.05
    """The share of items that come after another one."""
    overload: float = 0.0
    """The share of attempts that meet an overload of the agents' service."""
    seed: int = 1

    def work_of_all(self) -> list[float]:
        """Return the minutes of each item."""
        chance = random.Random(self.seed)
        return [chance.lognormvariate(0, 0.5) * self.work / 1.133 for _ in range(self.items)]


@dataclass(slots=True)
class Outcome:
    """The figures of one simulation."""

    slots: int
    hours: float = 0.0
    speed_up: float = 0.0
    """Beside one item after the other."""
    landed: int = 0
    sent_back: Counter[str] = field(default_factory=Counter)
    """Returns by reason."""
    returns: Counter[str] = field(default_factory=Counter)
    """Returns by item."""
    busy: float = 0.0
    """The share of the time in which the check runs."""
    cpu: float = 0.0
    """Seconds that the simulation took."""


class Simulation:
    """One watch."""

    def __init__(self, model: Model, slots: int) -> None:
        self._model = model
        self._chance = random.Random(model.seed + 1)
        names = [f"{number:05}.md" for number in range(model.items)]
        self._work = dict(zip(names, model.work_of_all(), strict=True))
        popular = [1 / (place + 1) ** 0.8 for place in range(model.files)]
        self._touched = {
            name: frozenset(self._chance.choices(range(model.files), popular, k=model.touched))
            for name in names
        }
        self._backlog: dict[str, Sequence[str]] = {
            name: [self._chance.choice(names[:number])]
            if number and self._chance.random() < model.chained
            else []
            for number, name in enumerate(names)
        }
        self._landed: list[str] = []
        self._bases: dict[str, int] = {}
        """How much had landed when the attempt of an item began."""
        self._working: set[str] = set()
        self._queue = LandingQueue()
        self._limit = SlotLimit(slots=slots)
        self._attempts: Subject[Observable[WatchLoopEvent]] = Subject()
        self._landings: Subject[Observable[WatchLoopEvent]] = Subject()
        self._clock = VirtualClock()
        self._checked = 0.0
        self._outcome = Outcome(slots)

    def run(self) -> Outcome:
        """Return the figures once everything has landed."""
        begun = time.process_time()
        events = merge_now(
            self._landings.pipe(merge_at_most(1)),
            self._attempts.pipe(merge_at_most(self._outcome.slots)),
        )
        held = events.subscribe(self._after, _raise, scheduler=self._clock)
        self._go_on()
        self._clock.advance_to(self._clock.at(LIMIT), unless=lambda: not self._backlog)
        held.dispose()
        minutes = self._clock.elapsed / 60
        return replace(
            self._outcome,
            hours=minutes / 60,
            speed_up=sum(self._work.values()) / minutes,
            landed=len(self._landed),
            busy=self._checked / minutes,
            cpu=time.process_time() - begun,
        )

    def _after(self, event: WatchLoopEvent) -> None:
        self._queue = self._queue.after(event)
        match event:
            case WatchCandidate(filename=name):
                self._working.discard(name)
                self._limit = self._limit.ended(name)
            case WatchLanded(filename=name):
                self._landed.append(name)
                del self._backlog[name]
            case WatchSentBack(filename=name, reason=reason):
                self._outcome.sent_back[reason] += 1
                self._outcome.returns[name] += 1
            case _:
                pass
        self._go_on()

    def _go_on(self) -> None:
        """Begin the next landing, and attempts in the slots that are free."""
        ready = self._ready()
        name = self._queue.next(self._working | self._queue.returns.keys())
        if name is not None:
            self._queue = self._queue.begin(name)
            self._landings.on_next(self._landing(name))
        for name in ready:
            if len(self._working) >= self._limit.active:
                return
            if name in self._queue.returns or self._queue.admits_new:
                self._working.add(name)
                self._attempts.on_next(self._attempt(name))

    def _ready(self) -> list[str]:
        at_work = self._working | {*self._queue.waiting, self._queue.landing}
        ready = ready_order(self._backlog, landed=self._landed).ready
        return [name for name in self._queue.first(ready) if name not in at_work]

    def _attempt(self, name: str) -> Observable[WatchLoopEvent]:
        def begin() -> Observable[WatchLoopEvent]:
            self._bases[name] = len(self._landed)
            if self._chance.random() < self._model.overload:
                self._limit = self._limit.overloaded(name, self._clock.now)
            share = self._model.rework if name in self._queue.returns else 1.0
            done = WatchCandidate(filename=name, slot=1, commit="", base="", attempt=1)
            return _later(self._work[name] * share, done)

        return defer(lambda _: begin())

    def _landing(self, name: str) -> Observable[WatchLoopEvent]:
        """Return the end of a landing: at once with a conflict, else after the check."""
        returns = self._queue.returns.get(name, 0) + 1
        sent_back = partial(WatchSentBack, filename=name, returns=returns)
        since = self._landed[self._bases[name] :]
        meanwhile: frozenset[int] = frozenset().union(*(self._touched[one] for one in since))
        meetings = len(self._touched[name] & meanwhile)
        if self._chance.random() >= (1 - self._model.conflicting) ** meetings:
            return _later(0, sent_back(reason="conflict"))
        self._checked += self._model.check
        if self._chance.random() < self._model.red:
            return _later(self._model.check, sent_back(reason="check"))
        landed = WatchLanded(filename=name, commit="", trunk_was="")
        return _later(self._model.check, landed)


def _later(minutes: float, event: WatchLoopEvent) -> Observable[WatchLoopEvent]:
    return timer(minutes * 60).pipe(ops.map(lambda _: event))


def _raise(error: Exception) -> None:
    raise error


def simulate(model: Model, slots: int) -> Outcome:
    """Return the figures of a watch with `slots` slots."""
    return Simulation(model, slots).run()


def in_virtual_time(*, items: int = 1000, slots: int = 16) -> Iterator[Figure]:
    """Measure the simulation of a large backlog, and the watch itself on attempts like those."""
    model = Model(items=items)
    figures = (("slots.virtual", "", simulate(model, slots).cpu), _watched(model, slots))
    for key, kind, seconds in figures:
        name = f"{items:,} items with {slots} slots in virtual time{kind}, CPU"
        yield Figure(key=key, name=name, value=seconds, unit="s")


def _watched(model: Model, slots: int) -> tuple[str, str, float]:
    """Return the CPU of a watch whose attempts and landings only take time."""
    chance = random.Random(model.seed)
    work = {f"{n:05}.md": minutes * 60 for n, minutes in enumerate(model.work_of_all())}
    with tempfile.TemporaryDirectory() as folder:
        watch = SlotWatching(
            Path(folder).resolve() / "project",
            slots=slots,
            attempts={name: [(seconds, "candidate")] for name, seconds in work.items()},
            landings={name: ["conflict"] for name in work if chance.random() < 0.2},
            landing=model.check * 60,
        )
        for name in work:
            watch.write(name)
        begun = time.process_time()
        held = watch.stream.subscribe(lambda _: None, _raise, scheduler=watch.t.scheduler)
        watch.t.scheduler.advance_to(
            watch.t.scheduler.at(LIMIT), unless=lambda: len(watch.trunk.landed) == len(work)
        )
        held.dispose()
        return "slots.watch", ", by a watch", time.process_time() - begun


def main() -> None:
    """Print a row for each number of slots."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.simulation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--slots", type=int, nargs="+", default=[4, 8, 16, 32])
    for name, kind in (("items", int), ("files", int), ("touched", int), ("seed", int)):
        parser.add_argument(f"--{name}", type=kind, default=getattr(Model(), name))
    for name in ("work", "check", "conflicting", "red", "rework", "chained", "overload"):
        parser.add_argument(f"--{name}", type=float, default=getattr(Model(), name))
    asked = vars(parser.parse_args())
    slots = asked.pop("slots")
    model = Model(**asked)
    print(
        f"{model.items:,} items of {model.work:g} min; check {model.check:g} min; "
        f"{model.files} files, {model.touched} touched; {model.red:.0%} red after a merge\n"
    )
    print("| slots | hours | speed-up | sent back | conflicts | red | most for one | check busy |")
    print("|---|---|---|---|---|---|---|---|")
    for count in slots:
        print(row(simulate(model, count)), flush=True)


def row(outcome: Outcome) -> str:
    """Return the row of the table."""
    cells = (
        f"{outcome.slots}",
        f"{outcome.hours:.1f}",
        f"{outcome.speed_up:.1f}",
        f"{outcome.sent_back.total():,}",
        f"{outcome.sent_back['conflict']:,}",
        f"{outcome.sent_back['check']:,}",
        f"{max(outcome.returns.values(), default=0)}",
        f"{outcome.busy:.0%}",
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
