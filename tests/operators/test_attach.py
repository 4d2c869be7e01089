"""`attach`: a subscription of one operator to another, without RxPY's observer in between."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest
import reactivex as rx
from reactivex import Observable, abc
from reactivex.disposable import Disposable

from cuggino.domain.schedule import Schedule
from cuggino.domain.spending import Budget
from cuggino.events import AgentMessage, Done
from cuggino.operators import (
    Managed,
    acquire_release,
    alongside,
    attach,
    deferred,
    each,
    extract_markers,
    flow,
    forward,
    idle_timeout,
    interrupt_when,
    mapcat,
    marker_tags,
    on_loop,
    retry_session,
    stage_timeout,
    until_terminal,
    wait_for_quota,
    within_budget,
)
from cuggino.testing import Marbles

CHAINS: dict[str, list[Callable[[Observable[Any]], Observable[Any]]]] = {
    "none": [],
    "policies": [
        extract_markers(marker_tags(Done)),
        until_terminal(lambda event: isinstance(event, Done), linger=1),
        idle_timeout(idle=60),
        stage_timeout(3600),
        retry_session(Schedule.exponential("1s").times(1)),
        wait_for_quota(),
        within_budget(Budget(tokens=100)),
    ],
    "building blocks": [
        lambda source: source.pipe(alongside(rx.never())),
        each(lambda _event: None),
        lambda source: source.pipe(mapcat(lambda event: [event])),
        interrupt_when(rx.never()),
        lambda source: deferred(lambda: source),
        lambda source: flow(lambda: forward(source)),
        on_loop,
    ],
}


@pytest.mark.parametrize("name", CHAINS)
def test_an_event_passes_no_observer_of_rxpy(name: str) -> None:
    """Only at the source and at the subscriber, however many operators are between them."""
    t = Marbles(a=AgentMessage(text="a"))
    stream: Observable[Any] = t.cold("-a|")
    for operator in CHAINS[name]:
        stream = operator(stream)
    observers: list[int] = []

    def look(_event: object) -> None:
        files = [frame.filename for frame in traceback.extract_stack()]
        observers.append(sum(file.endswith("autodetachobserver.py") for file in files))

    stream.subscribe(look, scheduler=t.clock)
    t.clock.advance_by(5)
    assert [2 if CHAINS[name] else 1] == observers


class Source:
    """A managed stream whose observer is kept, to be called at the wrong time."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.held = Disposable(lambda: self.log.append("released"))
        self.observer: abc.ObserverBase[Any] | None = None

    def attach(self, start: Callable[[Any], None] = lambda _: None) -> abc.DisposableBase:
        def subscribe(
            observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            self.observer = observer
            start(observer)
            return self.held

        return attach(
            Managed(subscribe),
            self.log.append,
            lambda error: self.log.append(str(error)),
            lambda: self.log.append("completed"),
            scheduler=None,
        )


ENDINGS: dict[str, Callable[[Any], None]] = {
    "completed": lambda observer: observer.on_completed(),
    "oh": lambda observer: observer.on_error(LookupError("oh")),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("is_within", [True, False])
def test_nothing_follows_the_end(ending: str, is_within: bool) -> None:
    """The end comes once, and the source is released, also if it ended within `subscribe`."""
    source = Source()
    end = ENDINGS[ending]
    source.attach(end if is_within else lambda _: None)
    assert source.observer is not None
    source.observer.on_next(1)
    if not is_within:
        end(source.observer)
    source.observer.on_next(2)
    for again in ENDINGS.values():
        again(source.observer)
    assert ([ending, "released"] if is_within else [1, ending, "released"]) == source.log


def test_nothing_follows_disposal() -> None:
    """A source that has not heard of it yet calls in vain."""
    source = Source()
    source.attach().dispose()
    assert source.observer is not None
    source.observer.on_next(1)
    source.observer.on_completed()
    assert ["released"] == source.log


def test_a_subscription_that_raises() -> None:
    """It is the error of the stream; after the end it is raised."""
    source = Source()

    def fail(_observer: object) -> None:
        raise LookupError("no source")

    def fail_late(observer: Any) -> None:
        observer.on_completed()
        raise LookupError("no source")

    source.attach(fail)
    assert ["no source"] == source.log
    with pytest.raises(LookupError):
        source.attach(fail_late)
    assert ["no source", "completed"] == source.log


def test_other_streams_are_subscribed_as_ever() -> None:
    """RxPY's own keep their observer: some emit after a disposal."""
    log: list[Any] = []
    attach(rx.of(1, 2), log.append, log.append, lambda: log.append("end"), scheduler=None)
    assert [1, 2, "end"] == log


def test_disposal_while_a_resource_is_acquired() -> None:
    """A resource acquired after the disposal is released at once."""
    log: list[str] = []
    held: list[abc.DisposableBase] = []
    t = Marbles()

    def acquire() -> int:
        held[0].dispose()
        return 1

    late = acquire_release(acquire, lambda _: rx.just(1), lambda _: log.append("released"))
    waiting = rx.timer(1).pipe(mapcat(lambda _: [1]))
    stream = flow(lambda: (yield from _both(waiting, late)))
    held.append(stream.subscribe(lambda _: log.append("event"), scheduler=t.clock))
    t.clock.advance_by(5)
    assert ["event", "released"] == log


def _both(first: Observable[Any], second: Observable[Any]) -> Any:
    yield from forward(first)
    yield from forward(second)
