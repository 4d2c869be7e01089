"""The state of a pool of slots, and its pure step: what begins, and what lands."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple, TypeAlias, TypeVar

from cuggino.domain import LandingQueue, SlotLimit
from cuggino.events import (
    Event,
    LoopTerminalEvent,
    WatchCandidate,
    WatchLanded,
    WatchProposed,
    WatchSentBack,
)
from cuggino.gate import CheckResult, Repeats

T = TypeVar("T")


_MOST_REPEATS = 3
"""The returns with the same failure after which an item is parked."""

OF_ITEMS = (LoopTerminalEvent, WatchCandidate, WatchProposed, WatchSentBack, WatchLanded)
"""The events that change the state of an item."""


class Returned(NamedTuple):
    """A candidate that did not land."""

    candidate: WatchCandidate
    sent_back: WatchSentBack


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemWork:
    """The state of an item that was worked on."""

    item: str = ""
    """Its name and digest; "" if its text does not matter."""
    number: int = 0
    """The latest attempt that has ended without a failure, from 1."""
    slot: int = 0
    end: LoopTerminalEvent | None = None
    """The end of its latest run."""
    candidate: WatchCandidate | None = None
    """The candidate, until it lands."""
    sent_back: WatchSentBack | None = None
    """The reason why the candidate did not land."""
    proposed: WatchProposed | None = None
    """The pull request that has the candidate."""
    has_landed: bool = False
    """True if the item has landed but was not put away."""
    repeats: Repeats = field(default_factory=Repeats)
    """How often in a row it was sent back with the same failure."""

    @property
    def waits_to_land(self) -> bool:
        """Return whether the candidate only has to pass the gate."""
        is_candidate = self.candidate is not None and not self.is_unapproved
        return is_candidate and self.sent_back is None and self.proposed is None

    @property
    def is_unapproved(self) -> bool:
        """Return whether the candidate may not land because it is not approved."""
        return self.candidate is not None and not self.candidate.approved

    @property
    def is_unfixable(self) -> bool:
        """Return whether the same failure came back, although agents worked on it in between."""
        return self.repeats.result is not None and self.repeats.times >= _MOST_REPEATS

    @property
    def returned(self) -> Returned | None:
        """Return its candidate with the reason why it did not land, if it was sent back."""
        if self.candidate is None or self.sent_back is None:
            return None
        return Returned(self.candidate, self.sent_back)

    def of_text(self, item: str) -> ItemWork:
        """Return the state with the name and digest of the item."""
        return replace(self, item=item)

    def after(self, event: Event) -> ItemWork:
        """Return the state after an event of the item, now or as recorded."""
        match event:
            case LoopTerminalEvent():
                return replace(self, end=event)
            case WatchCandidate(attempt=number):
                number = max(self.number, number)
                made = replace(self, candidate=event, number=number)
                return replace(made, sent_back=None, proposed=None)
            case WatchProposed():
                return replace(self, proposed=event)
            case WatchSentBack(reason=reason):
                result = None if reason == "conflict" else CheckResult.of(1, event.output)
                repeats = self.repeats.add(reason, result)
                return replace(self, sent_back=event, proposed=None, repeats=repeats)
            case WatchLanded():
                return replace(self, has_landed=True)
            case _:
                return self


# What happens.


class Listed(NamedTuple):
    """The backlog was listed."""

    ready: tuple[str, ...]
    """The items that may begin or land now, in order."""
    holds_back: bool = False
    """True if nothing may begin or land: it is paused, stopped, or outside of the hours."""
    gone: frozenset[str] = frozenset()
    """Items that have left the backlog: their slots count as unused."""


class Begun(NamedTuple):
    """An attempt has read the text of its item; what is known of another text is forgotten."""

    name: str
    item: str
    slot: int


class Happened(NamedTuple):
    """An event of an item."""

    name: str
    event: Event


class Served(NamedTuple):
    """An attempt has ended without a failure."""

    name: str


class Failed(NamedTuple):
    """An attempt has failed, or was stopped. Its number is reused."""

    name: str


class Overloaded(NamedTuple):
    """An attempt has met an overload of the agents' service."""

    name: str
    at: datetime


