"""The order in which candidates land."""

from __future__ import annotations

from collections.abc import Iterable

from cuggino import events as ev
from cuggino.domain import LandingQueue


def after(*events: ev.Event, queue: LandingQueue | None = None) -> LandingQueue:
    folded = queue or LandingQueue()
    for event in events:
        folded = folded.after(event)
    return folded


def candidates(names: Iterable[str]) -> list[ev.Event]:
    return [
        ev.WatchCandidate(filename=name, slot=1, commit="c", base="b", attempt=1) for name in names
    ]


def landing(name: str) -> ev.Event:
    return ev.WatchLanding(filename=name, commit="c", trunk="t")


def sent_back(name: str, times: int = 1) -> list[ev.Event]:
    """Return the events of an item that was sent back so often."""
    return [
        event
        for n in range(1, times + 1)
        for event in (
            *candidates(name),
            landing(name),
            ev.WatchSentBack(filename=name, reason="conflict", returns=n),
        )
    ]


def test_candidates_land_one_after_the_other() -> None:
    """While one lands nothing else does, and the others keep their order."""
    queue = after(*candidates("abc"))
    assert ("a", "b", "c") == queue.waiting
    assert "a" == queue.next()
    queue = after(landing("a"), queue=queue)
    assert "a" == queue.landing
    assert queue.next() is None
    queue = after(ev.WatchLanded(filename="a", commit="n", trunk_was="t"), queue=queue)
    assert ("b", None) == (queue.next(), queue.landing)


def test_items_sent_back_land_before_new_ones() -> None:
    """Among themselves they keep their order."""
    queue = after(*sent_back("x"), *sent_back("y"), *candidates("abyx"))
    assert ("y", "x", "a", "b") == queue.waiting
    assert {"x": 1, "y": 1} == queue.returns
    assert ["x", "y", "c", "d"] == queue.first("cxdy")
    assert ["y", "x", "c"] == after(*sent_back("y"), queue=queue).first("cxy")


def test_after_two_returns_an_item_has_the_queue_to_itself() -> None:
    """Nothing else lands while it is at work or waits; without it the queue goes on."""
    queue = after(*candidates("ab"), *sent_back("x", 2))
    assert queue.next(active=["x", "c"]) is None
    assert "a" == queue.next(active=["c"]), "it was stopped, or waits for its next attempt"
    queue = after(*candidates("x"), queue=queue)
    assert "x" == queue.next()
    landed = after(ev.WatchLanded(filename="x", commit="n", trunk_was="t"), queue=queue)
    assert "a" == landed.next(active=["x"])


def test_one_item_at_a_time_has_the_queue_to_itself() -> None:
    """It is the one that was sent back twice first, however often the other is."""
    queue = after(*sent_back("x", 2), *sent_back("y", 3), *candidates("y"))
    assert queue.next(active=["x"]) is None
    assert "x" == after(*candidates("x"), queue=queue).next()
    queue = after(*sent_back("y"), *sent_back("x", 2), *sent_back("y"), *candidates("xy"))
    assert "x" == queue.next()


def test_new_items_are_held_back_while_the_queue_is_long() -> None:
    """Two may wait beside the one that lands."""
    queue = after(*candidates("abc"))
    assert not queue.admits_new
    assert after(landing("a"), queue=queue).admits_new


def test_an_item_is_parked_after_its_last_attempt() -> None:
    """Landing or parking forgets its returns."""
    queue = after(*sent_back("x", 3))
    assert queue.is_exhausted("x", 3)
    assert not queue.is_exhausted("x", 4)
    assert not queue.is_exhausted("y", 1)
    for end in (
        ev.WatchItemParked(filename="x", reason=""),
        ev.WatchItemCompleted(filename="x"),
        ev.WatchLanded(filename="x", commit="n", trunk_was="t"),
    ):
        assert LandingQueue() == after(end, queue=queue)


def test_a_proposed_candidate_leaves_the_queue() -> None:
    """It keeps its returns: it has not landed yet."""
    queue = after(*sent_back("x"), *candidates("x"), landing("x"))
    event = ev.WatchProposed(filename="x", number=7, url="u", branch="b", commit="c", candidate="c")
    assert LandingQueue(returns={"x": 1}) == after(event, queue=queue)


def test_an_interrupted_landing_is_repeated_first() -> None:
    """A candidate whose landing did not end is not lost."""
    queue = after(*candidates("ab"), landing("b"), ev.AgentMessage(text="")).interrupted()
    assert LandingQueue(waiting=("b", "a")) == queue
    assert queue == queue.interrupted()
    assert queue == after(*candidates("a"), queue=queue), "a candidate is in the queue once"
