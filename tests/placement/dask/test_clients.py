"""Attempts whose client, worker or scheduler dies, and how another client receives them."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from distributed import Client
from reactivex import operators as ops

from cuggino import run
from cuggino.errors import ConfigError
from cuggino.operators import on_loop
from cuggino.placement.dask import AttemptLost, DaskLink, Placed, PlaceGone, RemoteFailed
from cuggino.placement.dask.task import ABSENT
from cuggino.placement.seen import workers_seen
from tests.limits import LIMIT
from tests.placement.dask.cluster import ROOT, Cluster
from tests.placement.dask.watching import (
    TASKS,
    all_gone,
    any_alive,
    begun,
    begun_agent,
    listed,
    queues,
)
from tests.processes.subscribers import Recorder, eventually, wait_for


@contextmanager
def client(cluster: Cluster, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run another client; it is killed at the end at the latest."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.placement.dask.client", cluster.address, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def lines(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline().strip() for _ in range(count)]


@pytest.fixture
def detached(cluster: Cluster) -> Iterator[DaskLink]:
    with DaskLink(cluster.address, detach=True, timeout=LIMIT) as connected:
        yield connected


def attached(link: DaskLink, key: str) -> Placed:
    (placed,) = run(link.attach(key).pipe(ops.to_list())) or []
    return placed


def test_client_is_killed(cluster: Cluster, observer: Client) -> None:
    """The attempts of a dead client end on their workers, and leave nothing."""
    with client(cluster, "orphan", "agent", "") as process:
        (first,) = lines(process, 1)
        pids = [int(pid) for pid in first.split()]
        assert any_alive(pids)
    assert all_gone(pids)
    assert eventually(lambda: not queues(observer, "orphan"))


def test_detached_attempt_outlives_its_client(
    cluster: Cluster, detached: DaskLink, observer: Client
) -> None:
    """A new client receives every text that the dead one did not process, and the end.

    Those that it had processed but not acknowledged may come again.
    """
    with client(cluster, "detached-1", "tide", "0.005", "detach") as process:
        before = lines(process, 300)
        process.kill()
        assert process.stdout is not None
        before += process.stdout.read().split()  # what it printed until it was killed
    processed = len(before)
    placed = attached(detached, "detached-1")
    assert "detached-1" == placed.key
    texts = Recorder(detached.events(placed))
    assert eventually(lambda: len(texts.items) > 300)
    detached.tell(placed, "end")
    assert texts.wait().completed
    first = int(texts.items[0])
    assert [str(number) for number in range(processed)] == before
    assert [str(first + number) for number in range(len(texts.items))] == texts.items
    assert 0 < first <= processed
    assert [] == run(detached.attach("detached-1").pipe(ops.to_list()))
    assert eventually(lambda: not queues(observer, "detached-1"))


def test_texts_of_an_ended_attempt_are_kept(cluster: Cluster, detached: DaskLink) -> None:
    """An attempt that ends without a receiver keeps its texts and frees its place."""
    with DaskLink(cluster.address, detach=True, timeout=LIMIT) as link:
        before = Recorder(link.events(begun(link, "detached-2", "count", "50000")))
        before.wait_first()
    before.wait()  # for texts that were on their way
    placed = attached(detached, "detached-2")
    assert eventually(lambda: _runs_nothing(detached))
    texts = Recorder(detached.events(placed, after=len(before.items))).wait()
    assert texts.completed
    assert [str(number) for number in range(50000)] == before.items + texts.items


def test_detached_attempt_outlives_its_link(cluster: Cluster, detached: DaskLink) -> None:
    """Closing leaves it, and a new client can cancel what an earlier one has placed."""
    with DaskLink(cluster.address, detach=True, timeout=LIMIT) as link:
        _, texts, pids = begun_agent(link, "detached-3")
    assert "the connection to the cluster was closed" == str(texts.wait().error)
    placed = attached(detached, "detached-3")
    assert any_alive(pids)
    run(detached.cancel(placed))
    assert not any_alive(pids)
    assert eventually(lambda: not run(detached.attach("detached-3").pipe(ops.to_list())))


@pytest.mark.real_agent
def test_slow_subscriber_holds_a_detached_attempt(
    detached: DaskLink, observer: Client, tmp_path: Path
) -> None:
    """A client that is there but slow is not taken for one that is gone."""
    made, goes_on = tmp_path / "made", threading.Event()
    work = json.dumps({"file": str(made), "count": 20_000})
    placed = begun(detached, "detached-slow", "counted", work)
    received = Recorder(detached.events(placed), on_next=lambda _: wait_for(goes_on))
    assert eventually(lambda: (16, 16) in queues(observer, "detached-slow").values())
    assert not eventually(lambda: made.stat().st_size > 64 * (1 + 16 + 2) + 1, 3 * ABSENT)
    goes_on.set()
    assert [str(number) for number in range(20_000)] == received.wait().items


def test_two_clients_receive_one_attempt(cluster: Cluster, detached: DaskLink) -> None:
    """The later one receives the texts; the earlier one fails."""
    placed = begun(detached, "detached-5", "echo")
    earlier = Recorder(detached.events(placed))
    detached.tell(placed, "a")
    earlier.wait_first()
    with DaskLink(cluster.address, detach=True, timeout=LIMIT) as link:
        later = Recorder(link.events(attached(link, "detached-5")))
        earlier.wait()  # the order could overtake the later one's wish to receive
        link.tell(placed, "b")
        assert eventually(lambda: later.items[-1:] == ["b"])
        link.tell(placed, "end")
        assert later.wait().completed
    assert ["a"] == earlier.items
    assert isinstance(earlier.error, RemoteFailed)
    assert "another client receives the attempt detached-5" == earlier.error.message


def _runs_nothing(link: DaskLink) -> bool:
    return not any(worker.attempts for worker in run(link.workers()) or ())


# -- attempts whose worker or scheduler dies or cannot run them


OTHER_VERSION = """
import cuggino._version
cuggino._version.__version__ = "0.0.1"
"""
NO_CUGGINO = """
import sys
sys.modules["cuggino"] = None
"""


def started_with(folder: Path, code: str) -> Mapping[str, str]:
    """Return the environment of a Python that runs `code` first."""
    folder.mkdir()
    (folder / "usercustomize.py").write_text(code)
    (folder / "sitecustomize.py").write_text(code)
    return {"PYTHONPATH": f"{folder}:{Path(__file__).parents[3]}"}


def test_killed_worker(link: DaskLink, cluster: Cluster, tmp_path: Path) -> None:
    """Its attempts are lost at once, their processes end, and nothing is run again.

    The scheduler has Dask's own `allowed-failures`, 3, and another worker could run it.
    """
    runs = tmp_path / "runs"
    with ExitStack() as workers:
        victim = workers.enter_context(cluster.worker("victim", resources="mortal=1"))
        placed, texts, pids = begun_agent(link, "killed", str(runs), needs="mortal")
        workers.enter_context(cluster.worker("heir", resources="mortal=1"))
        assert eventually(lambda: "heir" in [each.name for each in run(link.workers()) or ()])
        gone = Recorder(link.gone(placed))
        victim.kill()
        expected = PlaceGone("killed", "victim", "worker", "the worker victim is gone")
        assert [expected] == gone.wait().items
        assert isinstance(texts.wait().error, AttemptLost)
        assert all_gone(pids)
        assert run(link.cancel(placed)) is None
    assert "begun\n" == runs.read_text()


def test_worker_without_the_function(link: DaskLink) -> None:
    with pytest.raises(ConfigError) as raised:
        run(link.place("nothing", "", f"{TASKS}:nothing", needs={"place": 1}))
    assert f"has no {TASKS}:nothing: module" in raised.value.message
    assert "install the same packages" in (raised.value.hint or "")


@pytest.mark.real_agent
def test_worker_with_another_version(link: DaskLink, cluster: Cluster, tmp_path: Path) -> None:
    env = started_with(tmp_path / "old", OTHER_VERSION)
    with cluster.worker("old", resources="old=1", env=env), pytest.raises(ConfigError) as raised:
        begun(link, "old", "echo", needs="old")
    assert raised.value.message.startswith("the worker old has cuggino 0.0.1, the client has ")


def test_worker_without_cuggino(link: DaskLink, cluster: Cluster, tmp_path: Path) -> None:
    env = started_with(tmp_path / "bare", NO_CUGGINO)
    with cluster.worker("bare", resources="bare=1", env=env), pytest.raises(ConfigError) as raised:
        begun(link, "bare", "echo", needs="bare")
    assert raised.value.message.startswith("the worker bare cannot run cuggino: ")


# -- the workers of a real scheduler, as the watch sees them


def test_workers_and_their_load(cluster: Cluster) -> None:
    """An attempt takes a place of its worker until it is over; a cluster may lack a dashboard."""
    with DaskLink(cluster.address, timeout=LIMIT) as link:
        seen = Recorder(on_loop(workers_seen(link, every=0.05)))
        assert eventually(lambda: bool(seen.items) and len(seen.items[-1].workers) == 3)
        joined = [name for event in seen.items for name in event.joined]
        assert ["w1", "w2", "w3"] == sorted(joined)
        last = seen.items[-1]
        assert (24, 24, "") == (last.places, last.free, last.dashboard)
        placed = begun(link, "seen", "echo")
        assert eventually(lambda: seen.items[-1].free == 23)
        (busy,) = [one for one in seen.items[-1].workers if one.busy]
        assert (placed.worker, 7, {"place": 1.0}) == (busy.name, busy.free, busy.used)
        link.tell(placed, "end")
        assert [] == listed(link, placed)[1:]
        assert eventually(lambda: seen.items[-1].free == 24)
        seen.subscription.dispose()