class Forgotten(NamedTuple):
    """An item was put away, or a person has taken it."""

    name: str


class AttemptEnded(NamedTuple):
    """An attempt has left its slot."""

    name: str


class LandingEnded(NamedTuple):
    """The gate is free."""


class PauseBegun(NamedTuple):
    """Something else waits for the gate, or uses it."""


class PauseEnded(NamedTuple):
    """Nothing else uses the gate."""


Fact: TypeAlias = (
    Listed
    | Begun
    | Happened
    | Served
    | Failed
    | Overloaded
    | Forgotten
    | AttemptEnded
    | LandingEnded
    | PauseBegun
    | PauseEnded
)

# What is to be done.


class Start(NamedTuple):
    """Begin an attempt at an item, in a slot."""

    name: str
    slot: int
    number: int = 1
    """Counts the attempts at the item."""
    returned: Returned | None = None
    """Its candidate that did not land, from which it continues."""
    returns: int = 0
    """The number of times it was sent back."""


class Land(NamedTuple):
    """Land the candidate of an item."""

    name: str
    candidate: WatchCandidate
    returns: int = 0
    """The number of times the item was sent back."""


class Look(NamedTuple):
    """List the items again."""


class Finish(NamedTuple):
    """End the pool: nothing is at work, and nothing can begin."""


Decision: TypeAlias = Start | Land | Look | Finish


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    """The items of a pool: at work in slots, waiting to land, sent back."""

    limit: SlotLimit = field(default_factory=lambda: SlotLimit(1))
    """The slots, and how many of them may be at work."""
    queue: LandingQueue = field(default_factory=LandingQueue)
    works: Mapping[str, ItemWork] = field(default_factory=dict)
    """The items with work that has not landed, or was not put away."""
    at_work: Mapping[str, int] = field(default_factory=dict)
    """The items at work, each with its slot."""
    last_in: Mapping[int, str] = field(default_factory=dict)
    """The item that was at work last in each slot."""
    lands: str | None = None
    """The item at the gate, until everything after its landing is done, too."""
    pauses: int = 0
    """How many others use the gate, or wait for it."""

    def is_active(self, name: str) -> bool:
        """Return whether the item is at work, in the queue, or at the gate."""
        return name in self.at_work or name in self.queue.waiting or name == self.lands

    def waits_to_land(self, name: str) -> bool:
        """Return whether the item has a candidate that only has to land."""
        return name in self.works and self.works[name].waits_to_land

    @property
    def is_idle(self) -> bool:
        """Return whether nothing is at work or at the gate."""
        return not self.at_work and self.lands is None and self.pauses == 0

    def work_of(self, name: str) -> ItemWork:
        """Return the state of the item, also of a new one."""
        return self.works.get(name, ItemWork())

    def with_work(self, name: str, work: ItemWork) -> PoolState:
        """Return the state with that of an item."""
        return replace(self, works={**self.works, name: work})


