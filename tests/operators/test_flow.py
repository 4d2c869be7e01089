"""`flow`: each property that the architecture lists."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.disposable import Disposable

from cuggino.operators import Flow, ask, emit, flow, forward
from cuggino.testing import Marbles


def test_events_are_forwarded_in_order_and_stages_follow_each_other() -> None:
    """A generator's stages run one after the other, each subscribed when the one before ended."""
    t = Marbles(a="a", b="b", x="x", y="y")
    first, second = t.cold("-a-b|"), t.cold("x--y-|")

    def story() -> Flow[None]:
        yield from forward(first)
        yield from forward(second)

    t.check(flow(story), "-a-bx--y-|")
    t.check_subscriptions(first, "^---!")
    t.check_subscriptions(second, "----^----!")


def test_forward_gives_the_last_event_back() -> None:
    """`forward` and `ask` return the last event of their stage; only `forward` sends events on."""
    t = Marbles(a="a", b="b", x="x", y="y", A="outcome b", Y="outcome y")

    def story() -> Flow[None]:
        last = yield from forward(t.cold("ab|"))
        yield from emit(f"outcome {last}")
        last = yield from ask(t.cold("xy|"))
        yield from emit(f"outcome {last}")

    t.check(flow(story), "ab(A) -(Y|)")


def test_a_stage_without_events_has_no_outcome() -> None:
    """`forward` gives None for a stage that completed without an event."""
    seen: list[Any] = []

    def story() -> Flow[None]:
        yield from emit((yield from forward(rx.empty())))

    flow(story).subscribe(seen.append)
    assert seen == [None]


def test_a_finished_stage_is_released_before_the_generator_goes_on() -> None:
    """The `finally_action` of a stage, synchronous or not, runs before the next line."""
    t = Marbles(a="a")
    order: list[str] = []

    def story() -> Flow[None]:
        for name, stream in (("sync", rx.of(1)), ("timed", t.cold("--a|"))):
            released = ops.finally_action(partial(order.append, f"released {name}"))
            yield from forward(stream.pipe(released))
            order.append(f"after {name}")

    t.record(flow(story))
    assert order == ["released sync", "after sync", "released timed", "after timed"]


def test_a_stage_error_is_thrown_into_the_generator() -> None:
    """`try` around a stage catches its error, and the generator continues."""
    t = Marbles(a="a", c="caught boom", error=RuntimeError("boom"))

    def story() -> Flow[None]:
        try:
            yield from forward(t.cold("a-#"))
        except RuntimeError as error:
            yield from emit(f"caught {error}")

    t.check(flow(story), "a-(c|)")


def test_an_error_that_is_not_caught_ends_the_stream() -> None:
    """An error of a stage or of the generator itself is the error of the stream."""
    t = Marbles(a="a", error=RuntimeError("boom"))

    def story() -> Flow[None]:
        yield from forward(t.cold("a-#"))

    t.check(flow(story), "a-#")

    def bad() -> Flow[None]:
        yield from emit("a")
        raise t.error

    other = Marbles(a="a", error=t.error)
    other.check(flow(bad), "(a#)")


def test_disposal_ends_the_stage_first_and_then_closes_the_generator() -> None:
    """On disposal the running stage is disposed, then the generator's `finally` runs."""
    t = Marbles(a="a")
    order: list[str] = []
    stage = t.cold("-a-a-a-a").pipe(ops.finally_action(lambda: order.append("stage")))

    def story() -> Flow[None]:
        try:
            yield from forward(stage)
        finally:
            order.append("generator")

    t.check(flow(story), "-a-a", dispose_at=4)
    assert order == ["stage", "generator"]


def test_disposal_while_the_generator_runs_closes_it_at_its_next_yield() -> None:
    """Disposed from within its body, a generator reaches its yield and starts no stage."""
    order: list[str] = []
    holder: list[Any] = []
    t = Marbles(a="a")
    never_started = t.cold("a|")

    def story() -> Flow[None]:
        try:
            yield from forward(rx.timer(1))
            holder[0].dispose()
            order.append("body went on")
            yield from forward(never_started)
        finally:
            order.append("closed")

    holder.append(flow(story).subscribe(scheduler=t.scheduler))
    t.scheduler.advance_to(10)
    assert order == ["body went on", "closed"]


