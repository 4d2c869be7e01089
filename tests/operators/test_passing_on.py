"""What every operator hands on to what it subscribes: the scheduler, and the end of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import reactivex as rx
from reactivex import Observable
from reactivex.disposable import Disposable

from cuggino.domain.spending import Budget
from cuggino.events import AgentMessage
from cuggino.operators import (
    acquire_release,
    alongside,
    extract_markers,
    flow,
    forward,
    idle_timeout,
    interrupt_when,
    mapcat,
    merge_now,
    on_loop,
    retry_session,
    stage_timeout,
    until_terminal,
    wait_for_quota,
    within_budget,
)
from cuggino.testing import Marbles, VirtualClock

Operator = Callable[[Observable[Any]], Observable[Any]]

SYNCHRONOUS: dict[str, Operator] = {
    "acquire_release": lambda source: acquire_release(int, lambda _: source, lambda _: None),
    "alongside": lambda source: source.pipe(alongside(rx.never())),
    "alongside, other": lambda source: rx.never().pipe(alongside(source)),
    "extract_markers": lambda source: source.pipe(extract_markers({})),
    "flow": lambda source: flow(lambda: forward(source)),
    "interrupt_when": lambda source: source.pipe(interrupt_when(rx.never())),
    "interrupt_when, notifier": lambda source: rx.never().pipe(interrupt_when(source)),
    "mapcat": lambda source: source.pipe(mapcat(lambda event: [event])),
    "merge_now": lambda source: merge_now(source, source),
    "retry_session": lambda source: source.pipe(retry_session()),
    "until_terminal": lambda source: source.pipe(until_terminal(bool, linger=1)),
    "within_budget": lambda source: source.pipe(within_budget(Budget(cost_usd=1.0))),
}
ON_A_LANE: dict[str, Operator] = {
    "idle_timeout": lambda source: source.pipe(idle_timeout(idle=5)),
    "on_loop": on_loop,
    "stage_timeout": lambda source: source.pipe(stage_timeout(5)),
    "wait_for_quota": lambda source: source.pipe(wait_for_quota()),
}


@pytest.mark.parametrize("name", [*SYNCHRONOUS, *ON_A_LANE])
def test_the_scheduler_is_handed_on(name: str) -> None:
    """What an operator subscribes is given the scheduler that its subscriber gave."""
    given: list[object] = []

    def subscribe(_observer: Any, scheduler: Any = None) -> Disposable:
        given.append(scheduler)
        return Disposable()

    clock = VirtualClock()
    held = (SYNCHRONOUS | ON_A_LANE)[name](Observable(subscribe)).subscribe(scheduler=clock)
    clock.advance_to(clock.at(1))
    held.dispose()
    assert {clock} == set(given)


@pytest.mark.parametrize("name", ON_A_LANE)
def test_a_lane_is_found_for_who_brings_none(name: str) -> None:
    """Without a scheduler the events come on the default lane."""
    seen: list[object] = []
    ended = threading.Event()
    event = AgentMessage(text="hi")

    def subscribe(observer: Any, _scheduler: Any = None) -> Disposable:
        observer.on_next(event)
        observer.on_completed()
        return Disposable()

    ON_A_LANE[name](Observable(subscribe)).subscribe(seen.append, seen.append, ended.set)
    assert ended.wait(10)
    assert [event] == seen


@pytest.mark.parametrize("name", ["merge_now", "alongside"])
def test_what_fails_at_once_lets_nothing_else_begin(name: str) -> None:
    """After a source that fails within its subscription no further one is subscribed."""
    t = Marbles(a="a")

    def at_once(observer: Any, _scheduler: Any = None) -> Disposable:
        observer.on_error(t.error)
        return Disposable()

    last = t.cold("a|")
    sources = (t.cold("a|"), Observable(at_once), last)
    together = merge_now(*sources) if name == "merge_now" else last.pipe(alongside(*sources))
    t.check(together, "#")
    assert [] == last.subscriptions