def next_step(state: PoolState, fact: Fact) -> tuple[PoolState, tuple[Decision, ...]]:
    """Return the state after the fact, and what is to be done, in this order.

    Only after `Listed` does anything begin: nothing does from an old list. Of the items listed,
    those sent back more often begin first; each has one attempt at a time, in a slot of its own, as
    long as `limit` has room and the queue is short. Candidates land one at a time, in the order of
    `LandingQueue`. An item whose candidate is not approved, or is in a pull request, neither lands
    nor begins again.
    """
    match fact:
        case Listed(holds_back=True):
            return state, (Finish(),) if state.is_idle else ()
        case Listed():
            return _listed(state, fact)
        case Begun(name, item, slot):
            return _begun(state, name, item, slot), ()
        case Happened(name, event):
            return _happened(state, name, event), ()
        case Served(name):
            return replace(state, limit=state.limit.ended(name)), ()
        case Failed(name):
            limit = state.limit.ended(name, succeeded=False)
            return _numbered_again(replace(state, limit=limit), name), ()
        case Overloaded(name, at):
            return replace(state, limit=state.limit.overloaded(name, at)), ()
        case Forgotten(name):
            return _forgotten(state, name), ()
        case AttemptEnded(name):
            return replace(state, at_work=_without(state.at_work, name)), (Look(),)
        case LandingEnded():
            name = state.lands or ""
            after = replace(state, queue=replace(state.queue, landing=None), lands=None)
            if state.work_of(name).has_landed:
                after = _forgotten(after, name)
            return after, (Look(),)
        case PauseBegun():
            return replace(state, pauses=state.pauses + 1), ()
        case PauseEnded():
            return replace(state, pauses=state.pauses - 1), (Look(),)


def _listed(state: PoolState, listed: Listed) -> tuple[PoolState, tuple[Decision, ...]]:
    queue, at_work, last_in = state.queue, dict(state.at_work), dict(state.last_in)
    decisions: list[Decision] = []
    for name in queue.first(listed.ready):
        work = state.work_of(name)
        if state.is_active(name) or name in at_work:
            continue
        if work.is_unapproved or work.proposed is not None:
            continue
        if state.waits_to_land(name):
            queue = queue.add(name)
        elif len(at_work) < state.limit.active and (queue.admits_new or name in queue.returns):
            slot = _slot_for(name, state.limit.slots, at_work.values(), last_in, listed.gone)
            at_work[name], last_in[slot] = slot, name
            decisions.append(
                Start(name, slot, work.number + 1, work.returned, queue.returns.get(name, 0))
            )
    lands = state.lands
    if lands is None:
        returning = [name for name in listed.ready if name in queue.returns]
        lands = queue.next({*at_work, *returning})
        if lands is not None:
            candidate = state.works[lands].candidate
            assert candidate is not None
            decisions.append(Land(lands, candidate, queue.returns.get(lands, 0)))
            queue = queue.begin(lands)
    after = replace(state, queue=queue, at_work=at_work, last_in=last_in, lands=lands)
    if not decisions and after.is_idle:
        decisions.append(Finish())
    return after, tuple(decisions)


def _slot_for(
    name: str,
    slots: int,
    taken: Collection[int],
    last_in: Mapping[int, str],
    gone: frozenset[str],
) -> int:
    """Return the free slot where the item was at work; else one where nothing was begun."""
    free = [number for number in range(1, slots + 1) if number not in taken]
    began = {number: item for number, item in last_in.items() if item not in gone}
    its = next((number for number in free if began.get(number) == name), None)
    return its or min(free, key=lambda one: (one in began, one))


def _happened(state: PoolState, name: str, event: Event) -> PoolState:
    before = state.work_of(name)
    work = before.after(event)
    if work is before:
        return state
    queue = state.queue.send_back(name) if isinstance(event, WatchSentBack) else state.queue
    return replace(state, queue=queue).with_work(name, work)


def _numbered_again(state: PoolState, name: str) -> PoolState:
    work = state.works.get(name)
    if work is None or work.number == 0:
        return state
    return state.with_work(name, replace(work, number=work.number - 1))


def _begun(state: PoolState, name: str, item: str, slot: int) -> PoolState:
    work, queue = state.work_of(name), state.queue
    if work.item != item:
        work, queue = ItemWork(item=item), queue.forget(name)
    work = replace(work, number=work.number + 1, slot=slot, end=None)
    return replace(state, queue=queue).with_work(name, work)


def _forgotten(state: PoolState, name: str) -> PoolState:
    return replace(state, queue=state.queue.forget(name), works=_without(state.works, name))


def _without(things: Mapping[str, T], name: str) -> dict[str, T]:
    return {one: thing for one, thing in things.items() if one != name}
