"""`cuggino watch --cluster` over real workers that are killed, stopped and left alone."""

from __future__ import annotations

import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cuggino.placement.dask.task import ABSENT
from tests.endurance.place import Command, until
from tests.endurance.trials import watch_place
from tests.placement.dask.cluster import Cluster, running_cluster

pytestmark = pytest.mark.real_agent

KINDS = ("good", "shared", "rounds", "shared", "check", "good")
WORKERS = ("w1", "w2", "w3")
TTL = 20.0
"""Seconds without a sign of life after which the scheduler gives a worker up.

More than a busy machine keeps a worker from its signs of life.
"""


class Team:
    """A project with a shared repository, and a cluster that works on its backlog."""

    def __init__(self, root: Path, items: int) -> None:
        kinds = {f"i{number:02}": KINDS[number % len(KINDS)] for number in range(items)}
        agent = "tests.placement.slow_agent:SlowItemAgent"
        self.place = watch_place(root, kinds, agent=agent, sandbox="off", guard="off", slots=5)
        self.remote = root / "remote.git"
        subprocess.run(["git", "init", "--quiet", "--bare", self.remote], check=True)
        self.place.git("remote", "add", "origin", str(self.remote))
        self.names = sorted(f"Write {name}, {kind}." for name, kind in kinds.items())
        self.cluster: Cluster
        self.workers: dict[str, subprocess.Popen[bytes]] = {}

    def watch(self, *more: str) -> Command:
        return self.place.start("watch", "--cluster", self.cluster.address, *more)

    def at_work(self, worker: str = "") -> list[str]:
        return self.cluster.at_work(worker)

    @property
    def landed(self) -> list[str]:
        return sorted(self.place.git("log", "--first-parent", "--format=%s").splitlines()[:-1])


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Callable[[int], Team]]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    config = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{TTL:g}s"}
    with running_cluster(folder, config=config) as cluster:

        def make(items: int) -> Team:
            made = Team(tmp_path / "team", items)
            made.cluster = cluster
            made.workers = {
                name: cluster.add_worker(name, threads=2, resources="any=2") for name in WORKERS
            }
            return made

        yield make


def prepared(watch: Command, count: int) -> bool:
    return watch.until(lambda: Counter(watch.tags())["WatchSlotPrepared"] >= count)


def finish(team: Team, watch: Command) -> None:
    """Wait until the watch has nothing left to do, end it, and check the results."""
    assert watch.until(lambda: watch.is_idle), watch.errors
    watch.interrupt()
    assert team.names == team.landed
    assert [] == list(team.place.problems())
    assert until(lambda: not team.at_work()), team.at_work()


def test_killed_workers(team: Callable[[int], Team]) -> None:
    """Killed in mid-stage, twice: every item lands once, and no stage that finished is repeated."""
    made = team(12)
    with made.watch() as watch:
        assert prepared(watch, 4), watch.errors
        for number in (1, 2):
            assert watch.until(lambda: bool(made.at_work(f"w{number}")))
            made.workers[f"w{number}"].kill()
            assert until(lambda: not made.at_work(f"w{number}"))
            assert watch.until(lambda: Counter(watch.tags())["WatchPlaceGone"] >= 1)
        made.cluster.add_worker("w4", threads=4, resources="any=4")
        finish(made, watch)


def test_stopped_worker(team: Callable[[int], Team]) -> None:
    """Given up by the scheduler and then continued, it is shut out of what others went on with."""
    made = team(6)
    with made.watch() as watch:
        assert prepared(watch, 3), watch.errors
        made.workers["w1"].send_signal(signal.SIGSTOP)
        assert watch.until(lambda: "WatchPlaceGone" in watch.tags()), watch.errors
        made.workers["w1"].send_signal(signal.SIGCONT)
        assert until(lambda: not made.at_work("w1"))
        finish(made, watch)


def test_killed_client(team: Callable[[int], Team]) -> None:
    """Agents end with the watch that placed them; the next one resumes."""
    made = team(6)
    with made.watch() as watch:
        assert watch.until(lambda: "ImplementingStart" in watch.tags()), watch.errors
        watch.kill()
    assert until(lambda: not made.at_work()), made.at_work()
    with made.watch() as watch:
        finish(made, watch)
        assert "RunResumed" in watch.tags()


@pytest.mark.parametrize("end", [Command.kill, Command.interrupt])
def test_detached_client(team: Callable[[int], Team], end: Callable[[Command], object]) -> None:
    """Detached attempts go on without it, and the next watch takes them over."""
    made = team(4)
    with made.watch("--detach") as watch:
        assert prepared(watch, 3), watch.errors
        assert watch.until(lambda: bool(made.at_work()))
        end(watch)
    time.sleep(2 * ABSENT)  # they notice that nobody is there
    with made.watch("--detach") as watch:
        finish(made, watch)
        assert "RunResumed" not in watch.tags()


def test_killed_scheduler(team: Callable[[int], Team]) -> None:
    """The watch ends with one sentence, and so do the agents; what has landed stays."""
    made = team(4)
    with made.watch() as watch:
        assert prepared(watch, 3), watch.errors
        made.cluster.kill_scheduler()
        assert 1 == watch.wait()
        assert "the cluster is lost" in watch.errors
        assert "Traceback" not in watch.errors
    assert until(lambda: not made.at_work()), made.at_work()
    assert "" == made.place.git("status", "--porcelain")
