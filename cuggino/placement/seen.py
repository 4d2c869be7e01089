"""The workers of a cluster, as events of a watch."""

from __future__ import annotations

from typing import Protocol

from reactivex import Observable

from cuggino.events import ClusterWorker, WatchWorkers
from cuggino.operators import Flow, ask, emit, flow, pause
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

    def story() -> Flow[None]:
        seen = before
        while True:
            now = _event((yield from _found(link)), seen, link)
            if seen is None or now.workers != seen.workers:
                yield from emit(now)
                seen = now
            yield from pause(every)

    return flow(story)


def _found(link: Workers) -> Flow[tuple[DaskWorker, ...]]:
    try:
        return (yield from ask(link.workers())) or ()
    except Exception:  # the scheduler does not answer; attempts report its loss
        return ()


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
