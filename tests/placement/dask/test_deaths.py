"""Workers and schedulers that die in every way, each in its own cluster."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest
from distributed import Client

from cuggino import run
from cuggino.placement.dask import AttemptLost, DaskLink
from tests.limits import LIMIT
from tests.placement.dask.cluster import running_cluster
from tests.placement.dask.watching import all_gone, any_alive, begun_agent
from tests.processes.subscribers import Recorder, eventually

pytestmark = pytest.mark.real_agent

NAMES = ("w1", "w2", "w3")
ALLOWED = "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES"
TTL = "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL"


def worker_pid(link: DaskLink, name: str) -> int:
    """Return the process of a worker, which may be a child of its nanny."""
    (address,) = (each.address for each in run(link.workers()) or () if each.name == name)
    with Client(link.address, set_as_default=False) as client:
        return int(client.run(os.getpid, workers=[address])[address])


@pytest.mark.parametrize("failures", ["0", "3"])
@pytest.mark.parametrize("nanny", [False, True])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_worker_ends(tmp_path: Path, failures: str, nanny: bool, number: signal.Signals) -> None:
    """Its attempt is lost, its processes are gone, and it is not run again, twice in a row."""
    runs = tmp_path / "runs"
    config = {ALLOWED: failures}
    with (
        running_cluster(tmp_path, *NAMES, nanny=nanny, config=config) as cluster,
        DaskLink(cluster.address, timeout=LIMIT) as link,
    ):
        assert eventually(lambda: len(run(link.workers()) or ()) == 3)
        for attempt in ("ends-1", "ends-2"):
            placed, texts, pids = begun_agent(link, attempt, str(runs))
            gone = Recorder(link.gone(placed))
            os.kill(worker_pid(link, placed.worker), number)
            assert ["worker"] == [each.cause for each in gone.wait().items]
            assert isinstance(texts.wait().error, AttemptLost)
            assert all_gone(pids)
        last, _, pids = begun_agent(link, "ends-3", str(runs))
        run(link.cancel(last))
        assert not any_alive(pids)
        assert "begun\n" * 3 == runs.read_text()


@pytest.mark.parametrize("nanny", [False, True])
def test_worker_is_stopped(tmp_path: Path, nanny: bool) -> None:
    """A worker without a sign of life is gone; when it comes back it ends its attempts."""
    runs = tmp_path / "runs"
    with (
        running_cluster(tmp_path, *NAMES, nanny=nanny, config={TTL: "15 s"}) as cluster,
        DaskLink(cluster.address, timeout=LIMIT) as link,
    ):
        assert eventually(lambda: len(run(link.workers()) or ()) == 3)
        placed, texts, pids = begun_agent(link, "stopped", str(runs))
        gone = Recorder(link.gone(placed))
        stopped = psutil.Process(worker_pid(link, placed.worker))
        stopped.suspend()
        try:
            assert ["worker"] == [each.cause for each in gone.wait().items]
            assert isinstance(texts.wait().error, AttemptLost)
            elsewhere, _, others = begun_agent(link, "stopped-2", str(runs))
            assert any_alive(others)
        finally:
            if stopped.is_running():
                stopped.resume()
        assert all_gone(pids)
        run(link.cancel(elsewhere))
        assert "begun\n" * 2 == runs.read_text()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_scheduler_ends(tmp_path: Path, number: signal.Signals) -> None:
    """Every attempt on every worker ends."""
    with (
        running_cluster(tmp_path, *NAMES) as cluster,
        DaskLink(cluster.address, timeout=LIMIT) as link,
    ):
        begun = [begun_agent(link, f"all-{number}") for number in range(6)]
        gone = [Recorder(link.gone(placed)) for placed, _, _ in begun]
        cluster.scheduler.send_signal(number)
        causes = [each.cause for one in gone for each in one.wait().items]
        assert ["scheduler"] * 6 == causes
        assert all_gone([pid for _, _, pids in begun for pid in pids])


def test_many_cancelled(tmp_path: Path) -> None:
    """Attempts are cancelled one after the other and all at once, and leave no process."""
    with (
        running_cluster(tmp_path, *NAMES) as cluster,
        DaskLink(cluster.address, timeout=LIMIT) as link,
    ):
        for number in range(20):
            placed, _, pids = begun_agent(link, f"one-{number}")
            run(link.cancel(placed))
            assert not any_alive(pids)
        begun = [begun_agent(link, f"all-{number}") for number in range(12)]
        ends = [link.cancel(placed) for placed, _, _ in begun]
        for end in ends:
            run(end)
        assert not any_alive([pid for _, _, pids in begun for pid in pids])
        assert eventually(lambda: not any(each.attempts for each in run(link.workers()) or ()))
