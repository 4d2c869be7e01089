"""A run on a cluster that has ended early, and is resumed."""

from __future__ import annotations

from tests.endurance.place import Place, until
from tests.placement.dask.cluster import Cluster


def resume_to_the_end(place: Place, cluster: Cluster, *options: str) -> None:
    """Resume the run. No agent is left on a worker before, unless it was detached, nor after."""
    if "--detach" not in options:
        assert until(lambda: not cluster.at_work()), cluster.at_work()
    with place.start("run", "--resume", *options) as run:
        assert 0 == run.wait(), run.errors
    assert until(lambda: not cluster.at_work()), cluster.at_work()
