"""The edges, where a stream meets code that is not reactive: `run`, `iterate`, `aiterate`.

Each runs the stream on a private lane unless it is given a scheduler, always disposes the stream,
and returns when everything that the stream started is gone.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import suppress
from typing import Any, Generic, TypeVar

from reactivex import Observable, Observer, abc

from cuggino.operators import LoopScheduler, crossing, on_loop, serial

T = TypeVar("T")

NOTICE = 0.5
"""Maximum seconds until a signal delivered to another thread is noticed."""


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

    def fail(error: Exception) -> None:
        failure.append(error)
        ended.set()

    lane = scheduler or LoopScheduler()
    try:
        subscription = crossing(stream, Observer(receive, fail, ended.set), serial(lane))
        try:
            subscription.begin()
            # A signal may be delivered to any thread; this one notices when it wakes.
            while not ended.wait(NOTICE):
                pass
        finally:
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


class _End:
    """The end of a stream, perhaps with an error."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error


class _Handover(Generic[T]):
    """A handover of one event at a time to a consumer, who slows the lane down."""

    def __init__(self) -> None:
        self._items: queue.Queue[T | _End] = queue.Queue(maxsize=1)
        self._left = threading.Event()

    def put(self, item: T | _End) -> None:
        """Wait for room or for the consumer to leave; called on the lane."""
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
        """Take nothing more; called by the consumer."""
        self._left.set()


def iterate(
    stream: Observable[T], *, scheduler: abc.SchedulerBase | None = None
) -> Generator[T, None, None]:
    """Yield the events; the stream waits while the consumer works.

    Leaving the loop early (`break`, an exception, `close()`) disposes the stream. Its error is
    raised from the loop.
    """
    handover: _Handover[T] = _Handover()
    lane = scheduler or LoopScheduler()
    observer: Observer[T] = Observer(
        handover.put, lambda error: handover.put(_End(error)), lambda: handover.put(_End())
    )
    subscription = crossing(stream, observer, serial(lane))
    try:
        subscription.begin()
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
    """Yield the events asynchronously; the stream waits while the consumer works.

    The stream runs on a separate thread, so that terminating an agent (up to some seconds) never
    blocks the event loop. Use `contextlib.aclosing` to leave the loop early; cancelling the task
    disposes the stream as well.
    """
    loop = asyncio.get_running_loop()
    items: asyncio.Queue[T | _End] = asyncio.Queue()
    room = threading.Semaphore(1)
    left = threading.Event()
    lane = LoopScheduler()

    def put(item: Any) -> None:
        while not (left.is_set() or room.acquire(timeout=0.05)):
            pass
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
        # Shielded: a second cancellation must not orphan a process.
        await asyncio.shield(asyncio.to_thread(release))
