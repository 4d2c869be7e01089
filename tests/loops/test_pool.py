"""A pool in virtual time: a watch of one's own."""

from __future__ import annotations

from typing import Any, cast

import pytest
from reactivex import Observable, concat, defer, empty, just, never, operators as ops
from reactivex.subject import Subject

import cuggino
from cuggino.errors import AgentFailed
from cuggino.events import (
    WatchCandidate,
    WatchEvent,
    WatchLanded,
    WatchProposed,
    WatchSentBack,
)
from cuggino.loops import Land, Start, pool
from cuggino.operators import Flow, emit, flow, pause
from cuggino.testing import Marbles
from tests.loops.watching import line


class OwnWatch:
    """Items that take 10 s each and land in 1 s, in a list that shrinks as they land."""

    def __init__(self, *items: str, slots: int = 2, back: tuple[str, ...] = ()) -> None:
        self.t = Marbles()
        self.items = list(items)
        self.back = list(back)
        self.started: list[tuple[float, str, int, int]] = []
        self.released: list[str] = []
        self.fails: dict[str, Exception] = {}
        self.changes: Subject[object] = Subject()
        self.later: Observable[object] = never()
        listed = defer(lambda _: just(list(self.items)))
        again = defer(lambda _: self.later).pipe(ops.map(lambda _: list(self.items)))
        self.stream = pool(
            concat(listed, again), slots, self.attempt, self.land, changes=self.changes
        )

    def attempt(self, start: Start) -> Observable[WatchEvent]:
        def story() -> Flow[None]:
            name = start.name
            self.started.append((self.t.now, name, start.slot, start.number))
            try:
                yield from pause(10)
                if name in self.fails:
                    raise self.fails[name]
                yield from emit(
                    WatchCandidate(
                        filename=name,
                        slot=start.slot,
                        commit=f"{name}{start.number}",
                        base="",
                        attempt=start.number,
                    )
                )
            finally:
                self.released.append(name)

        assert (start.returned is None) == (start.returns == 0)
        return flow(story)

    def land(self, land: Land) -> Observable[WatchEvent]:
        def story() -> Flow[None]:
            yield from pause(1)
            if land.name in self.back:
                self.back.remove(land.name)
                yield from emit(
                    WatchSentBack(
                        filename=land.name, reason="check", output="", returns=land.returns + 1
                    )
                )
                return
            self.items.remove(land.name)
            yield from emit(
                WatchLanded(filename=land.name, commit=land.candidate.commit, trunk_was="t")
            )

        return flow(story)

    def story(self, until: float = 100, **more: Any) -> list[tuple[float, str]]:
        return [
            (when, f"{value.tag.removeprefix('Watch')} {value.filename}")
            if kind == "next"
            else (when, kind)
            for when, kind, value in self.t.record(self.stream, until=until, **more)
        ]


def test_items_are_worked_on_in_slots_and_land_one_by_one() -> None:
    watch = OwnWatch("a", "b", "c")
    assert (
        "10 Candidate a, 10 Candidate b, 11 Landed a, 12 Landed b, 20 Candidate c, "
        "21 Landed c, 21 completed"
    ) == line(watch.story())
    assert [(0, "a", 1, 1), (0, "b", 2, 1), (10, "c", 1, 1)] == watch.started


def test_nothing_to_do() -> None:
    assert [(0, "completed")] == OwnWatch().story()


def test_a_change_is_looked_at() -> None:
    """An item that comes uses a free slot at once."""
    watch = OwnWatch("a")
    watch.t.scheduler.schedule_absolute(4, lambda *_: watch.items.append("b"))
    watch.t.scheduler.schedule_absolute(6, lambda *_: watch.changes.on_next("changed"))
    watch.story()
    assert [(0, "a", 1, 1), (6, "b", 2, 1)] == watch.started


