"""The edges, where a stream meets code that is not reactive: `run`, `iterate`, `aiterate`.

Each runs the stream on a private lane unless it is given a scheduler, always disposes the stream,
and returns when everything that the stream started is gone. What ends the scheduler before the
stream, such as `sys.exit` in a flow, is raised.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Generic, TypeVar

from reactivex import Observable, Observer, abc
from reactivex.disposable import Disposable
from reactivex.scheduler import VirtualTimeScheduler

from cuggino.operators import LoopScheduler, on_loop
from cuggino.operators.mistakes import require_stream
from cuggino.operators.on_loop import crossing
from cuggino.operators.scheduler import is_closed, is_current, serial

T = TypeVar("T")

NOTICE = 1.0
"""Maximum seconds until a signal delivered to another thread is noticed."""

AHEAD = 2
"""Events that a stream may be ahead of the consumer of `iterate` and `aiterate`."""


def run(
    stream: Observable[T],
    on_next: Callable[[T], object] | None = None,
    *,
    scheduler: abc.SchedulerBase | None = None,
) -> T | None:
    """Subscribe and block until the stream has ended; return its last event, or None.

    `on_next` is called with each event, on the scheduler's thread. The stream's error is raised,
    and so is an exception of `on_next`, including `SystemExit`. `KeyboardInterrupt`, or any other
    exception of a signal handler, is raised after the stream was disposed.
    """
    require_stream(stream, "run")
    lane = _lane(scheduler, "run")
    ended = threading.Event()
    last: list[T] = []
    failure: list[BaseException] = []

    def receive(event: T) -> None:
        last[:] = [event]
        if on_next is None or failure:
            return
        try:
            on_next(event)
        except Exception:
            raise
        except BaseException as leaving:  # `sys.exit`: it would silently end the lane
            failure.append(leaving)
            ended.set()

    def fail(error: BaseException) -> None:
        failure.append(error)
        ended.set()

    def stop(error: BaseException) -> None:
        if not ended.is_set():
            fail(error)

    try:
        lane_end = _at_end(lane, stop)
        subscription = crossing(stream, Observer(receive, fail, ended.set), lane)
        try:
            subscription.begin()
            # A signal may be delivered to any thread; this one notices when it wakes.
            while not ended.wait(NOTICE):
                if is_closed(lane):
                    stop(_closed())
        finally:
            lane_end.dispose()
            subscription.dispose()
    except BaseException:
        # Without waiting: a second interruption during the disposal means at once.
        if isinstance(lane, LoopScheduler) and scheduler is None:
            lane.dispose()
        raise
    if isinstance(lane, LoopScheduler) and scheduler is None:
        lane.close()
    if failure:
        raise failure[0]
    return last[0] if last else None


def _lane(scheduler: abc.SchedulerBase | None, where: str) -> abc.SchedulerBase:
    """Return the lane to run on: a private one, or that of the scheduler.

    Raises:
        RuntimeError: to wait for the scheduler would never end.
    """
    if scheduler is None:
        return LoopScheduler()
    lane = serial(scheduler)
    if is_current(lane):
        raise RuntimeError(
            f"{where}() cannot wait on the thread of its own scheduler: "
            "leave `scheduler` out, or subscribe to the stream"
        )
    if isinstance(lane, VirtualTimeScheduler):
        raise RuntimeError(
            f"{where}() cannot wait for virtual time: subscribe to the stream, then advance the "
            "clock"
        )
    return lane


def _at_end(lane: abc.SchedulerBase, stop: Callable[[BaseException], object]) -> abc.DisposableBase:
    """Call `stop` with the reason if the lane ends before its stream, which would never end."""
    if not isinstance(lane, LoopScheduler):
        return Disposable()

    def end() -> None:
        stop(lane.failure or _closed())

    return lane.at_end(end)


def _closed() -> RuntimeError:
    return RuntimeError("the scheduler has ended before the stream")


class _End:
    """The end of a stream, perhaps with an error."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class _Handover(Generic[T]):
    """At most `AHEAD` items on their way from the lane to a consumer, who holds the lane up.

    The lane waits once `AHEAD` items are there, and goes on when all of them were taken and the
    consumer wants more: two thread switches for `AHEAD` items.
    """

    def __init__(self, arrived: Callable[[], object] = lambda: None) -> None:
        self._arrived = arrived
        """Called on the lane after each item."""
        self._items: deque[T | _End] = deque()
        self._changed = threading.Condition(threading.Lock())
        self._is_left = False

    def put(self, item: T | _End) -> None:
        """Add an item, and wait for the consumer; called on the lane."""
        with self._changed:
            if self._is_left:
                return
            self._items.append(item)
            self._changed.notify()
            self._arrived()
            while len(self._items) >= AHEAD and not self._is_left:
                self._changed.wait()

    def is_empty(self) -> bool:
        """Return whether the consumer has to wait; if so, the lane goes on."""
        with self._changed:
            if not self._items:
                self._changed.notify()
            return not self._items

    def wait(self) -> None:
        """Wait for an item, or for `NOTICE` seconds."""
        with self._changed:
            if not self._items:
                self._changed.wait(NOTICE)

    def take(self) -> T | _End:
        """Return the next item; there must be one."""
        return self._items.popleft()

    def leave(self) -> None:
        """Take nothing more; called by the consumer."""
        with self._changed:
            self._is_left = True
            self._changed.notify()


