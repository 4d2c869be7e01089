"""A cluster that the tests of a module share.

Its processes are children of the test process, where other tests count theirs: so it ends with the
module, and tests that need it run with the real programs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import Client

from cuggino.placement.dask import DaskLink
from tests.limits import LIMIT
from tests.placement.dask.cluster import Cluster, running_cluster

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if {"cluster", "one"} & {*getattr(item, "fixturenames", ())} and item.path.parent == FOLDER:
            item.add_marker(pytest.mark.real_agent)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three workers with four places each."""
    with running_cluster(tmp_path_factory.mktemp("cluster"), "w1", "w2", "w3") as running:
        yield running


@pytest.fixture
def link(cluster: Cluster) -> Iterator[DaskLink]:
    with DaskLink(cluster.address, timeout=LIMIT) as connected:
        yield connected


@pytest.fixture
def observer(cluster: Cluster) -> Iterator[Client]:
    """A client that only looks."""
    with Client(cluster.address, set_as_default=False) as client:
        yield client