def test_an_error_releases_everything() -> None:
    watch = OwnWatch("a", "b", "c")
    watch.fails["a"] = AgentFailed("x", reason="crash")
    assert [(10, "error")] == watch.story()
    assert ["a", "b"] == sorted(watch.released)
    assert 2 == len(watch.started)


def test_a_disposal_releases_everything() -> None:
    watch = OwnWatch("a", "b", "c")
    assert [] == watch.story(dispose_at=5)
    assert ["a", "b"] == sorted(watch.released)


def test_each_subscription_begins_anew() -> None:
    """The numbers of attempts and what was sent back belong to one subscription."""
    watch = OwnWatch("a", back=("a",))
    watch.story(until=15)
    watch.started.clear()
    other = Marbles()
    watch.t = other
    other.record(watch.stream, until=5)
    assert [(0, "a", 1, 1)] == watch.started


@pytest.mark.parametrize("slots", [0, -1])
def test_at_least_one_slot(slots: int) -> None:
    with pytest.raises(ValueError, match="slots"):
        OwnWatch(slots=slots)


def test_what_is_not_a_stream() -> None:
    """The items are judged at once; what a function returned is the error of the stream."""
    items, nothing, text = just(["a"]), cast("Any", lambda _: 3), cast("Any", "a")
    with pytest.raises(TypeError, match=r"pool\(\) needs an Observable, not str"):
        pool(text, 1, nothing, nothing)
    with pytest.raises(TypeError, match=r"pool\(\) needs an Observable, not str"):
        pool(items, 1, nothing, nothing, changes=text)
    for slots in (text, cast("Any", 1.5)):
        with pytest.raises(TypeError, match=f"slots must be a whole number, not {slots!r}"):
            pool(items, slots, nothing, nothing)
    with pytest.raises(TypeError, match=r"`attempt` or `land` of pool\(\) returned int"):
        cuggino.run(pool(items, 1, nothing, nothing))


@pytest.mark.parametrize("listed", ["ab", None, 3, [1]])
def test_what_is_not_a_list_of_names(listed: Any) -> None:
    """A text is no list of one-letter names."""
    watch = OwnWatch()
    watch.stream = pool(just(listed), 1, watch.attempt, watch.land)
    with pytest.raises(TypeError, match=r"`items` of pool\(\) emitted .*, not a list of names"):
        cuggino.run(watch.stream)
    assert [] == watch.started


def test_an_item_that_is_listed_twice() -> None:
    """It begins once; nobody else may be at work on it."""
    watch = OwnWatch("a", "a", "b", slots=3)
    watch.story(until=5)
    assert [(0, "a", 1, 1), (0, "b", 2, 1)] == watch.started


def test_items_that_complete_without_a_list() -> None:
    """Nothing may begin any more: the pool does not wait for ever."""
    watch = OwnWatch()
    watch.stream = pool(empty(), 1, watch.attempt, watch.land)
    assert [(0, "completed")] == watch.story()


def test_an_item_in_a_pull_request_does_not_begin_again() -> None:
    """It has a candidate, although it is still listed."""
    watch = OwnWatch("a")

    def propose(land: Land) -> Observable[WatchEvent]:
        commit = land.candidate.commit
        return just(
            WatchProposed(
                filename=land.name, number=1, url="", branch="b", commit="c", candidate=commit
            )
        )

    watch.stream = pool(just(["a"]), 1, watch.attempt, propose)
    assert "10 Candidate a, 10 Proposed a, 10 completed" == line(watch.story())


def test_a_landing_without_an_outcome() -> None:
    """The candidate would land again and again, without a pause."""
    watch = OwnWatch("a")
    watch.stream = pool(just(["a"]), 1, watch.attempt, lambda _land: flow(lambda: pause(1)))
    *_, (when, kind, error) = watch.t.record(watch.stream, until=100)
    assert (11, "error") == (when, kind)
    assert "`land` of pool() ended without WatchLanded" in str(error)
