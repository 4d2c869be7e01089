"""The laws of a pool of slots, on any course of its attempts and landings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from cuggino import events as ev
from cuggino.domain import SlotLimit, ready_order
from cuggino.domain.landing_queue import ALONE
from cuggino.loops.watch.pool_state import (
    AttemptEnded,
    Begun,
    Decision,
    Fact,
    Failed,
    Finish,
    Forgotten,
    Happened,
    ItemWork,
    Land,
    LandingEnded,
    Listed,
    Look,
    Overloaded,
    PauseBegun,
    PauseEnded,
    PoolState,
    Served,
    Start,
    next_step,
)
from cuggino.loops.watch.recorded import state_after

NAMES = "abcdef"
AT = datetime(2026, 1, 1, tzinfo=UTC)
MOST = 4
"""Failures, or returns, after which the world parks an item."""


def candidate(start: Start, *, approved: bool = True) -> ev.WatchCandidate:
    return ev.WatchCandidate(
        filename=start.name,
        slot=start.slot,
        commit="c",
        base="b",
        attempt=start.number,
        approved=approved,
    )


def back(name: str, returns: int = 1) -> ev.WatchSentBack:
    return ev.WatchSentBack(filename=name, reason="check", output="", returns=returns)


class World:
    """A backlog and the machinery around the state; it asserts each law on every decision."""

    def __init__(self, slots: int, after: dict[str, str | None]) -> None:
        self.state = PoolState(limit=SlotLimit(slots))
        self.after = after
        self.backlog = dict.fromkeys(after)
        self.running: dict[str, Start] = {}
        self.landing: Land | None = None
        self.landed: list[str] = []
        self.parked: list[str] = []
        self.kept: list[str] = []
        """The items with a spec issue, which stay in the backlog."""
        self.failures = dict.fromkeys(after, 0)
        self.events: list[ev.Event] = []
        self.paused = 0
        self.holds_back = False
        self.is_finished = False
        self.clock = AT

    # What it does for the pool.

    def ready(self) -> tuple[str, ...]:
        order = ready_order(
            {name: [one] if (one := self.after[name]) else [] for name in self.backlog},
            landed=self.landed,
            held=dict.fromkeys([*self.kept, *self.parked], "is held"),
        )
        return order.ready

    def look(self) -> None:
        self.tell(Listed(() if self.holds_back else self.ready(), holds_back=self.holds_back))

    def tell(self, fact: Fact) -> None:
        before = self.state
        self.state, decisions = next_step(before, fact)
        if isinstance(fact, Listed) and fact.holds_back:
            assert all(isinstance(one, Finish) for one in decisions), "a stop lets nothing begin"
            assert before == self.state
        for decision in decisions:
            self.carry_out(decision)
        assert set(self.state.at_work) == set(self.running)
        assert self.state.lands == (self.landing.name if self.landing else None)

    def carry_out(self, decision: Decision) -> None:
        assert not self.is_finished
        match decision:
            case Start(name, slot):
                assert name not in self.running, "an item never runs twice at once"
                assert self.landing is None or self.landing.name != name
                assert name not in self.state.queue.waiting
                assert not self.state.works.get(name, ItemWork()).is_unapproved
                assert len(self.running) < self.state.limit.active, "more than there is room for"
                assert slot not in {start.slot for start in self.running.values()}
                assert 1 <= slot <= self.state.limit.slots
                assert (one := self.after[name]) is None or one in self.landed, "it began too early"
                self.running[name] = decision
                self.events.append(ev.WatchProcessingItem(filename=name, slot=slot))
            case Land(name, made):
                assert self.landing is None, "landings come one at a time"
                assert name not in self.running
                work = self.state.works[name]
                assert work.waits_to_land
                assert work.candidate == made
                assert made.approved, "only approved work lands"
                self.landing = decision
                self.events.append(ev.WatchLanding(filename=name, commit="c", trunk="t"))
            case Look():
                self.look()
            case Finish():
                assert not self.running
                assert self.landing is None
                assert self.paused == 0
                self.is_finished = True

    # What happens to it.

    def happened(self, event: Any) -> None:
        self.events.append(event)
        self.tell(Happened(event.filename, event))

    def removed(self, name: str, event: ev.Event) -> None:
        """The item leaves the backlog, and the watch forgets it."""
        self.tell(Forgotten(name))
        self.events.append(event)
        del self.backlog[name]

    def park(self, name: str) -> None:
        self.parked.append(name)
        self.removed(name, ev.WatchItemParked(filename=name, reason="it must"))

    def end_attempt(self, name: str, outcome: str) -> None:
        start = self.running[name]
        self.tell(Begun(name, f"{name} digest", start.slot))
        assert start.number == self.state.works[name].number
        if outcome == "overload":
            self.clock += timedelta(seconds=40)
            self.tell(Overloaded(name, self.clock))
            outcome = "fail"
        match outcome:
            case "candidate":
                self.happened(candidate(start))
                self.tell(Served(name))
            case "fail":
                self.tell(Failed(name))
                assert self.state.works[name].number == start.number - 1, "its number is free again"
                self.failures[name] += 1
                if self.failures[name] >= MOST:
                    self.park(name)
            case "skip":
                self.tell(Failed(name))
                self.park(name)
            case "issue":
                self.tell(Served(name))
                self.kept.append(name)
            case "unapproved":
                self.happened(candidate(start, approved=False))
                self.tell(Served(name))
                self.look()
                self.park(name)
            case _:
                raise AssertionError(outcome)
        del self.running[name]
        self.tell(AttemptEnded(name))

    def end_landing(self, outcome: str) -> None:
        assert self.landing is not None
        name = self.landing.name
        match outcome:
            case "landed":
                self.happened(ev.WatchLanded(filename=name, commit="m", trunk_was="t"))
                self.landed.append(name)
                self.removed(name, ev.WatchItemCompleted(filename=name))
            case "back":
                self.happened(back(name))
                if self.state.queue.is_exhausted(name, MOST):
                    self.park(name)
            case "fail":
                self.failures[name] += 1
                if self.failures[name] >= MOST:
                    self.park(name)
            case _:
                raise AssertionError(outcome)
        self.landing = None
        self.tell(LandingEnded())


ENDS = st.sampled_from(["candidate"] * 6 + ["fail", "overload", "skip", "issue", "unapproved"])
LANDINGS = st.sampled_from(["landed"] * 3 + ["back", "back", "fail"])


@st.composite
def worlds(draw: st.DrawFn) -> World:
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    after: dict[str, str | None] = {}
    for place, name in enumerate(names):
        before = st.sampled_from(names[:place]) if place else st.none()
        after[name] = draw(st.one_of(st.none(), st.none(), before))
    return World(draw(st.integers(1, 4)), after)


def play(world: World, data: st.DataObject, *, steps: int = 1000) -> None:
    """Let things happen until the pool is finished, or for this many steps."""
    world.look()
    for _ in range(steps):
        if world.is_finished:
            return
        what = [*world.running, *(["land"] if world.landing else []), *["pause"] * world.paused]
        one = data.draw(st.sampled_from(what))
        if one == "land":
            world.end_landing(data.draw(LANDINGS))
        elif one == "pause":
            world.paused -= 1
            world.tell(PauseEnded())
        else:
            world.end_attempt(one, data.draw(ENDS))


def assert_all_have_ended(world: World) -> None:
    """Each item has landed, is parked, is kept with an issue, or comes after one of the latter."""
    for name in world.after:
        held = name in world.backlog and name not in world.ready()
        ends = [name in world.landed, name in world.parked, held]
        assert sum(ends) == 1, f"{name}: landed, parked, held: {ends}"
    assert len(set(world.landed)) == len(world.landed)


@given(worlds(), st.data())
def test_every_item_comes_to_one_end(world: World, data: st.DataObject) -> None:
    """Whatever happens, the pool finishes, with each item landed once, parked or held."""
    play(world, data)
    assert world.is_finished
    assert_all_have_ended(world)


@given(worlds(), st.data())
def test_a_stop_lets_what_is_at_work_end(world: World, data: st.DataObject) -> None:
    """After it nothing begins or lands; the pool finishes when the rest has ended."""
    play(world, data, steps=data.draw(st.integers(0, 12)))
    world.holds_back = True
    left = len(world.running) + (world.landing is not None)
    started = [event for event in world.events if isinstance(event, ev.WatchProcessingItem)]
    if not world.is_finished:
        play(world, data, steps=left)
    assert world.is_finished
    assert started == [event for event in world.events if isinstance(event, ev.WatchProcessingItem)]


@given(worlds(), st.data())
def test_the_next_process_goes_on(world: World, data: st.DataObject) -> None:
    """What the journal says is what the state knows, and the items come to one end all the same."""
    for _ in range(data.draw(st.integers(1, 3))):
        play(world, data, steps=data.draw(st.integers(0, 8)))
        recorded = state_after(world.events)
        assert dict(recorded.queue.returns) == dict(world.state.queue.returns)
        known = {n: _lasting(w) for n, w in world.state.works.items() if w.candidate is not None}
        found = {n: _lasting(w) for n, w in recorded.works.items() if w.candidate is not None}
        assert known == found
        waiting = [name for name, work in recorded.works.items() if work.waits_to_land]
        assert set(recorded.queue.waiting) <= set(waiting), "others are added when they are listed"
        if world.landing is not None:
            assert recorded.queue.waiting[0] == world.landing.name, "it is landed again first"
        for name, work in recorded.works.items():
            recorded = recorded.with_work(name, work.of_text(f"{name} digest"))
        limit = world.state.limit
        world.state = PoolState(limit=limit, queue=recorded.queue, works=recorded.works)
        world.running, world.landing = {}, None
        world.is_finished = False
    play(world, data)
    assert world.is_finished
    assert_all_have_ended(world)


def _lasting(work: ItemWork) -> tuple[object, ...]:
    return work.candidate, work.sent_back, work.proposed, work.has_landed


@given(worlds(), st.data())
def test_candidates_land_in_order(world: World, data: st.DataObject) -> None:
    """First come, first landed: but those sent back before others, the most stubborn one alone."""
    world.look()
    while not world.is_finished:
        before = world.state
        what = [*world.running, *(["land"] if world.landing else [])]
        one = data.draw(st.sampled_from(what))
        landed = world.landing
        if one == "land":
            world.end_landing(data.draw(LANDINGS))
        else:
            world.end_attempt(one, data.draw(ENDS))
        if world.landing is None or world.landing is landed:
            continue
        queue, name = world.state.queue, world.landing.name
        alone = [one for one, times in queue.returns.items() if times >= ALONE]
        assert name in alone or not set(alone) & {*world.running, *queue.waiting}
        passed = [one for one in before.queue.waiting if one in queue.waiting]
        if name not in queue.returns:
            assert not [one for one in queue.waiting if one in queue.returns]
            assert not passed or before.queue.waiting.index(name) == 0


@settings(max_examples=30)
@given(worlds(), st.data())
def test_pauses_keep_the_pool(world: World, data: st.DataObject) -> None:
    """It does not finish while something else uses the gate, and looks again after that."""
    world.paused = data.draw(st.integers(1, 3))
    for _ in range(world.paused):
        world.tell(PauseBegun())
    play(world, data)
    assert world.is_finished
    assert world.paused == 0


def test_nothing_begins_before_a_look() -> None:
    """The list from before an end is old; what fails may have paused every item."""
    state, _ = next_step(PoolState(limit=SlotLimit(1)), Listed(("a", "b")))
    state, decisions = next_step(state, AttemptEnded("a"))
    assert decisions == (Look(),)
    _, decisions = next_step(state, Listed(()))
    assert decisions == (Finish(),)


def test_a_slot_is_kept_for_its_item() -> None:
    """An item goes on where it was; a new one takes a slot where nothing was begun, or is over."""
    state = PoolState(limit=SlotLimit(3), last_in={1: "c", 2: "a", 3: "gone"})
    _, decisions = next_step(state, Listed(("a", "b"), gone=frozenset({"gone"})))
    assert [(one.name, one.slot) for one in decisions if isinstance(one, Start)] == [
        ("a", 2),
        ("b", 3),
    ]


def test_three_that_wait_hold_new_items_back() -> None:
    """Items that were sent back begin all the same."""
    works = {name: ItemWork(candidate=candidate(Start(name, 1))) for name in "abcd"}
    state = PoolState(limit=SlotLimit(3), works=works)
    state, decisions = next_step(state, Listed(("a", "b", "c", "d", "e")))
    assert [type(one) for one in decisions] == [Land]
    state, _ = next_step(state, Happened("a", back("a")))
    state, decisions = next_step(state, LandingEnded())
    state, decisions = next_step(state, Listed(("a", "f")))
    assert [one.name for one in decisions if isinstance(one, Start | Land)] == ["a", "b"]
    state, _ = next_step(state, Forgotten("c"))
    _, decisions = next_step(state, Listed(("f",)))
    assert [one.name for one in decisions if isinstance(one, Start)] == ["f"]


def test_unapproved_work_neither_lands_nor_begins_again() -> None:
    """Until its item is forgotten, as when it is parked."""
    made = candidate(Start("a", 1), approved=False)
    state, _ = next_step(PoolState(limit=SlotLimit(2)), Happened("a", made))
    state, decisions = next_step(state, Listed(("a",)))
    assert (Finish(),) == decisions
    state, _ = next_step(state, Forgotten("a"))
    _, decisions = next_step(state, Listed(("a",)))
    assert (Start("a", 1),) == decisions


FAILS = "FAILED tests/test_a.py::test_{0} - no\n1 failed in {1}s\n"


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        pytest.param([FAILS.format("a", 1), FAILS.format("a", 2)], False, id="twice"),
        pytest.param([FAILS.format("a", n) for n in range(3)], True, id="three times"),
        pytest.param([FAILS.format(name, 1) for name in "aba"], False, id="others between"),
        pytest.param([FAILS.format(name, 1) for name in "baaa"], True, id="after another"),
        pytest.param(["at 0x7f01: gone in 1.5s"] * 3, True, id="same output"),
        pytest.param([None] * 5, False, id="conflicts"),
        pytest.param(["x", None, "x", "x"], False, id="a conflict between"),
    ],
)
def test_the_same_failure_is_unfixable(outputs: list[str | None], expected: bool) -> None:
    """Three returns in a row with it are enough, in this process or as recorded."""
    recorded: list[ev.Event] = []
    state = PoolState()
    for output in outputs:
        made = candidate(Start("a", 1))
        reason: Any = "conflict" if output is None else "check"
        sent = ev.WatchSentBack(filename="a", reason=reason, output=output or "", returns=1)
        for event in (made, sent):
            recorded.append(event)
            state, _ = next_step(state, Happened("a", event))
    assert expected == state.works["a"].is_unfixable
    assert state.works["a"].repeats == state_after(recorded).works["a"].repeats


def test_another_text_begins_anew() -> None:
    """Neither the candidate of the old text nor its returns count."""
    old = ItemWork(item="a 1", number=3, candidate=candidate(Start("a", 1)), sent_back=back("a"))
    state = PoolState(works={"a": old})
    state, _ = next_step(state, Happened("a", back("a")))
    assert state.queue.returns == {"a": 1}
    same, _ = next_step(state, Begun("a", "a 1", 1))
    assert (same.works["a"].number, same.works["a"].returned) == (4, old.returned)
    other, _ = next_step(state, Begun("a", "a 2", 1))
    assert other.works["a"] == ItemWork(item="a 2", number=1, slot=1)
    assert other.queue.returns == {}


def test_what_is_proposed_neither_lands_nor_returns() -> None:
    """Until its pull request sends it back."""
    made = candidate(Start("a", 1))
    proposed = ev.WatchProposed(
        filename="a", number=1, url="u", branch="b", commit="c", candidate="c"
    )
    state, _ = next_step(PoolState(), Happened("a", made))
    state, _ = next_step(state, Happened("a", ev.LoopApproved(iteration=1)))
    state, _ = next_step(state, Happened("a", proposed))
    assert not state.waits_to_land("a")
    assert state.works["a"].returned is None
    state, _ = next_step(state, Happened("a", back("a")))
    assert state.works["a"].returned == (made, back("a"))
    assert state.works["a"].proposed is None
