"""Checks that a cluster's scheduler and workers can work on the items of a project."""

from __future__ import annotations

import asyncio
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from reactivex import Observable

from cuggino._version import __version__
from cuggino.config import Config
from cuggino.doctor import CheckResult, check_machine
from cuggino.errors import ConfigError, CugginoError
from cuggino.git import Git
from cuggino.operators import Flow, ask, emit, flow, on_loop
from cuggino.placement.address import ClusterAddress, load_distributed, security_of
from cuggino.placement.needs import roles_agents, unmet_needs
from cuggino.sandbox import top_of
from cuggino.stages import act
from cuggino.stages.slots import remote_of

if TYPE_CHECKING:
    from distributed import Client

ANSWER_SECONDS = 60.0
"""Time limit for all workers together."""

_SAME = "install the same version of cuggino here, for the scheduler and for all workers"
_CONNECT_SECONDS = 10.0


class MachineCheck(NamedTuple):
    """The results of a worker, or of the scheduler."""

    name: str
    """`scheduler`, or the name of the worker."""
    address: str
    results: tuple[CheckResult, ...]
    resources: Mapping[str, float]
    """The resources that the worker offers."""

    @property
    def works(self) -> bool:
        """Return whether none of the results is a problem."""
        return all(result.status != "problem" for result in self.results)


def check_cluster(
    cluster: ClusterAddress,
    *,
    folder: Path,
    config: Config,
    agent: str | None = None,
    seconds: float = ANSWER_SECONDS,
) -> Observable[MachineCheck]:
    """Emit the results of the scheduler, then those of each worker.

    A worker may lack an agent that items need if it does not offer the agent as a resource and
    other workers do: no such item is placed there.

    Args:
        cluster: the address; no item is placed on it.
        folder: the project, whose remote the workers must reach.
        config: its agents, sandbox and guard.
        agent: overrides the configured agent.
        seconds: the timeout; a worker that does not answer in time is a problem.

    Errors: `ConfigError` if the scheduler cannot be connected to.
    """

    def story() -> Flow[None]:
        git, remote, missing = Git(cwd=top_of(folder)), None, None
        try:
            remote = yield from remote_of(git, cluster.remote)
        except CugginoError as error:
            missing = CheckResult("problem", error.message, error.hint)
        asking = _Asking(cluster, config, agent, remote, seconds)
        machines = yield from ask(act(lambda: asyncio.run(asking.all())))
        assert machines is not None
        scheduler, *workers = machines
        if missing is not None:
            scheduler = scheduler._replace(results=(*scheduler.results, missing))
        for machine in (scheduler, *workers):
            yield from emit(machine)

    return on_loop(flow(story))


async def machine_report(request: str, dask_worker: Any) -> str:
    """Return the results of this worker, for `check_cluster`; called by Dask."""
    return await asyncio.to_thread(_reported, request, Path(dask_worker.local_directory))


def scheduler_report(dask_scheduler: Any) -> str:
    """Return the scheduler's versions and settings, for `check_cluster`; called by Dask."""
    return json.dumps(
        {
            **_versions(),
            "allowed_failures": dask_scheduler.allowed_failures,
            "worker_ttl": dask_scheduler.worker_ttl,
        }
    )


def _reported(request: str, folder: Path) -> str:
    asked = json.loads(request)
    config = Config.model_validate({"guard": asked["guard"], "sandbox": asked["sandbox"]})
    results = check_machine(asked["agents"], config=config, folder=folder, remote=asked["remote"])
    return json.dumps(
        {**_versions(), "results": [[one.status, one.what, one.hint] for one in results]}
    )


def _versions() -> dict[str, str]:
    return {"cuggino": __version__, "python": platform.python_version()}


