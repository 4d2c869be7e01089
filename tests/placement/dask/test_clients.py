"""Attempts whose client dies, and how another client receives them."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from distributed import Client
from reactivex import operators as ops

from cuggino import run
from cuggino.placement.dask import DaskLink, Placed, RemoteFailed
from cuggino.placement.dask.task import ABSENT
from tests.limits import LIMIT
from tests.placement.dask.cluster import ROOT, Cluster
from tests.placement.dask.watching import all_gone, any_alive, begun, begun_agent, queues
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
