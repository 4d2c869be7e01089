"""The asynchronous edge: `aiterate`."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import reactivex as rx
from reactivex import Observable
from reactivex.disposable import Disposable

from cuggino import aiterate
from cuggino.processes import process_lines
from tests.edge_streams import Ticks, collect, nothing_left, silent
from tests.limits import LIMIT

pytestmark = pytest.mark.usefixtures("nothing_left")
__all__ = ["nothing_left"]


class TestAiterate:
    @pytest.mark.real_agent
    def test_leaving_early_disposes(self) -> None:
        """`aclosing` disposes the stream before the block is left."""
        ticks = Ticks()

        async def consume() -> list[int]:
            seen = []
            async with contextlib.aclosing(_generator(ticks.stream)) as events:
                async for n in events:
                    seen.append(n)
                    if n == 2:
                        break
            assert ticks.released.is_set()
            return seen

        assert [0, 1, 2] == asyncio.run(consume())

    @pytest.mark.real_agent
    def test_task_cancellation_disposes(self) -> None:
        """A canceled task has released its stream when it ends."""
        released, started = threading.Event(), threading.Event()

        async def main() -> None:
            task = asyncio.create_task(collect(silent(released, started)))
            await asyncio.to_thread(started.wait, 5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert released.is_set()

        asyncio.run(main())

    def test_a_second_cancellation_disposes(self) -> None:
        """It ends the wait for the release, which takes place as soon as a thread is free."""
        released, started, busy = threading.Event(), threading.Event(), threading.Event()

        async def main() -> None:
            loop = asyncio.get_running_loop()
            loop.set_default_executor(ThreadPoolExecutor(1))
            loop.run_in_executor(None, busy.wait, LIMIT)
            task = asyncio.create_task(collect(silent(released, started)))
            while not started.is_set():
                await asyncio.sleep(0.01)
            for _ in range(2):
                task.cancel()
                await asyncio.sleep(0.01)
            assert task.cancelled()
            assert not released.is_set()
            loop.call_later(0.1, busy.set)  # while `asyncio.run` waits for its threads

        asyncio.run(main())
        assert released.is_set()

    @pytest.mark.real_agent
    def test_timeout_disposes(self) -> None:
        """`asyncio.timeout` terminates a silent process."""

        async def main() -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await collect(process_lines(["sleep", "600"]))

        asyncio.run(main())

    @pytest.mark.real_agent
    def test_event_loop_is_not_blocked(self) -> None:
        """Other tasks run while a stream is silent and during its disposal."""
        begun, enough, released = threading.Event(), threading.Event(), threading.Event()

        def slowly() -> None:
            if enough.wait(LIMIT):  # a process that ends slowly
                released.set()

        def begin(*_: object) -> Disposable:
            begun.set()
            return Disposable(slowly)

        stalled: Observable[int] = Observable(begin)

        async def main() -> None:
            task = asyncio.create_task(collect(stalled))
            while not begun.is_set():
                await asyncio.sleep(0.01)
            task.cancel()
            for _ in range(5):
                await asyncio.sleep(0.01)
            assert not task.done()
            enough.set()
            while not task.done():
                await asyncio.sleep(0.01)

        asyncio.run(main())
        assert released.is_set()

    @pytest.mark.real_agent
    def test_backpressure(self) -> None:
        """While the consumer works, at most two more events are produced."""
        ticks = Ticks()

        async def main() -> int:
            ahead = []
            async with contextlib.aclosing(_generator(ticks.stream)) as events:
                async for n in events:
                    await asyncio.sleep(0.02)
                    ahead.append(ticks.sent - (n + 1))
                    if n == 10:
                        break
            return int(max(ahead))

        assert asyncio.run(main()) <= 2

    @pytest.mark.real_agent
    def test_concurrent_streams(self) -> None:
        """Streams that are iterated concurrently do not wait for each other."""

        async def main() -> list[list[int]]:
            return list(await asyncio.gather(*(collect(rx.of(n, n + 1)) for n in range(20))))

        assert [[n, n + 1] for n in range(20)] == asyncio.run(main())


def _generator(stream: Observable[Any]) -> Any:
    events: AsyncIterator[Any] = aiterate(stream)
    return events
