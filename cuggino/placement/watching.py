"""A watch that works on its items on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reactivex import Observable, operators as ops

from cuggino.errors import ConfigError
from cuggino.events import WatchEvent
from cuggino.loops import Work
from cuggino.operators import Flow, ask, flow, forward, on_loop, pause
from cuggino.placement.address import ClusterAddress, security_of
from cuggino.placement.cluster import Cluster, Offered
from cuggino.placement.dask import DaskLink, DaskWorker
from cuggino.placement.needs import item_needs, roles_agents, unmet_needs
from cuggino.runtime import Runtime
from cuggino.stages import act
from cuggino.storage import Backlog

MOST = 400
"""Maximum number of concurrent items; each has its own 100 ports."""
WORKERS_SECONDS = 60.0
"""Seconds that a watch waits for the first worker."""
_LOOKS = 120


def watch_on_cluster(
    runtime: Runtime,
    cluster: ClusterAddress,
    *,
    slots: int | None = None,
    slow: bool = False,
    interrupt: Observable[object] | None = None,
) -> Observable[WatchEvent]:
    """Watch the backlog, and have the workers of a cluster work on its items. Cold.

    Emits the events of `Runtime.watch`; `WatchSlotPrepared` names the worker. Up to `slots` items
    are at work at once, by default one per thread of the workers at the start. The connection is
    closed with the watch, which ends the running attempts; with `detach` in the cluster's settings,
    an item of `interrupt` ends only the watch.

    Errors: those of `Runtime.watch`; `ConfigError` if the cluster cannot be used or has no worker
    within a minute, `ClusterLost` when its scheduler is gone.
    """

    def story() -> Flow[None]:
        if runtime.config.approve:
            raise ConfigError(
                "a watch on a cluster cannot wait for approvals",
                hint='remove "approve", or work in slots of this machine',
            )
        link = yield from ask(act(connected))
        assert link is not None
        with link:
            workers = yield from present(link)
            count = slots or min(MOST, sum(worker.threads for worker in workers))
            placement = Cluster(
                runtime.services,
                runtime.config,
                link,
                cwd=runtime.cwd,
                slots=count,
                agent=runtime.agent_name,
                remote=cluster.remote,
                needs=needs,
            )
            ends = interrupt
            if interrupt is not None and cluster.detach:
                ends = interrupt.pipe(ops.do_action(lambda _: placement.leave()))
            yield from forward(runtime.watch(placement=placement, slow=slow, interrupt=ends))

    def present(link: DaskLink) -> Flow[Sequence[DaskWorker]]:
        """Wait for the first worker: a queue of jobs may take a while to start them."""
        for _ in range(_LOOKS):
            workers = yield from ask(link.workers())
            if workers:
                return workers
            yield from pause(WORKERS_SECONDS / _LOOKS)
        raise ConfigError(
            f"the cluster at {cluster.address} has no workers",
            hint=f"start one: dask worker {cluster.address}; see cuggino help clusters",
        )

    def connected() -> DaskLink:
        security = security_of(cluster)
        return DaskLink(cluster.address, security=security, detach=cluster.detach)

    def needs(work: Work, offered: Offered) -> Mapping[str, float]:
        text = backlog.path(work.name).read_text(encoding="utf-8", errors="replace")
        agents = roles_agents(runtime.config, runtime.agent_name or None)
        needed = item_needs(
            text, agents=agents, offered=offered, settings=cluster.needs, item=work.name
        )
        if reason := unmet_needs(needed, offered):
            raise ConfigError(
                f"{work.name} cannot be worked on: {reason}",
                hint="start a worker with what it needs: dask worker --resources; "
                "see cuggino help clusters",
            )
        return needed

    backlog = Backlog(runtime.workspace)
    return on_loop(flow(story))
