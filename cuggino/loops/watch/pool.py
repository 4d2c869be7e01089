"""`pool`: items at work in slots, and one gate through which they land."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import assert_never

from reactivex import Observable, abc, defer, empty, never, operators as ops
from reactivex.disposable import Disposable
from reactivex.subject import Subject

from cuggino.domain import SlotLimit
from cuggino.events import WatchEvent
from cuggino.loops.watch.pool_state import (
    OF_ITEMS,
    AttemptEnded,
    Decision,
    Fact,
    Finish,
    Happened,
    Land,
    LandingEnded,
    Listed,
    Look,
    PauseBegun,
    PauseEnded,
    PoolState,
    Start,
    next_step,
)
from cuggino.operators import Flow, StateRef, flow, forward, managed, merge_at_most, on_loop
from cuggino.operators.alongside import alongside
from cuggino.operators.managed import Subscription
from cuggino.operators.mapcat import mapcat
from cuggino.operators.mistakes import require_result, require_stream


def pool(
    items: Observable[Sequence[str]],
    slots: int,
    attempt: Callable[[Start], Observable[WatchEvent]],
    land: Callable[[Land], Observable[WatchEvent]],
    *,
    changes: Observable[object] | None = None,
) -> Observable[WatchEvent]:
    """Work on the items in slots, several at a time, and land their candidates one by one. Cold.

    ::

        items:      x               x: a and b may begin, until they have landed
        attempt a:  --c|            c: its WatchCandidate
        attempt b:  ---d|
        land c:     -l|             l: its WatchLanded
        land d:     -m|
        pool:       --cdl-m|

    `items` emits the names of the items that may begin now, in order. It is subscribed to again
    when an attempt or a landing has ended, and when `changes` emits; what it emits later counts,
    too. If it completes without a list, nothing may begin. An item that is at work, or that has a
    candidate, does not begin again; any other that is listed does, so an item that has landed or
    failed must not be listed.

    `attempt` gets a `Start` (item, slot, number, what was sent back) and its candidate is the last
    `WatchCandidate` that it emits; one that is not approved never lands. `land` gets a `Land`
    (item, candidate) and emits `WatchLanded`, `WatchProposed`, or `WatchSentBack`: then the item is
    attempted again, before others. One that was sent back twice has the gate to itself. The queue
    is kept short: when three candidates wait, no new item begins.

    Completes when nothing is at work and nothing that is listed can begin. Errors: those of all the
    streams; one releases everything.
    """
    require_stream(items, "pool")
    if changes is not None:
        require_stream(changes, "pool")
    if not isinstance(slots, int):
        raise TypeError(f"slots must be a whole number, not {slots!r}")
    if slots < 1:
        raise ValueError("a pool has at least one of the slots")

    def begun(_scheduler: abc.SchedulerBase) -> Observable[WatchEvent]:
        state = StateRef(PoolState(limit=SlotLimit(slots)))
        listings = items.pipe(ops.default_if_empty(()), ops.map(_listing))

        def landing(decision: Land) -> Flow[None]:
            stream = land(decision)
            require_result(stream, "`land` of pool()")
            yield from forward(stream)
            work = state.value.work_of(decision.name)
            if work.waits_to_land and not work.has_landed:  # it would land again and again
                raise TypeError(
                    "`land` of pool() ended without WatchLanded, WatchProposed or WatchSentBack "
                    f"for {decision.name}"
                )

        return pool_of(
            state, listings, attempt, lambda land: flow(partial(landing, land)), changes=changes
        )

    return on_loop(defer(begun))


def _listing(names: object) -> Listed:
    if isinstance(names, Iterable) and not isinstance(names, str):
        ready = tuple(names)
        if all(isinstance(name, str) for name in ready):
            return Listed(ready)
    raise TypeError(f"`items` of pool() emitted {names!r}, not a list of names")


def pool_of(
    state: StateRef[PoolState],
    items: Observable[Listed],
    attempt: Callable[[Start], Observable[WatchEvent]],
    land: Callable[[Land], Observable[WatchEvent]],
    *,
    changes: Observable[object] | None = None,
    pauses: Observable[Observable[WatchEvent]] | None = None,
    on_release: Callable[[], object] | None = None,
) -> Observable[WatchEvent]:
    """Run `next_step` on a state that others read and update, too; see `pool`.

    ::

        items -> Listed -> next_step -> merge_at_most(slots) attempts
                                     -> merge_at_most(1) landings and pauses

    Each of the `pauses` is a stream that runs between two landings. `on_release` is called before
    anything at work is released.
    """

    def begun(_scheduler: abc.SchedulerBase) -> Observable[WatchEvent]:
        starts: Subscription[Observable[WatchEvent]] | None = None
        gate: Subject[Observable[WatchEvent]] = Subject()
        looks: Subject[object] = Subject()
        pending: deque[Decision] = deque()
        is_deciding = False

        def tell(fact: Fact) -> None:
            after, decisions = next_step(state.value, fact)
            state.set(after)
            decide(*decisions)

        def decide(*decisions: Decision) -> None:
            """Carry out decisions in the order in which they were taken, one after the other."""
            nonlocal is_deciding
            pending.extend(decisions)
            if is_deciding:
                return
            is_deciding = True
            try:
                while pending and starts is not None:
                    carry_out(pending.popleft(), starts)
            finally:
                is_deciding = False

        def carry_out(decision: Decision, starts: Subscription[Observable[WatchEvent]]) -> None:
            match decision:
                case Start():
                    starts.on_next(
                        then(heard(attempt(decision), decision.name), AttemptEnded(decision.name))
                    )
                case Land():
                    gate.on_next(then(heard(land(decision), decision.name), LandingEnded()))
                case Look():
                    looks.on_next(decision)
                case Finish():
                    starts.on_completed()
                case _:
                    assert_never(decision)

        def heard(stream: Observable[WatchEvent], name: str) -> Observable[WatchEvent]:
            require_result(stream, "`attempt` or `land` of pool()")

            def hear(event: WatchEvent) -> None:
                if isinstance(event, OF_ITEMS) and event.item in (None, name):
                    tell(Happened(name, event))

            return stream.pipe(ops.do_action(hear))

        def then(stream: Observable[WatchEvent], fact: Fact) -> Observable[WatchEvent]:
            def story() -> Flow[None]:
                yield from forward(stream)
                tell(fact)

            return flow(story)

        def pause(stream: Observable[WatchEvent]) -> tuple[()]:
            tell(PauseBegun())
            gate.on_next(then(stream, PauseEnded()))
            return ()

        def listed(fact: Listed) -> tuple[()]:
            tell(fact)
            return ()

        def look(_change: object) -> tuple[()]:
            decide(Look())
            return ()

        def begin(
            begun: Subscription[Observable[WatchEvent]], _scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            nonlocal starts
            starts = begun
            decide(Look())
            return Disposable(rest)

        def rest() -> None:
            nonlocal starts
            starts = None

        slots = state.value.limit.slots
        attempts: Observable[WatchEvent] = managed(begin).pipe(
            merge_at_most(slots, on_release=on_release)
        )
        landings: Observable[WatchEvent] = gate.pipe(merge_at_most(1, on_release=on_release))
        listings: Observable[WatchEvent] = looks.pipe(
            ops.map(lambda _: items), ops.switch_latest(), mapcat(listed)
        )
        paused: Observable[WatchEvent] = (pauses or empty()).pipe(mapcat(pause))
        changed: Observable[WatchEvent] = (changes or never()).pipe(mapcat(look))
        return attempts.pipe(alongside(landings, listings, paused, changed))

    return defer(begun)
