"""Helpers for tests of the link: acting on attempts, and inspecting processes and queues."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import psutil
from distributed import Client
from reactivex import operators as ops

from cuggino import run
from cuggino.placement.dask import DaskLink, Placed
from tests.processes.subscribers import Recorder, eventually

TASKS = "tests.placement.dask.tasks"


def begun(link: DaskLink, key: str, task: str, work: str = "", *, needs: str = "place") -> Placed:
    """Place an attempt and wait until a worker has begun it."""
    placed = run(link.place(key, work, f"{TASKS}:{task}", needs={needs: 1}))
    assert placed is not None
    return placed


def begun_agent(
    link: DaskLink, key: str, work: str = "", *, needs: str = "place"
) -> tuple[Placed, Recorder, tuple[int, ...]]:
    """Place an agent; also return the subscriber to its texts, and its processes."""
    placed = begun(link, key, "agent", work, needs=needs)
    texts = Recorder(link.events(placed))
    return placed, texts, tuple(int(pid) for pid in texts.wait_first().split())


def all_gone(pids: Iterable[int]) -> bool:
    """Return whether the processes end soon."""
    return eventually(lambda: not any(_alive(pid) for pid in pids))


def any_alive(pids: Iterable[int]) -> bool:
    return any(_alive(pid) for pid in pids)


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def queues(client: Client, key: str) -> dict[str, tuple[int, int]]:
    """Return size and limit of each queue of the attempt on the scheduler."""

    def look(dask_scheduler: Any) -> dict[str, tuple[int, int]]:
        found = dask_scheduler.extensions["queues"].queues
        return {name: (each.qsize(), each.maxsize) for name, each in found.items() if key in name}

    seen: dict[str, tuple[int, int]] = client.run_on_scheduler(look)
    return seen


def listed(link: DaskLink, placed: Placed) -> list[str]:
    """Return all texts of an attempt that ends."""
    return run(link.events(placed).pipe(ops.to_list())) or []
