"""The lane: `LoopScheduler` and `serial`."""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
import time
import weakref
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from reactivex.scheduler import (
    CurrentThreadScheduler,
    EventLoopScheduler,
    ImmediateScheduler,
    NewThreadScheduler,
    ThreadPoolScheduler,
)
from reactivex.testing import TestScheduler

from cuggino.operators import LoopScheduler
from cuggino.operators.scheduler import default_scheduler, serial
from cuggino.testing import no_leaks
from tests.limits import LIMIT

WAIT = LIMIT


def test_a_lane_outlives_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    """An action that raises is reported to `threading.excepthook`, and the next one runs."""
    reported: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", reported.append)
    with no_leaks():
        lane, ran = LoopScheduler(), threading.Event()
        lane.schedule(lambda *_: [][1])
        lane.schedule(lambda *_: ran.set())
        assert ran.wait(WAIT)
        lane.close()
    assert [IndexError] == [report.exc_type for report in reported]


def test_a_timer_that_ends_its_own_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    """RxPY starts a periodic timer again after its event has ended the run, and so the lane."""
    reported: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", reported.append)
    with no_leaks():
        lane, ran = LoopScheduler(), threading.Event()

        def end(_state: object) -> None:
            lane.dispose()
            ran.set()

        lane.schedule_periodic(0.01, end)
        assert ran.wait(WAIT)
        lane.close()
    assert [] == reported


def test_close_ends_the_thread() -> None:
    """After `close` the lane's thread has ended."""
    lane, ran = LoopScheduler(), threading.Event()
    lane.schedule(lambda *_: ran.set())
    assert ran.wait(WAIT)
    thread = lane._thread
    lane.close()
    assert isinstance(thread, threading.Thread)
    assert not thread.is_alive()
    assert thread.daemon, "it would keep a program alive whose work is done"


class SetByHand(LoopScheduler):
    """A lane with its own clock."""

    seconds = 1_800_000_000.0

    def __init__(self) -> None:
        super().__init__()
        self._clock = lambda: self.seconds


def test_cancelled_timers_are_let_go() -> None:
    """Of thousands of cancelled timers only a few stay, the others are run when they are due."""
    lane = SetByHand()
    begin = lane.now
    ran: queue.Queue[str] = queue.Queue()
    started, scheduled = threading.Event(), threading.Event()

    def block(*_: object) -> None:
        started.set()
        scheduled.wait(WAIT)

    lane.schedule(block)
    assert started.wait(WAIT)  # a lane that waits for a timer refers to it
    kept = [weakref.ref(_cancelled_timer(lane)) for _ in range(1000)]
    lane.schedule_absolute(begin + timedelta(seconds=2), lambda *_: ran.put("second"))
    for _ in range(1000):
        _cancelled_timer(lane)
    lane.schedule_absolute(begin + timedelta(seconds=1), lambda *_: ran.put("first"))
    for _ in range(1000):
        _cancelled_timer(lane)
    assert [] == [ref for ref in kept if ref() is not None]
    assert len(lane._timers) <= 70
    lane.seconds += 3
    scheduled.set()
    assert ["first", "second"] == [ran.get(timeout=WAIT), ran.get(timeout=WAIT)]
    lane.close()


def _cancelled_timer(lane: LoopScheduler) -> Any:
    """Schedule a timer, cancel it and return its action."""

    def action(*_: object) -> None:
        raise AssertionError("it was cancelled")

    lane.schedule_relative(3600, action).dispose()
    return action


def test_the_time_of_a_lane_never_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that is set back makes nothing wait longer; one that is set forward is followed."""
    moved, clock = 0.0, time.time
    monkeypatch.setattr(time, "time", lambda: clock() + moved)
    lane, ran = LoopScheduler(), threading.Event()
    began = lane.now
    lane.schedule_relative(0.1, lambda *_: ran.set())
    moved = -3600.0
    assert ran.wait(WAIT)
    assert timedelta() < lane.now - began < timedelta(minutes=1)
    assert abs(began - datetime.now(UTC)) < timedelta(minutes=1)
    moved = 7200.0
    assert lane.now - began > timedelta(hours=1, minutes=59)
    moved = 3600.0
    assert lane.now - began > timedelta(hours=1, minutes=59)
    lane.close()


def test_close_while_an_action_runs_ends_the_thread() -> None:
    """A lane closed during an action ends after it; RxPY's would wait indefinitely."""
    for _ in range(200):
        lane, started = LoopScheduler(), threading.Event()
        lane.schedule(lambda *_: started.set())
        assert started.wait(WAIT)
        lane.close()


def test_a_lane_disposed_during_an_action_ends_after_it() -> None:
    """The thread of a lane that was disposed while an action ran ends when that has returned."""
    lane, started, go_on = LoopScheduler(), threading.Event(), threading.Event()

    def action(*_: object) -> None:
        started.set()
        go_on.wait(WAIT)

    lane.schedule(action)
    assert started.wait(WAIT)
    thread = lane._thread
    assert isinstance(thread, threading.Thread)
    lane.dispose()
    go_on.set()
    thread.join(WAIT)
    assert not thread.is_alive()


def test_a_lane_can_end_itself() -> None:
    """`close` from an action on the lane ends its thread."""
    lane = LoopScheduler()
    lane.schedule(lambda *_: lane.close())
    thread = lane._thread
    assert isinstance(thread, threading.Thread)
    thread.join(WAIT)
    assert not thread.is_alive()


def test_serial_replaces_what_is_not_serial() -> None:
    """Schedulers that run actions side by side become the default lane; serial ones stay."""
    pool = ThreadPoolScheduler(1)
    for scheduler in (
        None,
        NewThreadScheduler(),
        ImmediateScheduler(),
        CurrentThreadScheduler(),
        pool,
    ):
        assert default_scheduler() is serial(scheduler)
    pool.executor.shutdown()
    for lane in (TestScheduler(), LoopScheduler(), EventLoopScheduler()):
        assert lane is serial(lane)


def test_serial_does_not_import_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check for an asyncio scheduler imports nothing if none is in use."""
    module = "reactivex.scheduler.eventloop.asyncioscheduler"
    monkeypatch.delitem(sys.modules, module, raising=False)
    lane = TestScheduler()
    assert lane is serial(lane)
    assert module not in sys.modules


def test_serial_makes_asyncio_thread_safe() -> None:
    """An `AsyncIOScheduler` becomes the thread-safe one of the same loop."""
    from reactivex.scheduler.eventloop import AsyncIOScheduler, AsyncIOThreadSafeScheduler

    loop = asyncio.new_event_loop()
    try:
        safe = serial(AsyncIOScheduler(loop))
        assert isinstance(safe, AsyncIOThreadSafeScheduler)
        assert loop is safe._loop
        assert safe is serial(safe)
    finally:
        loop.close()
