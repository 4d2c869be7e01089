"""A watch, or a run with several hands or attempts, whose work is done on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from reactivex import Observable, operators as ops

from cuggino.domain import attempted_item
from cuggino.errors import ConfigError, CugginoError
from cuggino.events import LoopEvent, WatchEvent, WatchLanded
from cuggino.git import Git
from cuggino.loops import LoopRunOptions, Services, Work
from cuggino.operators import Flow, ask, flow, forward, on_loop, pause
from cuggino.placement.address import ClusterAddress, security_of
from cuggino.placement.cluster import Cluster, Offered
from cuggino.placement.dask import DaskLink, DaskWorker
from cuggino.placement.needs import item_needs, roles_agents, unmet_needs
from cuggino.runtime import Runtime
from cuggino.sandbox import top_of
from cuggino.stages import act
from cuggino.stages.slots import refs_of_run, remote_of
from cuggino.storage import Backlog, scan_journal

MOST = 400
"""Maximum number of concurrent items; each has its own 100 ports."""
WORKERS_SECONDS = 60.0
"""Seconds to wait for the first worker."""
_LOOKS = 120

T = TypeVar("T")


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
    backlog = Backlog(runtime.workspace)

    def text_of(work: Work) -> str:
        item = attempted_item(work.name)
        return backlog.path(item).read_text(encoding="utf-8", errors="replace")

    def start(
        linked: _Linked, workers: Sequence[DaskWorker], interrupt: Observable[object] | None
    ) -> Observable[WatchEvent]:
        placement = linked.cluster(
            runtime.services,
            cwd=runtime.cwd,
            slots=slots or min(MOST, sum(worker.threads for worker in workers)),
            remote=cluster.remote,
            text_of=text_of,
        )
        return runtime.watch(placement=placement, slow=slow, interrupt=interrupt)

    check = partial(_refuse_waiting, "a watch on a cluster", runtime.config.approve)
    return _on_cluster(runtime, cluster, check, start, interrupt)


def run_on_cluster(
    runtime: Runtime,
    cluster: ClusterAddress,
    start: Callable[..., Observable[LoopEvent]],
    *,
    interrupt: Observable[object] | None = None,
) -> Observable[LoopEvent]:
    """Have the workers of a cluster do a run's tasks, or several attempts at its work. Cold.

    `start` is `partial(runtime.run, focus="the login page")` or the like of `Runtime.resume`, and
    gets `places` and `interrupt`. All landings stay on this machine, as do the plan and the review
    of several hands, and the judge of attempts. The connection is closed with the run, which ends
    the running attempts; with `detach` in the cluster's settings, an item of `interrupt` ends only
    the run, and one that resumes it takes over.

    Errors: those of `start`; `ConfigError` if the cluster cannot be used or has no worker within a
    minute, `ClusterLost` when its scheduler is gone.
    """

    def begun(
        linked: _Linked, workers: Sequence[DaskWorker], interrupt: Observable[object] | None
    ) -> Flow[None]:
        # The clone of a run with hands, whose repository is that of the tasks, has no remotes.
        remote = yield from remote_of(Git(cwd=top_of(runtime.cwd)), cluster.remote)

        def places(services: Services, options: LoopRunOptions, count: int, run: str) -> Cluster:
            refuse(options.approve, but=("landing",))
            runs[:] = [run]
            return linked.cluster(
                services,
                cwd=options.cwd,
                slots=count,
                remote=remote,
                refs=refs_of_run(run),
                files=runtime.cwd,
            )

        runs: list[str] = []
        yield from forward(start(places=places, interrupt=interrupt))
        for run_id in runs:
            journal = runtime.workspace.journal / f"{run_id}.jsonl"
            with suppress(CugginoError):  # they do no harm
                landed = yield from ask(act(partial(_landed, journal)))
                yield from ask(linked.made[-1].forget(landed or ()))

    def started(*given: Any) -> Observable[LoopEvent]:
        return flow(partial(begun, *given))

    # Landings are approved on this machine, and so is the plan of several hands.
    config, refuse = runtime.config, partial(_refuse_waiting, "a run on a cluster")
    has_plans = config.hands == 1 and len(config.choices) > 1
    asked = ("landing",) if has_plans else ("landing", "plan")
    check = partial(refuse, config.approve, but=asked)
    return _on_cluster(runtime, cluster, check, started, interrupt)


@dataclass(frozen=True, slots=True)
class _Linked:
    """A cluster that is connected to, and the placements made of it."""

    runtime: Runtime
    address: ClusterAddress
    link: DaskLink
    made: list[Cluster] = field(default_factory=list)

    def cluster(
        self, services: Services, *, text_of: Callable[[Work], str] = lambda _: "", **more: Any
    ) -> Cluster:
        """Return a placement; what an item needs is said in its text."""
        runtime = self.runtime
        made = Cluster(
            services,
            runtime.config,
            self.link,
            agent=runtime.agent_name,
            needs=partial(self._needs, text_of),
            **more,
        )
        self.made.append(made)
        return made

    def leave(self, _asked: object) -> None:
        """Let all attempts continue without this process."""
        for one in self.made:
            one.leave()

    def _needs(
        self, text_of: Callable[[Work], str], work: Work, offered: Offered
    ) -> Mapping[str, float]:
        config = self.runtime.config.of_attempt(work.choice)
        is_usual = config is self.runtime.config
        agents = roles_agents(config, (is_usual and self.runtime.agent_name) or None)
        settings = self.address.needs
        needed = item_needs(
            text_of(work), agents=agents, offered=offered, settings=settings, item=work.name
        )
        if reason := unmet_needs(needed, offered):
            raise ConfigError(
                f"{work.name} cannot be worked on: {reason}",
                hint="start a worker with what it needs: dask worker --resources; "
                "see cuggino help clusters",
            )
        return needed


def _on_cluster(
    runtime: Runtime,
    cluster: ClusterAddress,
    check: Callable[[], None],
    start: Callable[[_Linked, Sequence[DaskWorker], Observable[object] | None], Observable[T]],
    interrupt: Observable[object] | None,
) -> Observable[T]:
    """Connect to a cluster for as long as something works on it."""

    def story() -> Flow[None]:
        check()
        link = yield from ask(act(connected))
        assert link is not None
        with link:
            workers = yield from present(link)
            linked, ends = _Linked(runtime, cluster, link), interrupt
            if interrupt is not None and cluster.detach:
                ends = interrupt.pipe(ops.do_action(linked.leave))
            yield from forward(start(linked, workers, ends))

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

    return on_loop(flow(story))


def _landed(journal: Path) -> frozenset[str]:
    """Return the names of the items that have landed in a run."""
    events = (entry.event for entry in scan_journal(journal).entries.only(("WatchLanded",)))
    return frozenset(one.filename for one in events if isinstance(one, WatchLanded))


def _refuse_waiting(what: str, approve: Sequence[str], *, but: Sequence[str] = ()) -> None:
    """Refuse approvals for which an agent of a worker would wait.

    Raises:
        ConfigError: there is one.
    """
    left = [one for one in approve if one not in but]
    if left:
        raise ConfigError(
            f"{what} cannot wait for approvals",
            hint=f'remove {", ".join(left)} from "approve", or work here: --cluster none',
        )
