"""The workers of a cluster, as events of a watch."""

from __future__ import annotations

from typing import Protocol

from reactivex import Observable, defer, just, operators as ops

from cuggino.domain import Schedule
from cuggino.events import ClusterWorker, WatchWorkers
from cuggino.operators.only import only
from cuggino.operators.repeat_on import repeat_on
from cuggino.placement.dask.values import DaskWorker

LOOK = 10.0
"""Seconds between polls of the workers."""


class Workers(Protocol):
    """A source of the workers of a cluster, such as `DaskLink`."""

    @property
    def dashboard(self) -> str:
        """Return the address of Dask's dashboard, or "" without one."""

    def workers(self) -> Observable[tuple[DaskWorker, ...]]:
        """Emit the workers once."""


def workers_seen(
    link: Workers, *, before: WatchWorkers | None = None, every: float = LOOK
) -> Observable[WatchWorkers]:
    """Emit the workers of a cluster, and again after each change. Never completes.

    ::

        WatchWorkers(joined=all) ... WatchWorkers(left=one) ... WatchWorkers(busier) ...

    While the scheduler does not answer, there are no workers. If `before` is given, the first event
    is emitted only if it differs from it.
    """

    def after(seen: WatchWorkers | None, found: tuple[DaskWorker, ...]) -> WatchWorkers | None:
        return _event(found, seen, link)

    looks: Observable[tuple[DaskWorker, ...]] = defer(lambda _: link.workers()).pipe(
        ops.catch(just(())),  # the scheduler does not answer; attempts report its loss
        repeat_on(Schedule.constant(every)),
    )
    return looks.pipe(
        ops.scan(after, before),
        ops.start_with(before),
        ops.distinct_until_changed(_workers),
        ops.skip(1),
        only(WatchWorkers),
    )


def _workers(seen: WatchWorkers | None) -> tuple[ClusterWorker, ...] | None:
    return seen.workers if seen is not None else None


def _event(
    found: tuple[DaskWorker, ...], before: WatchWorkers | None, link: Workers
) -> WatchWorkers:
    workers = tuple(sorted(map(_worker, found), key=lambda worker: worker.name))
    names = [worker.name for worker in workers]
    known = [worker.name for worker in before.workers] if before is not None else []
    return WatchWorkers(
        workers=workers,
        joined=tuple(name for name in names if name not in known),
        left=tuple(name for name in known if name not in names),
        dashboard=link.dashboard,
    )


def _worker(found: DaskWorker) -> ClusterWorker:
    return ClusterWorker(
        name=found.name,
        places=found.threads,
        busy=len(found.attempts),
        resources=dict(sorted(found.resources.items())),
        used={name: amount for name, amount in sorted(found.used.items()) if amount},
    )
