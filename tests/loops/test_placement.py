"""An attempt goes on elsewhere when its place is gone, and a disposal cancels it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reactivex import Observable, interval, never, operators as ops, timer

from cuggino.errors import PlaceGone
from cuggino.events import WatchEvent, WatchPlaced, WatchPlaceGone, WatchWorkers
from cuggino.loops import Placed, Placement, Work
from cuggino.stages.slots import Attempted
from cuggino.storage.journal import list_journals, read_journal
from tests.loops.slot_watching import SlotWatching
from tests.loops.test_slots import short


class Fragile:
    """A placement whose places are lost after the seconds that `losses` lists."""

    def __init__(self, inner: Placement, losses: dict[str, list[float]]) -> None:
        self.inner, self.losses = inner, losses
        self.slots, self.news = inner.slots, inner.news
        self.cancelled: list[str] = []
        self.places = 0
        self.worker = ""

    def place(self, work: Work) -> Observable[Placed]:
        self.places += 1
        worker = f"{self.worker}{self.places}" if self.worker else None

        def put(placed: Placed) -> Placed:
            return replace(placed, worker=worker)

        return self.inner.place(work).pipe(ops.map(put))

    def events(self, placed: Placed) -> Observable[WatchEvent]:
        return self.inner.events(placed)

    def cancel(self, placed: Placed) -> None:
        self.cancelled.append(placed.item.partition(" ")[0])

    def attach(self, is_wanted: Callable[[str], bool]) -> Observable[Sequence[Placed]]:
        return self.inner.attach(is_wanted)

    def gone(self, placed: Placed) -> Observable[PlaceGone]:
        losses = self.losses.get(placed.item.partition(" ")[0])
        if not losses:
            return never()
        return timer(losses.pop(0)).pipe(ops.map(lambda _: PlaceGone("it was killed")))

    def keep(self, name: str, slot: int, *, base: str) -> Observable[Attempted]:
        return self.inner.keep(name, slot, base=base)


def fragile(losses: dict[str, list[float]]) -> tuple[Callable[[Placement], Fragile], list[Fragile]]:
    made: list[Fragile] = []

    def wrap(inner: Placement) -> Fragile:
        made.append(Fragile(inner, losses))
        return made[-1]

    return wrap, made


def test_a_lost_place(tmp_path: Path) -> None:
    """The attempt begins elsewhere at once, keeps its number, and others are not disturbed."""
    wrap, made = fragile({"1.md": [4]})
    slots = watching(tmp_path, wrap)
    story = short(slots.story(60))
    assert ["0: work 1, work 2", "10: candidate 2, landing 2", "11: landed 2, done 2"] == story[:3]
    assert ["14: candidate 1, landing 1", "15: landed 1, done 1, idle"] == story[3:]
    assert [("1.md", 1, 1, None), ("2.md", 2, 1, None), ("1.md", 1, 1, None)] == slots.tried
    assert ["1.md"] == slots.disposed
    assert (3, ["1.md", "2.md", "1.md"]) == (made[0].places, made[0].cancelled)


def test_three_lost_places(tmp_path: Path) -> None:
    """An item that loses every place fails, and is tried again after a pause, others first."""
    wrap, made = fragile({"1.md": [1, 1, 1]})
    slots = watching(tmp_path, wrap, retry_seconds=20)
    story = short(slots.story(60))
    assert "3: retry 1" in story
    assert "23: work 1" in story
    assert (5, 2) == (made[0].places, slots.tried[-1][2] + 1)


def watching(folder: Path, wrap: Callable[[Placement], Fragile], **options: Any) -> SlotWatching:
    slots = SlotWatching(folder, placed=wrap, **options)
    for name in ("1.md", "2.md"):
        slots.write(name)
    return slots


def test_disposal_cancels(tmp_path: Path) -> None:
    wrap, made = fragile({})
    watching(tmp_path, wrap).play(5)
    assert ["1.md", "2.md"] == sorted(made[0].cancelled)


def test_places_on_workers(tmp_path: Path) -> None:
    """The worker of each place is named before what happens there, and when it is gone."""
    wrap, _ = fragile({"1.md": [4]})

    def named(inner: Placement) -> Fragile:
        placement = wrap(inner)
        placement.worker = "w"
        return placement

    seen = [event for _, _, event in watching(tmp_path, named).play(12)]
    told = [
        (event.filename, event.worker) if isinstance(event, WatchPlaced) else event.worker
        for event in seen
        if isinstance(event, WatchPlaced | WatchPlaceGone)
    ]
    assert [("1.md", "w1"), ("2.md", "w2"), "w1", ("1.md", "w3")] == told


def test_news_of_the_places(tmp_path: Path) -> None:
    """They are recorded while items are at work, and while none are."""
    wrap, _ = fragile({})

    def telling(inner: Placement) -> Fragile:
        placement = wrap(inner)
        looks = interval(7.0).pipe(ops.map(lambda n: WatchWorkers(left=(f"w{n}",))))
        placement.news = looks
        return placement

    slots = watching(tmp_path, telling, journal=True)
    slots.play(40)
    (journal,) = list_journals(slots.workspace.journal)
    kept = [
        e.event.left for e in read_journal(journal).entries if isinstance(e.event, WatchWorkers)
    ]
    assert kept.count(("w0",)) == 2
    assert len(kept) >= 4
