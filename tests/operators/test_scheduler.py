"""The lane: `LoopScheduler`, `serial` and the boundary `on_loop`, with threads and timers."""

from __future__ import annotations

import asyncio
import os
import queue
import selectors
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import Any

import pytest
import reactivex as rx
from reactivex import abc, operators as ops
from reactivex.disposable import Disposable
from reactivex.internal.exceptions import DisposedException
from reactivex.scheduler import (
    CurrentThreadScheduler,
    EventLoopScheduler,
    ImmediateScheduler,
    NewThreadScheduler,
    ThreadPoolScheduler,
)
from reactivex.scheduler.eventloop import AsyncIOScheduler, AsyncIOThreadSafeScheduler
from reactivex.testing import TestScheduler

from cuggino.operators import LoopScheduler, on_loop
from cuggino.operators.on_loop import within_loop
from cuggino.operators.scheduler import default_scheduler, serial
from cuggino.testing import Marbles, no_leaks
from tests.limits import LIMIT
from tests.processes.subscribers import eventually

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
    """A lane closed during an action ends after it; RxPY's would wait indefinitely."""
    for _ in range(200):
        lane, started = LoopScheduler(), threading.Event()
        lane.schedule(lambda *_: started.set())
        assert started.wait(WAIT)
        thread = lane._thread
        assert isinstance(thread, threading.Thread)
        assert thread.daemon, "it would keep a program alive whose work is done"
        lane.close()
        assert not thread.is_alive()


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


def test_the_default_lane_outlives_an_exit() -> None:
    """`sys.exit` in a subscriber ends that lane; a later stream gets another one."""
    before = default_scheduler()
    on_loop(rx.of(1)).subscribe(lambda _: sys.exit(3))
    before.close()
    seen: queue.Queue[int] = queue.Queue()
    on_loop(rx.of(2)).subscribe(seen.put)
    assert seen.get(timeout=LIMIT) == 2
    assert default_scheduler() is default_scheduler() is not before


