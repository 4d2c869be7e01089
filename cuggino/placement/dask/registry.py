"""The registry of attempts on the scheduler: their workers and their states.

Dask assigns a task to any worker that offers the needed resources, even if they are in use there
and free elsewhere. An attempt therefore first gets a seat on a worker with everything free, and its
task may run only there.

The worker claims the attempt before running it. A task that Dask starts a second time, after its
worker was killed or retired or its result was lost, fails to claim it and does not run: an attempt
runs once, whichever `allowed-failures` is set.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypedDict

from distributed import SchedulerPlugin, Status

from cuggino._version import __version__

PREFIX = "cuggino-"
"""Start of the names of all queues and published datasets; the key of the attempt follows."""

_PLUGIN = "cuggino-attempts"
_TICK = 0.2
"""Seconds between checks for free seats while any attempt waits for one."""
_UNUSED = 60.0
"""Seconds after which a seat is freed if its client never submitted the task."""
_FORGOTTEN = 10.0
"""Seconds after which an attempt that no longer asks for a seat loses its place in the line."""

State: TypeAlias = Literal["seated", "running", "ended", "gone"]
"""`ended`: everything is released. `gone`: the worker was removed."""


class Record(TypedDict):
    """The state of an attempt that its client may see."""

    worker: str
    address: str
    state: State
    begun: bool


@dataclass
class _Seat:
    record: Record
    task: str
    """The key of the task in Dask."""
    needs: Mapping[str, float]
    since: float = field(default_factory=time.monotonic)


@dataclass
class _Waiting:
    task: str
    needs: Mapping[str, float]
    avoid: Sequence[str]
    until: float
    served: asyncio.Event = field(default_factory=asyncio.Event)


class Attempts(SchedulerPlugin):  # type: ignore[misc]  # distributed has no types
    """The attempts of one scheduler, by their keys."""

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler
        self._changed: dict[str, asyncio.Event] = {}
        self._line: dict[str, _Waiting] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.seats: dict[str, _Seat] = {}

    async def seat(
        self,
        key: str,
        task: str,
        needs: Mapping[str, float],
        avoid: Sequence[str],
        timeout: float,
    ) -> str | None:
        """Return the address of a worker with a free seat, or None if there was none in time.

        Seats are given in order of arrival. After None, call again without delay. A worker in
        `avoid` is used only if no other suitable one is free.
        """
        until = time.monotonic() + timeout + _FORGOTTEN
        waiting = self._line.setdefault(key, _Waiting(task, needs, tuple(avoid), until))
        waiting.until = until
        self._serve()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(waiting.served.wait(), timeout)
        seat = self.seats.get(key)
        return seat.record["address"] if seat and seat.task == task else None

    def claim(self, key: str, task: str, address: str) -> bool:
        """Record that a worker begins an attempt; return False if it must not run there."""
        seat = self.seats.get(key)
        wanted = seat is not None and (seat.task, seat.record["address"]) == (task, address)
        if seat is None or not wanted or seat.record["state"] != "seated":
            return False
        seat.record["begun"] = True
        self._become(key, "running")
        return True

    def end(self, key: str) -> None:
        """Record that the attempt has released everything, and remove its queues."""
        self._remove_queues(key)
        self._become(key, "ended")

    def forget(self, key: str, task: str) -> None:
        """Remove the seat and queues of a task that its client is done with or has withdrawn.

        A task that has not begun cannot begin any more.
        """
        waiting, seat = self._line.get(key), self.seats.get(key)
        if waiting is not None and waiting.task == task:
            del self._line[key]
        if seat is not None and seat.task == task:
            self._remove_queues(key)
            if seat.record["state"] == "seated":
                del self.seats[key]
        self._serve()

    async def observe(self, key: str, seen: str | None, timeout: float) -> Record | None:
        """Return the record once its state differs from `seen`, or after `timeout`."""
        if self._state(key) == seen:
            event = self._changed.setdefault(key, asyncio.Event())
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(event.wait(), timeout)
        seat = self.seats.get(key)
        return seat.record if seat else None

    def drop_queue(self, name: str) -> None:
        queues = self._scheduler.extensions["queues"]
        queues.queues.pop(name, None)
        queues.client_refcount.pop(name, None)

    def running_on(self, address: str) -> tuple[str, ...]:
        """Return the keys of the attempts that run on a worker."""
        return tuple(
            key
            for key, seat in self.seats.items()
            if seat.record["address"] == address and seat.record["state"] == "running"
        )

    # Plugin hooks, called by the scheduler.

    def transition(self, key: Any, start: str, finish: str, *_: Any, **__: Any) -> None:
        if self._line and "processing" in (start, finish):
            # After the transition, which updates the worker's counts.
            asyncio.get_running_loop().call_soon(self._serve)

    def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
        """Record the attempts lost with a worker that left, for any reason."""
        for key, seat in self.seats.items():
            if seat.record["address"] == worker and seat.record["state"] != "gone":
                task = scheduler.tasks.get(seat.task)
                has_result = task is not None and task.state in ("memory", "erred")
                if seat.record["state"] != "ended" or not has_result:
                    self._become(key, "gone")

    # Seats.

    def _tick(self) -> None:
        self._timer = None
        self._serve()

    def _serve(self) -> None:
        """Give free seats to the attempts in line."""
        self._purge()
        if self._line and self._timer is None:  # no event announces a ready worker
            self._timer = asyncio.get_running_loop().call_later(_TICK, self._tick)
        now = time.monotonic()
        for key, waiting in list(self._line.items()):
            if waiting.until < now:
                del self._line[key]
                continue
            worker = self._free_worker(waiting)
            if worker is None:
                continue
            del self._line[key]
            record = Record(
                worker=str(worker.name), address=worker.address, state="seated", begun=False
            )
            self.seats[key] = _Seat(record, waiting.task, waiting.needs)
            self._announce(key)
            waiting.served.set()

    def _free_worker(self, waiting: _Waiting) -> Any:
        """Return the least busy worker with all needed resources free."""
        free = [
            (each.address not in waiting.avoid, self._free_threads(each), -index, each)
            for index, each in enumerate(self._scheduler.workers.values())
            if each.status == Status.running and self._fits(each, waiting.needs)
        ]
        return max(free)[-1] if free else None

    def _fits(self, worker: Any, needs: Mapping[str, float]) -> bool:
        seated = self._seated(worker)
        return self._free_threads(worker) > 0 and all(
            worker.resources.get(name, 0.0)
            - worker.used_resources.get(name, 0.0)
            - sum(each.needs.get(name, 0.0) for each in seated)
            >= amount
            for name, amount in needs.items()
        )

    def _free_threads(self, worker: Any) -> int:
        threads: int = worker.nthreads - len(worker.processing) - len(self._seated(worker))
        return threads

    def _seated(self, worker: Any) -> list[_Seat]:
        """Return the worker's seats whose tasks Dask does not count yet."""
        busy = {task.key for task in worker.processing}
        return [
            seat
            for seat in self.seats.values()
            if seat.record["state"] == "seated"
            and seat.record["address"] == worker.address
            and seat.task not in busy
        ]

    # Records.

    def _state(self, key: str) -> State | None:
        seat = self.seats.get(key)
        return seat.record["state"] if seat else None

    def _become(self, key: str, state: State) -> None:
        seat = self.seats.get(key)
        if seat is not None and seat.record["state"] != "gone":
            seat.record["state"] = state
        self._announce(key)

    def _announce(self, key: str) -> None:
        if event := self._changed.pop(key, None):
            event.set()

    def _remove_queues(self, key: str) -> None:
        for name in list(self._scheduler.extensions["queues"].queues):
            if _key_of(name) == key:
                self.drop_queue(name)

    def _purge(self) -> None:
        """Remove unused seats and orphaned queues of clients that died."""
        tasks = self._scheduler.tasks
        unused = time.monotonic() - _UNUSED
        for key, seat in list(self.seats.items()):
            is_over = seat.record["state"] != "running" and seat.task not in tasks
            if is_over and (seat.record["state"] != "seated" or seat.since < unused):
                del self.seats[key]
                self._announce(key)
        for name in list(self._scheduler.extensions["queues"].queues):
            if name.startswith(PREFIX) and _key_of(name) not in self.seats:
                self.drop_queue(name)