def test_a_body_that_was_disposed_and_returns_completes_nothing() -> None:
    """The end of a generator that its subscriber has left is not reported."""
    told: list[object] = []
    holder: list[Any] = []
    stage: rx.Subject[str] = rx.Subject()

    def story() -> Flow[None]:
        yield from forward(stage)
        holder[0].dispose()
        told.append("body returned")

    holder.append(flow(story).subscribe(told.append, told.append, lambda: told.append("done")))
    stage.on_completed()
    assert ["body returned"] == told


def test_an_error_of_a_body_that_was_disposed_is_not_lost() -> None:
    """Without a subscriber the error is raised where the stage ended, and nothing is emitted."""
    told: list[object] = []
    holder: list[Any] = []
    stage: rx.Subject[str] = rx.Subject()

    def story() -> Flow[None]:
        yield from forward(stage)
        holder[0].dispose()
        raise OSError("in the midst of its end")

    holder.append(flow(story).subscribe(told.append, told.append, lambda: told.append("done")))
    with pytest.raises(OSError, match="in the midst of its end"):
        stage.on_completed()
    assert [] == told


def test_take_inside_an_emit_stops_at_once() -> None:
    """A subscriber that has had enough in the middle of an `emit` gets nothing more."""
    seen: list[int] = []
    closed: list[bool] = []

    def story() -> Flow[None]:
        try:
            yield from emit(1, 2, 3)
            yield from emit(4)
        finally:
            closed.append(True)

    flow(story).pipe(ops.take(2)).subscribe(seen.append)
    assert seen == [1, 2]
    assert closed == [True]


@pytest.mark.parametrize("kind", ["current thread", "trampolined", "in the subscription"])
def test_the_stack_stays_constant_over_many_synchronous_stages(kind: str) -> None:
    """Thousands of stages that end within their subscription need no deeper stack than ten."""
    depths: set[int] = set()

    def now(observer: Any, scheduler: Any = None) -> Any:
        observer.on_next(1)
        observer.on_completed()
        return Disposable()

    stages: dict[str, Callable[[], rx.Observable[int]]] = {
        "current thread": lambda: rx.of(1),
        "trampolined": lambda: rx.defer(lambda _: rx.of(1)),
        "in the subscription": lambda: rx.create(now),
    }

    def story() -> Flow[None]:
        for n in range(5_000):
            yield from ask(stages[kind]())
            if n in (10, 4_999):
                depths.add(_depth())
        yield from emit("done")

    seen: list[str] = []
    flow(story).subscribe(seen.append)
    assert seen == ["done"]
    assert len(depths) == 1


def _depth() -> int:
    frame, depth = sys._getframe(), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


def test_each_subscription_has_a_generator_of_its_own() -> None:
    """Two subscriptions tell the story twice."""

    def story() -> Flow[None]:
        yield from emit("once")

    seen: list[str] = []
    stream = flow(story)
    stream.subscribe(seen.append)
    stream.subscribe(seen.append)
    assert seen == ["once", "once"]


def test_the_subscribers_failure_is_not_thrown_into_the_generator() -> None:
    """An exception in `on_next` ends the stream with it; the story's `except` does not see it."""
    order: list[str] = []

    def story() -> Flow[None]:
        try:
            yield from forward(rx.of(1, 2))
        except ValueError:
            order.append("thrown into the story")
        finally:
            order.append("closed")

    def fail(_value: int) -> None:
        raise ValueError("subscriber")

    errors: list[Exception] = []
    flow(story).subscribe(fail, errors.append)
    assert order == ["closed"]
    assert [str(error) for error in errors] == ["subscriber"]


def test_the_scheduler_of_the_subscription_reaches_every_stage() -> None:
    """Timers of the stages run in the virtual time that `subscribe` was given."""
    t = Marbles(z=0)

    def story() -> Flow[None]:
        yield from forward(rx.timer(60))
        yield from forward(rx.timer(3600))

    threads = threading.active_count()
    t.check(flow(story), "60s z 3599s (z|)")
    assert threads == threading.active_count()