def test_serial_does_not_import_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check for an asyncio scheduler imports nothing if none is in use."""
    module = "reactivex.scheduler.eventloop.asyncioscheduler"
    monkeypatch.delitem(sys.modules, module, raising=False)
    lane = TestScheduler()
    assert lane is serial(lane)
    assert module not in sys.modules


def test_serial_makes_asyncio_thread_safe() -> None:
    """An `AsyncIOScheduler` becomes the thread-safe one of the same loop."""
    loop = asyncio.new_event_loop()
    try:
        safe = serial(AsyncIOScheduler(loop))
        assert isinstance(safe, AsyncIOThreadSafeScheduler)
        assert loop is safe._loop
        assert safe is serial(safe)
    finally:
        loop.close()


READABLE, WRITABLE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Pipe:
    """A pipe whose ends are closed after the test."""

    def __init__(self) -> None:
        self.read_end, self.write_end = os.pipe()
        os.set_blocking(self.read_end, False)
        os.set_blocking(self.write_end, False)

    def read(self) -> bytes:
        return os.read(self.read_end, 1)

    def write(self, data: bytes = b"x") -> None:
        os.write(self.write_end, data)

    def close(self) -> None:
        os.close(self.read_end)
        os.close(self.write_end)


@pytest.fixture
def lane() -> Iterator[LoopScheduler]:
    with no_leaks():
        lane = LoopScheduler()
        yield lane
        lane.close()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()


def on(lane: LoopScheduler, action: Callable[[], Any]) -> Any:
    """Return the result of an action on the lane."""
    results: queue.Queue[Any] = queue.Queue()
    lane.schedule(lambda *_: results.put(action()))
    return results.get(timeout=LIMIT)


def test_a_descriptor_is_watched_until_disposal(lane: LoopScheduler, pipe: Pipe) -> None:
    """The callback runs on the lane whenever there is something to read, and not after disposal."""
    seen: queue.Queue[tuple[bytes, str]] = queue.Queue()

    def read() -> None:
        seen.put((pipe.read(), threading.current_thread().name))

    watch = lane.watch(pipe.read_end, READABLE, read)
    for letter in (b"a", b"b"):
        pipe.write(letter)
        assert (letter, "cuggino-loop") == seen.get(timeout=LIMIT)
    watch.dispose()
    watch.dispose()
    pipe.write(b"c")
    on(lane, lambda: None)
    assert seen.empty()


def test_room_to_write_is_watched(lane: LoopScheduler, pipe: Pipe) -> None:
    """A full pipe is reported as soon as it has been read."""
    with suppress(BlockingIOError):
        while True:
            pipe.write(b"x" * 65536)
    room = threading.Event()
    watch = lane.watch(pipe.write_end, WRITABLE, room.set)
    on(lane, lambda: None)
    assert not room.is_set()
    while not room.is_set():
        pipe.read()
    watch.dispose()


def test_a_descriptor_has_one_watch(lane: LoopScheduler, pipe: Pipe) -> None:
    """A second watch of one descriptor is a mistake; after the disposal of the first it is none."""
    first = lane.watch(pipe.read_end, READABLE, lambda: None)
    with pytest.raises(KeyError):
        lane.watch(pipe.read_end, READABLE, lambda: None)
    first.dispose()
    lane.watch(pipe.read_end, READABLE, lambda: None).dispose()


def test_a_callback_can_end_the_watches_of_its_turn(lane: LoopScheduler) -> None:
    """Of two descriptors that are ready at once, the first callback closes the other."""
    pipes, called = [Pipe(), Pipe()], queue.SimpleQueue[int]()
    watches: list[Any] = []

    def end(number: int) -> None:
        called.put(number)
        for watch in watches:
            watch.dispose()

    def begin() -> None:
        for number, pipe in enumerate(pipes):
            pipe.write()
            watches.append(lane.watch(pipe.read_end, READABLE, partial(end, number)))

    on(lane, begin)
    called.get(timeout=LIMIT)
    on(lane, lambda: None)
    assert called.empty()
    for pipe in pipes:
        pipe.close()


def test_a_callback_can_end_its_lane(pipe: Pipe) -> None:
    """Of two descriptors that are ready at once, the first callback disposes of the lane."""
    pipes, called = [pipe, Pipe()], queue.SimpleQueue[int]()
    lane = LoopScheduler()

    def end(number: int) -> None:
        called.put(number)
        lane.dispose()

    def begin(*_: object) -> None:
        for number, each in enumerate(pipes):
            each.write()
            lane.watch(each.read_end, READABLE, partial(end, number))

    lane.schedule(begin)
    called.get(timeout=LIMIT)
    lane.close()
    assert called.empty()
    pipes[1].close()


def test_an_action_that_cancels_itself(lane: LoopScheduler) -> None:
    """What it returns is disposed of, too."""
    disposed, items = threading.Event(), list[abc.DisposableBase]()

    def cancel(*_: object) -> abc.DisposableBase:
        items[0].dispose()
        return Disposable(disposed.set)

    on(lane, lambda: items.append(lane.schedule(cancel)))
    assert disposed.wait(LIMIT)


def test_a_callback_that_fails_is_reported_once(
    lane: LoopScheduler, pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its watch ends, as the descriptor stays ready; the lane continues."""
    reported: queue.Queue[Any] = queue.Queue()
    monkeypatch.setattr(threading, "excepthook", reported.put)
    lane.watch(pipe.read_end, READABLE, lambda: [][1])
    pipe.write()
    assert reported.get(timeout=LIMIT).exc_type is IndexError
    on(lane, lambda: None)
    assert reported.empty()


def test_descriptors_actions_and_timers_take_turns(lane: LoopScheduler, pipe: Pipe) -> None:
    """Two descriptors that are always ready starve neither actions nor timers, nor each other."""
    other = Pipe()
    turns: list[str] = []
    timer, both = threading.Event(), threading.Event()

    def act(*_: object) -> None:
        turns.append("action")
        if timer.is_set() and len(turns) > 30:
            for watch in watches:
                watch.dispose()
            both.set()
        else:
            lane.schedule(act)

    def begin() -> None:
        pipe.write()
        other.write()
        watches.append(lane.watch(pipe.read_end, READABLE, lambda: turns.append("pipe")))
        watches.append(lane.watch(other.read_end, READABLE, lambda: turns.append("other")))
        lane.schedule_relative(0.001, lambda *_: timer.set())
        lane.schedule(act)

    watches: list[Any] = []
    on(lane, begin)
    assert both.wait(LIMIT)
    other.close()
    counted = [turns.count(name) for name in ("action", "pipe", "other")]
    assert max(counted) - min(counted) <= 2


