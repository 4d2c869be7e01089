"""The link to a Dask cluster on loopback: a scheduler and three workers."""

from __future__ import annotations

import importlib.util
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from reactivex import operators as ops

from cuggino.edges import run
from tests.benchmarks.measuring import Figure, Skipped

BATCH = 64


def link(*, batches: int = 300, rounds: int = 5) -> Iterator[Figure]:
    """Measure a batch of texts, a start, an order and a cancellation."""
    if importlib.util.find_spec("distributed") is None:
        raise Skipped("needs pip install 'cuggino[cluster]'")
    from distributed import Client

    from cuggino.placement.dask import DaskLink
    from tests.placement.dask.cluster import running_cluster

    with (
        tempfile.TemporaryDirectory() as folder,
        running_cluster(Path(folder), "w1", "w2", "w3") as cluster,
        DaskLink(cluster.address) as connected,
        Client(cluster.address, set_as_default=False) as client,
    ):
        measured = _Measured(connected, client)
        measured.warm()
        pairs = [(measured.texts(batches), measured.queue(batches)) for _ in range(rounds)]
        yield Figure(
            key="cluster.batch",
            name=f"cluster: a batch of {BATCH} texts from a worker, wall time",
            value=min(ours for ours, _ in pairs) * 1e3,
            unit="ms",
            floor=min(floor for _, floor in pairs) * 1e3,
            floor_name="put and get of Dask's queue",
        )
        starts, orders, ends = zip(*(measured.attempt() for _ in range(rounds)), strict=True)
        yield _median("cluster.start", "cluster: start of an attempt, wall time", starts)
        yield _median(
            "cluster.order", "cluster: an order to an attempt and back, wall time", orders
        )
        yield _median("cluster.cancel", "cluster: end of an agent and its tool, wall time", ends)


class _Measured:
    def __init__(self, link: Any, client: Any) -> None:
        self._link = link
        self._client = client
        self._number = 0

    def warm(self) -> None:
        """Make each worker import the modules that the attempts need."""
        from tests.placement.dask.watching import begun

        while len(run(self._link.workers()) or ()) < 3:
            time.sleep(0.05)
        for placed in [begun(self._link, f"warm-{number}", "echo") for number in range(6)]:
            run(self._link.cancel(placed))

    def texts(self, batches: int) -> float:
        """Return the seconds for each batch of an attempt that emits without a pause."""
        from tests.placement.dask.watching import begun

        placed = begun(self._link, self._key(), "count", str(batches * BATCH))
        seconds, count = _timed(lambda: run(self._link.events(placed).pipe(ops.count())))
        assert count == batches * BATCH
        return seconds / batches

    def queue(self, batches: int) -> float:
        """Return the seconds in which a client puts and gets as many batches."""
        from distributed import Queue

        queue = Queue(self._key(), client=self._client)
        text = json.dumps({"from": 0, "texts": [str(number) for number in range(BATCH)]})

        def move() -> None:
            for _ in range(batches):
                queue.put(text)
                queue.get()

        seconds, _ = _timed(move)
        queue.close()
        return seconds / batches

    def attempt(self) -> tuple[float, float, float]:
        """Return the seconds of a start, of an order, and of the end of an agent."""
        from tests.placement.dask.watching import any_alive, begun, begun_agent
        from tests.processes.subscribers import Recorder, eventually

        start, placed = _timed(lambda: begun(self._link, self._key(), "echo"))
        echoed = Recorder(self._link.events(placed))
        self._link.tell(placed, "first")
        echoed.wait_first()
        order, _ = _timed(
            lambda: (
                self._link.tell(placed, "second"),
                eventually(lambda: len(echoed.items) == 2),
            )
        )
        run(self._link.cancel(placed))
        agent, _, pids = begun_agent(self._link, self._key())
        end, _ = _timed(lambda: (self._link.cancel(agent), eventually(lambda: not any_alive(pids))))
        return start, order, end

    def _key(self) -> str:
        self._number += 1
        return f"measured-{self._number}"


def _median(key: str, name: str, seconds: tuple[float, ...]) -> Figure:
    return Figure(key=key, name=name, value=statistics.median(seconds), unit="s")


def _timed(action: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result