class _Asking:
    def __init__(
        self,
        cluster: ClusterAddress,
        config: Config,
        agent: str | None,
        remote: str | None,
        seconds: float,
    ) -> None:
        self._cluster = cluster
        self._config = config
        self._agents = roles_agents(config, agent)
        self._remote = remote
        self._seconds = seconds

    async def all(self) -> list[MachineCheck]:
        distributed: Any = load_distributed()
        address = self._cluster.address
        try:
            client = await distributed.Client(
                address,
                security=security_of(self._cluster),
                timeout=_CONNECT_SECONDS,
                asynchronous=True,
                set_as_default=False,
            )
        except (OSError, ValueError, TypeError) as error:
            raise ConfigError(
                f"cannot connect to the scheduler at {address}: {error}",
                hint="check the address, that the scheduler runs, and its TLS settings",
            ) from error
        try:
            info = await client.scheduler.identity(n_workers=-1)
            workers = dict(sorted(info["workers"].items(), key=lambda one: str(one[1]["name"])))
            offered = [worker.get("resources", {}) for worker in workers.values()]
            scheduler = MachineCheck(
                "scheduler", address, tuple(await self._scheduler(client, offered)), {}
            )
            asked = (self._worker(client, *each, offered) for each in workers.items())
            return [scheduler, *await asyncio.gather(*asked)]
        finally:
            await client.close()

    async def _scheduler(
        self, client: Client, offered: Sequence[Mapping[str, float]]
    ) -> list[CheckResult]:
        try:
            said = await asyncio.wait_for(client.run_on_scheduler(scheduler_report), self._seconds)
        except Exception as error:
            return [_cannot_run(error)]
        report = json.loads(said)
        results = [_version(report)]
        failures = report["allowed_failures"]
        if failures:
            results.append(
                CheckResult(
                    "problem",
                    f"allowed-failures is {failures}: Dask would run the attempts of a dead worker "
                    "again, from their beginning",
                    "start the scheduler with DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=0",
                )
            )
        ttl = report["worker_ttl"]
        given = f"after {ttl:g} s" if ttl else "never"
        results.append(CheckResult("ok", f"silent workers are abandoned {given}"))
        needed = {name: 1.0 for name in self._agents if any(name in one for one in offered)}
        if why := unmet_needs(needed, offered):
            results.append(CheckResult("problem", why, "start workers: cuggino help clusters"))
        return results

    async def _worker(
        self,
        client: Client,
        address: str,
        info: Mapping[str, Any],
        offered: Sequence[Mapping[str, float]],
    ) -> MachineCheck:
        resources = info.get("resources", {})
        elsewhere = {name for one in offered for name in one} - set(resources)
        needed = [name for name in self._agents if name not in elsewhere]
        results = [
            *await self._inspected(client, address, needed),
            *_limits(info, [name for name in self._agents if name in elsewhere]),
        ]
        return MachineCheck(str(info["name"]), address, tuple(results), resources)

    async def _inspected(
        self, client: Client, address: str, agents: Sequence[str]
    ) -> list[CheckResult]:
        request = json.dumps(
            {
                "agents": {name: self._path(name) for name in agents},
                "guard": self._config.guard,
                "sandbox": self._config.sandbox,
                "remote": self._remote,
            }
        )
        try:
            answers = await asyncio.wait_for(
                client.run(machine_report, request, workers=[address]), self._seconds
            )
        except TimeoutError:
            what = f"no answer within {self._seconds:g} s"
            return [CheckResult("problem", what, "see whether its machine works, and its log")]
        except Exception as error:
            return [_cannot_run(error)]
        report = json.loads(answers[address])
        return [_version(report), *(CheckResult(*one) for one in report["results"])]

    def _path(self, name: str) -> str | None:
        """Return the configured program of the agent."""
        config = self._config
        if name == config.agent and config.agent_path is not None:
            return config.agent_path
        chosen = (role.path for role in config.agents.values() if role.agent == name)
        return next((path for path in chosen if path is not None), None)


def _version(report: Mapping[str, Any]) -> CheckResult:
    theirs, python = report["cuggino"], report["python"]
    if theirs != __version__:
        return CheckResult("problem", f"cuggino {theirs}, but {__version__} here", _SAME)
    return CheckResult("ok", f"cuggino {theirs}, Python {python}")


def _cannot_run(error: Exception) -> CheckResult:
    return CheckResult("problem", f"cuggino does not run there: {error}", _SAME)


def _limits(info: Mapping[str, Any], elsewhere: Sequence[str]) -> Iterator[CheckResult]:
    """Yield the worker's capacity, and limits that could terminate it."""
    count = info["nthreads"]
    offers = ", ".join(f"{name}={amount:g}" for name, amount in info.get("resources", {}).items())
    what = f"takes {count} item{'s' * (count != 1)} at once, offers {offers or 'no resources'}"
    yield CheckResult("ok", what)
    if elsewhere:
        names = ", ".join(elsewhere)
        yield CheckResult(
            "note",
            f"takes no item that needs {names}, which other workers offer",
            "offer it with --resources",
        )
    if limit := info["memory_limit"]:
        yield CheckResult(
            "problem",
            f"Dask would end it, with its agents, near {limit / 1e9:.1f} GB of memory",
            "start it with --memory-limit 0",
        )
