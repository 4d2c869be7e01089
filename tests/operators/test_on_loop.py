"""The boundary `on_loop`."""

from __future__ import annotations

import threading
from typing import Any

import reactivex as rx
from reactivex import operators as ops
from reactivex.disposable import Disposable

from cuggino.operators import LoopScheduler, on_loop
from cuggino.operators.on_loop import within_loop
from cuggino.testing import Marbles, no_leaks
from tests.processes.subscribers import eventually

WAIT = 10.0


def test_all_notifications_come_on_one_thread() -> None:
    """A source that emits on its own threads is delivered on the lane, in order."""
    threads: set[int] = set()
    seen: list[int] = []
    ended = threading.Event()

    def subscribe(observer: Any, _scheduler: Any = None) -> Any:
        def emit() -> None:
            for n in range(100):
                observer.on_next(n)
            observer.on_completed()

        threading.Thread(target=emit).start()
        return Disposable()

    def on_next(value: int) -> None:
        threads.add(threading.get_ident())
        seen.append(value)

    with no_leaks():
        lane = LoopScheduler()
        on_loop(rx.create(subscribe)).subscribe(on_next, None, ended.set, scheduler=lane)
        assert ended.wait(WAIT)
        thread = lane._thread
        lane.close()
    assert isinstance(thread, threading.Thread)
    assert list(range(100)) == seen
    assert {thread.ident} == threads


def test_a_failure_comes_on_the_lane() -> None:
    """A source that fails on its own thread fails on the lane, and is released there."""
    threads: list[int] = []
    ended = threading.Event()
    failure = RuntimeError("mine")
    errors: list[Exception] = []

    def subscribe(observer: Any, _scheduler: Any = None) -> Any:
        threading.Thread(target=lambda: observer.on_error(failure)).start()
        return Disposable(lambda: threads.append(threading.get_ident()))

    def on_error(error: Exception) -> None:
        threads.append(threading.get_ident())
        errors.append(error)
        ended.set()

    with no_leaks():
        lane = LoopScheduler()
        on_loop(rx.create(subscribe)).subscribe(None, on_error, scheduler=lane)
        assert ended.wait(WAIT)
        thread = lane._thread
        lane.close()
    assert isinstance(thread, threading.Thread)
    assert [failure] == errors
    assert [thread.ident, thread.ident] == threads


def test_dispose_from_another_thread_waits_for_the_release() -> None:
    """When `dispose` returns, upstream has been released, on the lane's thread."""
    released: list[int] = []
    started = threading.Event()
    with no_leaks():
        lane = LoopScheduler()
        source = rx.never().pipe(
            ops.do_action(on_completed=None),
            ops.finally_action(lambda: released.append(threading.get_ident())),
        )
        subscription = on_loop(source).subscribe(scheduler=lane)
        lane.schedule(lambda *_: started.set())
        assert started.wait(WAIT)
        subscription.dispose()
        assert len(released) == 1
        assert threading.get_ident() not in released
        lane.close()


def test_dispose_on_the_lane_releases_at_once() -> None:
    """A subscriber that leaves in the middle of `on_next` has released upstream by then."""
    t = Marbles(a="a")
    order: list[str] = []
    source = t.cold("-a-a").pipe(ops.finally_action(lambda: order.append("released")))

    def leave(_value: str) -> None:
        subscription.dispose()
        order.append("left")

    subscription = on_loop(source).subscribe(leave, scheduler=t.scheduler)
    t.scheduler.advance_to(t.at(10))
    assert ["released", "left"] == order


def test_dispose_before_the_start_starts_nothing() -> None:
    """A subscription disposed before its lane came to it never subscribes the source."""
    t = Marbles(a="a")
    source = t.cold("a|")
    on_loop(source).subscribe(scheduler=t.scheduler).dispose()
    t.scheduler.advance_to(10)
    assert source.subscriptions == []


def test_dispose_after_the_lane_has_ended_still_releases() -> None:
    """With its lane closed, `dispose` releases upstream itself instead of waiting indefinitely."""
    released = threading.Event()
    started = threading.Event()
    lane = LoopScheduler()
    source = rx.never().pipe(ops.finally_action(released.set))
    subscription = on_loop(source).subscribe(scheduler=lane)
    lane.schedule(lambda *_: started.set())
    assert started.wait(WAIT)
    lane.close()
    subscription.dispose()
    assert released.is_set()


def test_dispose_while_the_lane_ends_still_releases() -> None:
    """A lane that ends before it comes to the release does not hold up who disposes."""
    lane = LoopScheduler()
    began, goes_on, released = (threading.Event() for _ in range(3))
    source = rx.never().pipe(ops.finally_action(released.set))

    def hold(*_: object) -> None:
        began.set()
        goes_on.wait(WAIT)

    subscription = on_loop(source).subscribe(scheduler=lane)
    lane.schedule(hold)
    assert began.wait(WAIT)
    other = threading.Thread(target=subscription.dispose)
    other.start()
    assert eventually(lambda: bool(lane._ready))
    lane.dispose()
    goes_on.set()
    other.join(WAIT)
    assert not other.is_alive()
    assert released.is_set()


def test_a_stream_crosses_once() -> None:
    """It costs no virtual time; what has crossed is returned unchanged, and may be taken back."""
    t = Marbles(a="a", b="b")
    source = t.cold("-a-b|")
    crossed = on_loop(source)
    assert crossed is on_loop(crossed)
    assert source is within_loop(crossed)
    assert source is within_loop(source)
    t.check(crossed, "-a-b|")
    t.check_subscriptions(source, "^---!")
