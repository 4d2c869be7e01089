"""`retry_session`: releases, disposal and leftovers."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops

from cuggino.errors import AgentFailed
from cuggino.events import AgentMessage
from cuggino.operators import Schedule
from cuggino.operators.supervision import RETRIES, retry_session
from cuggino.testing import Marbles

OVERLOADED = AgentFailed("Overloaded", reason="overloaded")
A = AgentMessage(text="a")


def steady() -> float:
    """The random number that leaves the pauses as they are."""
    return 0.5


def test_the_failed_agent_is_released_before_the_event() -> None:
    """The failed source is released, then the retry is announced; never two sources run."""
    t = Marbles(error=OVERLOADED)
    order: list[str] = []
    source = t.cold("-#").pipe(
        ops.do_action(on_error=lambda _: order.append("failed")),
        ops.finally_action(lambda: order.append("released")),
    )
    stream = source.pipe(
        retry_session(RETRIES.times(1)), ops.do_action(lambda _: order.append("announced"))
    )
    t.record(stream)
    assert ["failed", "released", "announced", "failed", "released"] == order


def test_a_source_that_fails_in_its_subscription_is_released_first() -> None:
    """Resources of a source that fails within `subscribe` are released before the event."""
    order: list[str] = []

    def subscribe(observer: Any, scheduler: Any = None) -> Any:
        observer.on_error(OVERLOADED)
        return lambda: order.append("released")

    t = Marbles()
    stream = rx.create(subscribe).pipe(
        retry_session(RETRIES.times(1)), ops.do_action(lambda _: order.append("announced"))
    )
    t.record(stream)
    assert ["released", "announced", "released"] == order


@pytest.mark.parametrize("dispose_at", [1.0, 3.0, 8.0], ids=["running", "pause", "again"])
def test_disposal_leaves_nothing(dispose_at: float) -> None:
    """Disposed in an attempt or in a pause, no timer and no subscription is left."""
    t = Marbles(a=A, error=OVERLOADED)
    source = t.cold("a-#")
    t.record(
        source.pipe(retry_session(random=steady)), until=dispose_at + 0.5, dispose_at=dispose_at
    )
    assert 0 == pending(t)
    began = len(source.subscriptions)
    t.scheduler.advance_to(1000.0)
    assert began == len(source.subscriptions)
    assert None not in [end for _, end in source.subscriptions]


def test_disposal_by_the_event_itself() -> None:
    """A subscriber that leaves at `AgentRetry` leaves no timer behind."""
    t = Marbles(error=OVERLOADED)
    source = t.cold("#")
    t.record(source.pipe(retry_session(random=steady), ops.take(1)), until=1.0)
    assert [(0.0, 0.0)] == source.subscriptions
    assert 0 == pending(t)


@pytest.mark.real_agent
def test_the_stack_stays_constant() -> None:
    """A source that fails within `subscribe` again and again takes no more stack at the end."""
    depths: list[int] = []

    def subscribe(observer: Any, scheduler: Any = None) -> Any:
        depths.append(len(inspect.stack(0)))
        observer.on_error(OVERLOADED)
        return lambda: None

    t = Marbles()
    stream = rx.create(subscribe).pipe(retry_session(Schedule.constant(0.001).times(100)))
    seen = t.record(stream)
    assert 101 == len(depths) == len(seen)
    assert ("error", OVERLOADED) == seen[-1][1:]
    assert 1 == len(set(depths[1:]))


def test_a_failure_of_the_subscriber_is_not_retried() -> None:
    """An exception thrown downstream releases the agent and is never taken for its failure."""
    t = Marbles(a=A)
    source = t.cold("a-a|")
    errors: list[Exception] = []

    def fail(_: Any) -> None:
        raise OVERLOADED

    stream = source.pipe(retry_session(transient=lambda _: True))
    stream.subscribe(fail, errors.append, scheduler=t.scheduler)
    t.scheduler.advance_to(100.0)
    assert [OVERLOADED] == errors
    t.check_subscriptions(source, "(^!)")


def test_a_failure_of_the_subscriber_of_a_synchronous_source_is_not_retried() -> None:
    """The same holds when the event comes out of `subscribe` itself."""
    errors: list[Exception] = []
    begun: list[int] = []

    def subscribe(observer: Any, scheduler: Any = None) -> Any:
        begun.append(1)
        observer.on_next(A)
        return lambda: None

    def fail(_: Any) -> None:
        raise OVERLOADED

    t = Marbles()
    stream = rx.create(subscribe).pipe(retry_session(transient=lambda _: True))
    stream.subscribe(fail, errors.append, scheduler=t.scheduler)
    t.scheduler.advance_to(100.0)
    assert ([OVERLOADED], [1]) == (errors, begun)


def pending(t: Marbles) -> int:
    """Timers that are still due."""
    return sum(not item[0].is_cancelled() for item in t.scheduler._queue.items)