def iterate(
    stream: Observable[T], *, scheduler: abc.SchedulerBase | None = None
) -> Generator[T, None, None]:
    """Yield the events; the stream waits while the consumer works.

    Leaving the loop early (`break`, an exception, `close()`) disposes the stream. Its error is
    raised from the loop.
    """
    require_stream(stream, "iterate")
    lane = _lane(scheduler, "iterate")
    handover: _Handover[T] = _Handover()
    observer: Observer[T] = Observer(
        handover.put, lambda error: handover.put(_End(error)), lambda: handover.put(_End())
    )
    subscription = crossing(stream, observer, lane)
    lane_end = _at_end(lane, lambda error: handover.put(_End(error)))
    try:
        subscription.begin()
        while True:
            while handover.is_empty():
                handover.wait()
                if is_closed(lane) and handover.is_empty():
                    raise _closed()
            if isinstance(item := handover.take(), _End):
                break
            yield item
        if item.error is not None:
            raise item.error
    finally:
        handover.leave()
        lane_end.dispose()
        try:
            subscription.dispose()
        finally:
            if isinstance(lane, LoopScheduler) and scheduler is None:
                lane.close()


async def aiterate(stream: Observable[T]) -> AsyncGenerator[T, None]:
    """Yield the events asynchronously; the stream waits while the consumer works.

    The stream runs on a separate thread, so that terminating an agent (up to some seconds) never
    blocks the event loop. Use `contextlib.aclosing` to leave the loop early; cancelling the task
    disposes the stream as well.
    """
    require_stream(stream, "aiterate")
    loop = asyncio.get_running_loop()
    arrived = asyncio.Event()
    handover: _Handover[T] = _Handover(lambda: loop.call_soon_threadsafe(arrived.set))
    lane = LoopScheduler()
    _at_end(lane, lambda error: handover.put(_End(error)))
    subscription = on_loop(stream).subscribe(
        handover.put,
        lambda error: handover.put(_End(error)),
        lambda: handover.put(_End()),
        scheduler=lane,
    )

    def release() -> None:
        subscription.dispose()
        lane.close()

    try:
        while True:
            while handover.is_empty():
                await arrived.wait()
                arrived.clear()
            if isinstance(item := handover.take(), _End):
                break
            yield item
        if item.error is not None:
            raise item.error
    finally:
        handover.leave()
        # Shielded, and no task: neither a second cancellation nor the end of `asyncio.run`, which
        # cancels all tasks, must orphan a process.
        await asyncio.shield(loop.run_in_executor(None, release))
