"""Attempts whose worker or scheduler dies or cannot run them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from cuggino import run
from cuggino.errors import ConfigError
from cuggino.placement.dask import AttemptLost, DaskLink, PlaceGone
from tests.placement.dask.cluster import Cluster
from tests.placement.dask.watching import TASKS, all_gone, begun, begun_agent
from tests.processes.subscribers import Recorder, eventually

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
