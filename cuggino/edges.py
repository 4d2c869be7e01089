"""The edges: where a stream meets code that is not reactive.

Each edge runs the stream on a lane of its own unless it is given a scheduler, disposes it on the
way out however that comes about, and returns when everything it had started is gone.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import suppress
from typing import Any, Generic, TypeVar

from reactivex import Observable, abc

from cuggino.operators import LoopScheduler, on_loop

T = TypeVar("T")

NOTICE = 0.5
"""Seconds after which a signal that another thread was given is noticed, at the latest."""


def run(
    stream: Observable[T],
    on_next: Callable[[T], object] | None = None,
    *,
    scheduler: abc.SchedulerBase | None = None,
) -> T | None:
    """Subscribe and block until the stream has ended; gives its last event, None if it had none.

    `on_next` is called with each event, on the scheduler's thread. The stream's error is raised,
    and so is an exception of `on_next`, `SystemExit` included. `KeyboardInterrupt`, or whatever
    else a signal handler raises here, disposes the stream first and is then raised again.
    """
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
        except BaseException as leaving:  # `sys.exit`: the lane would die of it, unheard
            failure.append(leaving)
            ended.set()

    def fail(error: Exception) -> None:
        failure.append(error)
        ended.set()

    lane = scheduler or LoopScheduler()
    try:
        subscription = on_loop(stream).subscribe(receive, fail, ended.set, scheduler=lane)
        try:
            # The system may hand a signal to any thread; this one notices when it wakes.
            while not ended.wait(NOTICE):
                pass
        finally:
            subscription.dispose()
    except BaseException:
        # Not waited for: a second interruption, during the disposal, means at once.
        if isinstance(lane, LoopScheduler) and scheduler is None:
            lane.dispose()
        raise
    if isinstance(lane, LoopScheduler) and scheduler is None:
        lane.close()
    if failure:
        raise failure[0]
    return last[0] if last else None


class _End:
    """What comes after the last event: nothing, or an error."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error


class _Handover(Generic[T]):
    """One event at a time from the lane to a consumer, who slows the lane down."""

    def __init__(self) -> None:
        self._items: queue.Queue[T | _End] = queue.Queue(maxsize=1)
        self._left = threading.Event()

    def put(self, item: T | _End) -> None:
        """Called on the lane: returns when there is room, or when the consumer has left."""
        while not self._left.is_set():
            try:
                self._items.put(item, timeout=0.05)
                return
            except queue.Full:
                continue

    def get(self) -> T | _End:
        while True:
            with suppress(queue.Empty):
                return self._items.get(timeout=NOTICE)

    def leave(self) -> None:
        """Called by the consumer: nothing will be taken any more."""
        self._left.set()


def iterate(
    stream: Observable[T], *, scheduler: abc.SchedulerBase | None = None
) -> Generator[T, None, None]:
    """The events as a generator; the stream waits while the consumer works.

    Leaving the loop early (`break`, an exception, `close()`) disposes the stream. Its error is
    raised from the loop.
    """
    handover: _Handover[T] = _Handover()
    lane = scheduler or LoopScheduler()
    subscription = on_loop(stream).subscribe(
        handover.put,
        lambda error: handover.put(_End(error)),
        lambda: handover.put(_End()),
        scheduler=lane,
    )
    try:
        while not isinstance(item := handover.get(), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        handover.leave()
        try:
            subscription.dispose()
        finally:
            if isinstance(lane, LoopScheduler) and scheduler is None:
                lane.close()


async def aiterate(stream: Observable[T]) -> AsyncGenerator[T, None]:
    """The events as an asynchronous generator; the stream waits while the consumer works.

    The stream runs on a thread of its own, so that ending an agent (up to some seconds) never
    blocks the event loop. Use `contextlib.aclosing` when leaving the loop early; cancellation
    of the task disposes the stream as well.
    """
    loop = asyncio.get_running_loop()
    items: asyncio.Queue[T | _End] = asyncio.Queue()
    room = threading.Semaphore(1)
    left = threading.Event()
    lane = LoopScheduler()

    def put(item: Any) -> None:
        while not room.acquire(timeout=0.05):
            if left.is_set():
                return
        if not left.is_set():
            loop.call_soon_threadsafe(items.put_nowait, item)

    subscription = on_loop(stream).subscribe(
        put, lambda error: put(_End(error)), lambda: put(_End()), scheduler=lane
    )

    def release() -> None:
        subscription.dispose()
        lane.close()

    try:
        while not isinstance(item := await items.get(), _End):
            yield item
            room.release()
        if item.error is not None:
            raise item.error
    finally:
        left.set()
        # Shielded: a second cancellation must not leave a process behind.
        await asyncio.shield(asyncio.to_thread(release))
