"""Random watches with slots, in virtual time: every item reaches an end, whatever happens to it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from cuggino.errors import AgentFailed, LoopError, QuotaExceeded
from cuggino.events import WatchItemCompleted, WatchItemHeld, WatchItemParked, WatchProcessingItem
from cuggino.storage import Backlog
from tests.loops.slot_watching import SlotWatching

NAMES = [f"{number:02}.md" for number in range(14)]
_OUTCOMES: list[tuple[float, Any]] = [
    (0.75, "candidate"),
    (0.08, AgentFailed("x", reason="crash")),
    (0.05, AgentFailed("x", reason="overloaded")),
    (0.04, LoopError("implementing", "x")),
    (0.03, QuotaExceeded("x")),
    (0.03, "max_iterations"),
    (0.02, "spec_issue"),
]


class _Watching(SlotWatching):
    """A watch whose items come after others."""

    before: dict[str, set[str]]


def _watching(folder: Path, chance: random.Random) -> _Watching:
    shares, outcomes = zip(*_OUTCOMES, strict=True)

    def attempts() -> list[tuple[float, Any]]:
        return [(chance.uniform(1, 60), one) for one in chance.choices(outcomes, shares, k=8)]

    watching = _Watching(
        folder / "p",
        slots=chance.randint(2, 5),
        attempts={name: attempts() for name in NAMES},
        landings={
            name: chance.choices(["landed", "conflict", "check"], [6, 2, 1], k=8) for name in NAMES
        },
        landing=chance.choice([0.5, 5.0, 30.0]),
        max_attempts=chance.randint(2, 5),
        retry_seconds=10,
        settle_seconds=1,
    )
    watching.before = {}
    for place, name in enumerate(NAMES):
        before = chance.sample(NAMES, 1) if chance.random() < 0.1 else []
        if place and chance.random() < 0.2:
            before.append(chance.choice(NAMES[:place]))
        watching.before[name] = set(before)
        front = f"---\nafter: [{', '.join(before)}]\n---\n" if before else ""
        watching.write(name, f"{front}# {name}\n", when=chance.choice([0, 0, 0, 40, 200]))
    return watching


@pytest.mark.parametrize("seed", range(15))
def test_every_item_comes_to_its_end(tmp_path: Path, seed: int) -> None:
    """It lands once, is parked, or is held with a reason; and only after those before it."""
    watching = _watching(tmp_path, random.Random(seed))
    seen = [event for _, kind, event in watching.play(60_000) if kind == "next"]
    assert watching.at_work == 0
    assert len(watching.trunk.landed) == len(set(watching.trunk.landed))
    backlog = Backlog(watching.workspace)
    parked = {event.filename for event in seen if isinstance(event, WatchItemParked)}
    held = {event.filename for event in seen if isinstance(event, WatchItemHeld)}
    for name in NAMES:
        ends = [
            name in watching.trunk.landed,
            name in parked,
            backlog.is_item(name),
        ]
        assert 1 == sum(ends), f"{name}: landed, parked, in the backlog: {ends}"
    assert set(backlog.items()) <= held, "what is left has been reported"
    done: set[str] = set()
    for event in seen:
        if isinstance(event, WatchItemCompleted):
            done.add(event.filename)
        elif isinstance(event, WatchProcessingItem):
            assert watching.before[event.filename] <= done, "it began too early"
    assert watching.most_at_work <= watching.options.slots
