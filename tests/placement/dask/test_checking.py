"""The check of a cluster: what each worker has and lacks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

from cuggino import run
from cuggino._version import __version__
from cuggino.config import Config, parse_config
from cuggino.errors import ConfigError
from cuggino.placement import ClusterAddress, MachineCheck, check_cluster, checking
from cuggino_cli.main import main
from tests.cli.test_doctor import fake_claude
from tests.git_project import isolate_git
from tests.placement.dask.cluster import Cluster, running_cluster


def git(folder: Path, *words: str) -> None:
    """Run git in the folder."""
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with one worker."""
    with running_cluster(tmp_path_factory.mktemp("one"), "w1") as running:
        joined(running, 1)
        yield running


def joined(cluster: Cluster, workers: int) -> None:
    """Wait until this many workers have joined."""
    with Client(cluster.address, set_as_default=False) as client:
        client.wait_for_workers(workers)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a shared remote."""
    isolate_git(monkeypatch, tmp_path / "home")
    folder = tmp_path / "shop"
    folder.mkdir()
    git(tmp_path, "init", "-q", "--bare", "shared.git")
    git(folder, "init", "-q")
    git(folder, "remote", "add", "origin", "../shared.git")
    monkeypatch.chdir(folder)
    return folder


def checked(cluster: Cluster, folder: Path, config: Config, **options: Any) -> list[MachineCheck]:
    """Return the results of the scheduler and of each worker."""
    found: list[MachineCheck] = []
    address = ClusterAddress(address=cluster.address)
    run(check_cluster(address, folder=folder, config=config, **options), found.append)
    return found


def told(machine: MachineCheck, status: str = "problem") -> list[str]:
    """Return what the results with this status say."""
    return [result.what for result in machine.results if result.status == status]


def test_workers_that_can_work(one: Cluster, project: Path) -> None:
    """Each worker reports version, agent, remote, sandbox, disk and resources."""
    config = parse_config({"agentPath": fake_claude(project.parent, "9.9.9"), "sandbox": "off"})
    scheduler, worker = checked(one, project, config)
    assert ("scheduler", "w1") == (scheduler.name, worker.name)
    assert one.address == scheduler.address
    said = "\n".join(told(worker, "ok"))
    assert f"cuggino {__version__}, Python 3." in said
    assert "agent: claude 9.9.9" in said
    assert f"remote: git reads {project.parent}/shared.git and may push to it" in said
    assert "GB free in " in said
    assert "takes 8 items at once, offers place=4, alone=1" in said
    assert {"place": 4, "alone": 1} == worker.resources
    refs = project.parent / "shared.git/refs"
    assert [] == [path for path in refs.rglob("*") if path.is_file()]


def test_command(one: Cluster, project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The command prints each machine, and exits with 1 if one cannot work."""
    git(project, "remote", "set-url", "origin", str(project / "nowhere.git"))
    (project / ".cuggino.json").write_text(json.dumps({"cluster": one.address}))
    assert 1 == main(["cluster", "check", "--json"])
    scheduler, worker = map(json.loads, capfd.readouterr().out.splitlines())
    assert ("scheduler", "w1", False) == (scheduler["name"], worker["name"], worker["works"])
    problems = [one["what"] for one in worker["results"] if one["status"] == "problem"]
    assert any("claude was not found" in what for what in problems)
    assert any(f"git cannot read {project}/nowhere.git: " in what for what in problems)


def test_other_versions() -> None:
    """All need the same version."""
    found = checking._version({"cuggino": "0.0.1", "python": "3.11.7"})
    assert ("problem", f"cuggino 0.0.1, but {__version__} here") == (found.status, found.what)


@pytest.mark.real_agent
def test_worker_that_does_not_answer(tmp_path: Path, project: Path) -> None:
    """A stopped worker and one without cuggino are problems, and so are Dask's defaults."""
    place = tmp_path / "cluster"
    place.mkdir()
    with running_cluster(place) as cluster:
        stopped = cluster.add_worker("stopped", resources="claude=1")
        working = cluster.add_worker("working", resources="claude=1 codex=1")
        shadow = tmp_path / "without" / "cuggino"
        shadow.mkdir(parents=True)
        (shadow / "__init__.py").touch()
        cluster.add_worker("a bare one", env={"PYTHONPATH": str(shadow.parent)})
        config = parse_config({"agent": "claude", "agents": {"reviewing": "codex"}})
        joined(cluster, 3)
        os.kill(stopped.pid, signal.SIGSTOP)
        try:
            scheduler, bare, first, second = checked(cluster, project, config, seconds=30)
        finally:
            os.kill(stopped.pid, signal.SIGCONT)
            assert working.poll() is None
    assert "allowed-failures is 3" in told(scheduler)[0]
    assert "cuggino does not run there: ModuleNotFoundError" in told(bare)[0]
    assert "no answer within 30 s" in told(first)
    assert ["takes no item that needs codex, which other workers offer"] == told(first, "note")
    assert any("codex was not found" in what for what in told(second))


@pytest.mark.real_agent
def test_no_workers(tmp_path: Path, project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A cluster without workers cannot work, nor can a project without a remote."""
    git(project, "remote", "remove", "origin")
    with running_cluster(tmp_path) as cluster:
        assert 1 == main(["cluster", "check", cluster.address])
    said = capfd.readouterr().out
    assert said.startswith(f"scheduler  {cluster.address}\nok       cuggino {__version__}, Python")
    assert "\nproblem  the cluster has no workers\n         start workers: " in said
    assert "\nproblem  there is no remote origin" in said


def test_no_scheduler(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler that is not there is one error."""
    monkeypatch.setattr(checking, "_CONNECT_SECONDS", 0.2)
    address = ClusterAddress(address="tcp://127.0.0.1:1")
    with pytest.raises(ConfigError, match="cannot connect to the scheduler at tcp://127"):
        run(check_cluster(address, folder=project, config=Config()))
