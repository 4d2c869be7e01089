"""What a watch with slots leaves in the journal, and random watches with slots, in virtual time."""

from __future__ import annotations

import hashlib
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.errors import AgentFailed, LoopError, QuotaExceeded
from cuggino.events import WatchItemCompleted, WatchItemHeld, WatchItemParked, WatchProcessingItem
from cuggino.loops import LoopRunOptions, WatchRunOptions
from cuggino.loops.frame.journal import open_journal
from cuggino.loops.watch.journal import SLOTS
from cuggino.loops.watch.pool_state import PoolState
from cuggino.loops.watch.recorded import items_of_issues, work_left
from cuggino.storage import Backlog, Workspace, list_journals, new_run_id, read_journal
from tests.loops.slot_watching import SlotWatching

AT = datetime(2026, 1, 2, tzinfo=UTC)
WORK = ev.WatchProcessingItem(filename="1.md", slot=2)
END = ev.LoopApproved(iteration=1, item="1.md")
MADE = ev.WatchCandidate(filename="1.md", slot=2, commit="c", base="b", attempt=1)
LANDING = ev.WatchLanding(filename="1.md", commit="c", trunk="t")
BACK = ev.WatchSentBack(filename="1.md", reason="conflict", output="", paths=("a",), returns=1)
LANDED = ev.WatchLanded(filename="1.md", commit="m", trunk_was="t", nothing=False, branch=None)


def left(folder: Path, *events: ev.Event, text: str = "task", edited: bool = False) -> PoolState:
    """Return what a watch with these events has left of an item that has been run once."""
    workspace = Workspace(folder)
    workspace.open()
    digest = hashlib.sha256(text.encode()).hexdigest()
    (workspace.backlog / "1.md").write_text("another" if edited else text)
    run = LoopRunOptions(focus="a", cwd=folder, item=f"1.md {digest}", slot=2)
    open_journal(workspace, run, new_run_id(), None, at=AT).close()
    watch = open_journal(workspace, WatchRunOptions(cwd=folder), new_run_id(), None, at=AT)
    for event in events:
        watch.append(event, at=AT, stage=SLOTS)
    watch.close()
    return work_left(read_journal(list_journals(workspace.journal)[0]), workspace)


def test_a_candidate_waits_to_land_with_its_end(tmp_path: Path) -> None:
    found = left(tmp_path, WORK, END, MADE)
    work = found.works["1.md"]
    assert (MADE, None, END, 1, 2) == (
        work.candidate,
        work.sent_back,
        work.end,
        work.number,
        work.slot,
    )
    assert work.waits_to_land
    assert ("1.md",) == found.queue.waiting


def test_a_landing_that_was_cut_short_is_repeated(tmp_path: Path) -> None:
    found = left(tmp_path, WORK, END, MADE, LANDING)
    assert (("1.md",), None) == (found.queue.waiting, found.queue.landing)


def test_an_item_sent_back_keeps_its_returns(tmp_path: Path) -> None:
    found = left(tmp_path, WORK, END, MADE, LANDING, BACK, WORK)
    assert BACK == found.works["1.md"].sent_back
    assert not found.works["1.md"].waits_to_land
    assert ({"1.md": 1}, ()) == (dict(found.queue.returns), found.queue.waiting)


def test_a_landed_item_is_only_put_away(tmp_path: Path) -> None:
    found = left(tmp_path, WORK, END, MADE, LANDING, LANDED)
    assert found.works["1.md"].has_landed
    assert () == found.queue.waiting


def test_nothing_is_left_of_items_put_away(tmp_path: Path) -> None:
    for number, event in enumerate(
        (ev.WatchItemCompleted(filename="1.md"), ev.WatchItemRetained(filename="1.md"))
    ):
        assert {} == left(tmp_path / f"{number}", WORK, END, MADE, LANDING, LANDED, event).works


def test_nothing_is_left_of_an_edited_item(tmp_path: Path) -> None:
    found = left(tmp_path, WORK, END, MADE, edited=True)
    assert ({}, ()) == (found.works, found.queue.waiting)


def test_items_of_spec_issues(tmp_path: Path) -> None:
    """The journals of their runs say which items they are of."""
    workspace = Workspace(tmp_path)
    workspace.open()
    for name in ("1.md", "2.md"):
        run = LoopRunOptions(focus="a", cwd=tmp_path, item=f"{name} 0", slot=1)
        journal = open_journal(workspace, run, new_run_id(), None, at=AT)
        issue = ev.LoopSpecIssue(iteration=1, content="?", filename=f"issue-of-{name}")
        journal.append(issue, at=AT)
        journal.close()
    found = items_of_issues(workspace, {"issue-of-2.md", "of-a-run.md"})
    assert {"issue-of-2.md": "2.md"} == found


# -- random watches with slots, in virtual time: every item reaches an end, whatever happens to it


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
        ends = [name in watching.trunk.landed, name in parked, backlog.is_item(name)]
        assert 1 == sum(ends), f"{name}: landed, parked, in the backlog: {ends}"
    assert set(backlog.items()) <= held, "what is left has been reported"
    done: set[str] = set()
    for event in seen:
        if isinstance(event, WatchItemCompleted):
            done.add(event.filename)
        elif isinstance(event, WatchProcessingItem):
            assert watching.before[event.filename] <= done, "it began too early"
    assert watching.most_at_work <= watching.options.slots