def queue_name(key: str, purpose: str) -> str:
    """Return the name of a queue of the attempt."""
    return f"{PREFIX}{key}:{purpose}"


def _key_of(name: str) -> str | None:
    if not name.startswith(PREFIX):
        return None
    return name.removeprefix(PREFIX).rpartition(":")[0]


def _attempts(scheduler: Any) -> Attempts:
    found = scheduler.plugins.get(_PLUGIN)
    if found is None:
        found = Attempts(scheduler)
        scheduler.add_plugin(found, name=_PLUGIN)
    assert isinstance(found, Attempts)
    return found


# Functions that clients and workers call with `run_on_scheduler`.


def hello(*, dask_scheduler: Any) -> str:
    """Prepare the scheduler and return its version of cuggino."""
    _attempts(dask_scheduler)
    return __version__


def has_dashboard(*, dask_scheduler: Any) -> bool:
    """Return whether the scheduler serves a dashboard."""
    return bool(getattr(dask_scheduler.http_application, "applications", ()))


async def seat(
    key: str,
    task: str,
    needs: Mapping[str, float],
    avoid: Sequence[str],
    timeout: float,
    *,
    dask_scheduler: Any,
) -> str | None:
    """Return the address of a worker with a free seat, or None if there was none in time."""
    return await _attempts(dask_scheduler).seat(key, task, needs, avoid, timeout)


def name_of(address: str, *, dask_scheduler: Any) -> str:
    """Return the name of the worker at an address."""
    worker = dask_scheduler.workers.get(address)
    return str(worker.name) if worker else address


def claim(key: str, task: str, address: str, *, dask_scheduler: Any) -> bool:
    """Record that a worker begins an attempt; return False if it must not run there."""
    return _attempts(dask_scheduler).claim(key, task, address)


def end(key: str, *, dask_scheduler: Any) -> None:
    """Record that the attempt has released everything."""
    _attempts(dask_scheduler).end(key)


def forget(key: str, task: str, *, dask_scheduler: Any) -> None:
    """Remove the seat and queues of a task that is over or withdrawn."""
    _attempts(dask_scheduler).forget(key, task)


def drop_queue(name: str, *, dask_scheduler: Any) -> None:
    """Remove one queue."""
    _attempts(dask_scheduler).drop_queue(name)


async def observe(
    key: str, seen: str | None, timeout: float, *, dask_scheduler: Any
) -> Record | None:
    """Return the record of an attempt once its state differs from `seen`."""
    return await _attempts(dask_scheduler).observe(key, seen, timeout)


def workers(*, dask_scheduler: Any) -> list[tuple[Any, ...]]:
    """Return name, address, threads, resources, used resources and attempts of each worker."""
    return [
        (
            str(each.name),
            each.address,
            each.nthreads,
            dict(each.resources),
            dict(each.used_resources),
            _attempts(dask_scheduler).running_on(each.address),
        )
        for each in dask_scheduler.workers.values()
    ]
