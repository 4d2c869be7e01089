"""The workers of a real scheduler, as the watch sees them."""

from __future__ import annotations

from cuggino.operators import on_loop
from cuggino.placement.dask import DaskLink
from cuggino.placement.seen import workers_seen
from tests.limits import LIMIT
from tests.placement.dask.cluster import Cluster
from tests.placement.dask.watching import begun, listed
from tests.processes.subscribers import Recorder, eventually


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
