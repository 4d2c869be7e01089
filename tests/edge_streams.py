"""Streams for tests that leave an edge early."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from reactivex import Observable, abc
from reactivex.disposable import Disposable

from cuggino import aiterate
from cuggino.testing import no_leaks
from tests.processes.subscribers import eventually


class Ticks:
    """A stream of 0, 1, 2, ... until disposal; it records its position and whether it ended."""

    def __init__(self) -> None:
        self.sent = 0
        self.released = threading.Event()
        self.started = threading.Event()
        self.stream: Observable[int] = Observable(self._subscribe)

    def _subscribe(
        self, observer: abc.ObserverBase[int], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        assert scheduler is not None

        def tick(*_: Any) -> None:
            if not self.released.is_set():
                self.sent += 1
                observer.on_next(self.sent - 1)
                scheduler.schedule(tick)

        scheduler.schedule(tick)
        self.started.set()
        return Disposable(self.released.set)


def silent(released: threading.Event, started: threading.Event | None = None) -> Observable[int]:
    """Return a stream that never emits."""

    def subscribe(_observer: Any, _scheduler: Any = None) -> abc.DisposableBase:
        if started is not None:
            started.set()
        return Disposable(released.set)

    return Observable(subscribe)


async def collect(stream: Observable[Any]) -> list[Any]:
    return [event async for event in aiterate(stream)]


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """Check that no thread, process or open file is left."""
    gc.collect(1)
    gc.freeze()  # only what the test makes is searched
    with no_leaks():
        lanes = lane_threads()
        yield
        gc.collect()
    assert eventually(lambda: lanes == lane_threads()), "a lane is left"


def lane_threads() -> set[int | None]:
    return {t.ident for t in threading.enumerate() if t.name == "cuggino-loop"}