def test_another_thread_ends_the_wait(lane: LoopScheduler) -> None:
    """A lane that waits for a late timer runs what another thread schedules, earlier timers too."""
    ran: queue.Queue[str] = queue.Queue()
    late = lane.schedule_relative(3600, lambda *_: ran.put("late"))
    for number in range(100):
        lane.schedule_relative(0.001, lambda *_, number=number: ran.put(f"timer {number}"))
        assert f"timer {number}" == ran.get(timeout=LIMIT)
        lane.schedule(lambda *_, number=number: ran.put(f"action {number}"))
        assert f"action {number}" == ran.get(timeout=LIMIT)
    late.dispose()


def test_actions_of_many_threads_all_run(lane: LoopScheduler) -> None:
    """No wake-up is lost, however many threads schedule at once; those of each keep their order."""
    ran: list[tuple[int, int]] = []
    done = threading.Semaphore(0)

    def post(thread: int) -> None:
        for number in range(500):
            lane.schedule(lambda *_, number=number: ran.append((thread, number)))
        lane.schedule(lambda *_: done.release())

    threads = [threading.Thread(target=post, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert done.acquire(timeout=LIMIT)
    for thread in threads:
        thread.join()
    for number in range(4):
        assert list(range(500)) == [step for thread, step in ran if thread == number]


def test_only_a_waiting_lane_is_woken(lane: LoopScheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the lane schedules itself costs no system call."""
    writers: list[int] = []
    write = os.write

    def noted(fd: int, data: bytes) -> int:
        writers.append(threading.get_ident())
        return write(fd, data)

    monkeypatch.setattr(os, "write", noted)

    def schedule() -> None:
        writers.clear()
        for _ in range(100):
            lane.schedule(lambda *_: None)
        counts.append(writers.count(threading.get_ident()))

    counts: list[int] = []
    on(lane, schedule)
    assert [0] == counts


def test_a_due_timer_goes_before_a_later_action(lane: LoopScheduler) -> None:
    """After a blocking action, what is due runs in the order of its time, not of its kind."""
    order: list[str] = []
    done, due = threading.Event(), threading.Event()

    def block() -> None:
        lane.schedule(lambda *_: order.append("first action"))
        lane.schedule_relative(0.001, lambda *_: order.append("timer"))
        due.wait(0.01)
        lane.schedule(lambda *_: order.append("second action"))
        lane.schedule(lambda *_: done.set())

    on(lane, block)
    assert done.wait(LIMIT)
    assert ["first action", "timer", "second action"] == order


def test_the_end_of_a_lane(pipe: Pipe) -> None:
    """The last actions run on the lane, once; a cancelled one does not, and nothing else."""
    with no_leaks():
        lane, last = LoopScheduler(), queue.SimpleQueue[str]()
        lane.at_end(lambda: last.put(threading.current_thread().name))
        lane.at_end(lambda: last.put("cancelled")).dispose()
        watch = lane.watch(pipe.read_end, READABLE, lambda: last.put("read"))

        def end(*_: object) -> None:
            pipe.write()
            lane.schedule(lambda *_: last.put("dropped"))
            lane.dispose()

        lane.schedule(end)
        lane.close()
    watch.dispose()
    assert "cuggino-loop" == last.get(timeout=LIMIT)
    assert last.empty()
    uses: tuple[Callable[[], object], ...] = (
        lambda: lane.schedule(lambda *_: None),
        lambda: lane.schedule_relative(1, lambda *_: None),
        lambda: lane.watch(pipe.read_end, READABLE, lambda: None),
        lambda: lane.at_end(lambda: None),
    )
    for use in uses:
        with pytest.raises(DisposedException):
            use()


def test_an_interruption_while_the_thread_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread ends without a word; the lane can be used again."""
    reported: list[object] = []
    monkeypatch.setattr(threading, "excepthook", reported.append)
    threads: list[threading.Thread] = []
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        threads.append(thread)
        start(thread)
        if len(threads) == 1:
            raise KeyboardInterrupt

    with no_leaks():
        lane = LoopScheduler()
        monkeypatch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            lane.schedule(lambda *_: None)
        threads[0].join(LIMIT)
        assert on(lane, lambda: 1) == 1
        lane.close()
    assert reported == []


def test_a_last_action_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported, and the others run."""
    reported: queue.Queue[Any] = queue.Queue()
    monkeypatch.setattr(threading, "excepthook", reported.put)
    with no_leaks():
        lane, last = LoopScheduler(), threading.Event()
        lane.at_end(lambda: [][1])
        lane.at_end(last.set)
        lane.close()
    assert last.wait(LIMIT)
    assert reported.get(timeout=LIMIT).exc_type is IndexError


def test_a_lane_that_an_exit_has_ended_is_disposed() -> None:
    """`sys.exit` in an action ends the thread; later actions are refused instead of forgotten."""
    with no_leaks():
        lane = LoopScheduler()

        def leave(*_: object) -> None:
            raise SystemExit

        lane.schedule(leave)
        lane.close()
        with pytest.raises(DisposedException):
            lane.schedule(leave)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_lane_in_a_forked_copy(lane: LoopScheduler, pipe: Pipe) -> None:
    """A copy's lane starts over with a thread of its own; the original's is not disturbed."""
    heard: queue.Queue[bytes] = queue.Queue()
    watch = lane.watch(pipe.read_end, READABLE, lambda: heard.put(pipe.read()))
    forgotten = threading.Event()
    late = lane.schedule_relative(3600, lambda *_: None)
    on(lane, lambda: None)
    pid = os.fork()
    if pid == 0:
        code = 1
        with suppress(BaseException):
            lane.at_end(forgotten.set)
            ran = on(lane, lambda: threading.current_thread().name)
            lane.watch(pipe.read_end, READABLE, lambda: None).dispose()
            lane.close()
            code = 0 if ran == "cuggino-loop" and forgotten.is_set() else 2
        os._exit(code)
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    pipe.write(b"o")
    assert b"o" == heard.get(timeout=LIMIT)
    watch.dispose()
    late.dispose()


@pytest.mark.parametrize("failure", [None, RuntimeError("mine")], ids=["completes", "fails"])
def test_all_notifications_come_on_one_thread(failure: Exception | None) -> None:
    """A source that emits on its own threads is delivered and released on the lane, in order."""
    threads: set[int] = set()
    seen: list[Any] = []
    ended = threading.Event()

    def subscribe(observer: Any, _scheduler: Any = None) -> Any:
        def emit() -> None:
            for n in range(100):
                observer.on_next(n)
            if failure is None:
                observer.on_completed()
            else:
                observer.on_error(failure)

        threading.Thread(target=emit).start()
        return Disposable(lambda: threads.add(threading.get_ident()))

    def note(value: Any = None) -> None:
        threads.add(threading.get_ident())
        seen.append(value)

    def end(error: Exception | None = None) -> None:
        note(error)
        ended.set()

    with no_leaks():
        lane = LoopScheduler()
        on_loop(rx.create(subscribe)).subscribe(note, end, end, scheduler=lane)
        assert ended.wait(WAIT)
        thread = lane._thread
        lane.close()
    assert isinstance(thread, threading.Thread)
    assert [*range(100), failure] == seen
    assert {thread.ident} == threads


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


def test_a_release_that_fails_at_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the release of a source that never waits raises is reported, too."""
    reported: list[str] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: reported.append(str(args.exc_value)))

    def fail() -> None:
        raise OSError("still busy")

    lane, begun = LoopScheduler(), threading.Event()
    endless = rx.from_iterable(count()).pipe(ops.finally_action(fail))
    subscription = on_loop(endless).subscribe(lambda _: begun.set(), scheduler=lane)
    assert begun.wait(LIMIT)
    subscription.dispose()
    lane.close()
    assert reported == ["still busy"]


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


@pytest.mark.parametrize("is_closed", [True, False])
def test_dispose_after_the_event_loop_has_ended_still_releases(is_closed: bool) -> None:
    """With asyncio's loop closed or stopped, nothing that is scheduled there is carried out."""
    loop = asyncio.new_event_loop()
    released = threading.Event()
    source = rx.never().pipe(ops.finally_action(released.set))
    began: list[abc.DisposableBase] = []

    async def begin() -> None:
        began.append(on_loop(source).subscribe(scheduler=AsyncIOScheduler(loop)))
        await asyncio.sleep(0.01)

    other = threading.Thread(target=lambda: loop.run_until_complete(begin()))
    other.start()
    other.join(WAIT)
    if is_closed:
        loop.close()
    began[0].dispose()
    assert released.is_set()
    loop.close()


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
