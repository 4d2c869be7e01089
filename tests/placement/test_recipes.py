"""The scripts of `cuggino help clusters`, against the libraries that they are for."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import psutil
import pytest

from cuggino.placement import RULES
from cuggino_cli.help import page
from tests.limits import LIMIT
from tests.ports import own_port
from tests.processes.subscribers import eventually

pytest.importorskip("distributed")

_RENDER = """
import json, runpy, signal, sys
import dask_jobqueue
signal.pause = lambda: None
dask_jobqueue.JobQueueCluster.scale = lambda cluster, jobs: print(f"jobs={jobs}")
found = runpy.run_path(sys.argv[1])
cluster = found["cluster"]
scheduler = cluster.scheduler
print(json.dumps({
    "script": cluster.job_script(),
    "address": cluster.scheduler_address,
    "failures": scheduler.allowed_failures,
    "ttl": scheduler.worker_ttl,
    "encrypted": cluster.security.require_encryption,
}))
cluster.close()
"""
"""Runs a script up to its end, without a queue, and prints what it would submit."""


def block(name: str) -> str:
    """Return the script of this name."""
    (found,) = re.findall(
        rf"^```\w+\n((?:#![^\n]*\n)?# {re.escape(name)}: .*?)^```$",
        page("clusters"),
        re.MULTILINE | re.DOTALL,
    )
    return str(found)


def certificate(home: Path) -> Path:
    """Make the certificate with the commands from the page; return its folder."""
    (found,) = re.findall(
        r"^```sh\n(mkdir -p ~/.local.*?)^```$", page("clusters"), re.MULTILINE | re.DOTALL
    )
    quicker = found.replace("rsa:4096", "rsa:2048")
    env = {**os.environ, "HOME": str(home)}
    ended = subprocess.run(["sh", "-ec", quicker], env=env, capture_output=True, check=False)
    assert 0 == ended.returncode, ended.stderr
    return home / ".local/state/cuggino/tls"


def options_of(kind: str, words: list[str]) -> dict[str, Any]:
    """Return the options of a `dask worker` or `dask scheduler`, as Dask reads them."""
    program = importlib.import_module(f"distributed.cli.dask_{kind}")
    return dict(program.main.make_context(f"dask {kind}", words).params)


def assert_works(options: dict[str, Any], folder: str) -> None:
    """Check what cuggino requires of a worker."""
    assert "0" == str(options["memory_limit"])
    assert "60" == options["death_timeout"]
    assert "claude=" in options["resources"]
    files = [options[f"tls_{name}"] for name in ("ca_file", "cert", "key")]
    assert [f"{folder}/cert.pem", f"{folder}/cert.pem", f"{folder}/key.pem"] == files


@pytest.mark.real_agent
@pytest.mark.parametrize(
    ("name", "directives"),
    [
        ("slurm.py", ["#SBATCH -p batch", "#SBATCH --cpus-per-task=4", "#SBATCH -t 24:00:00"]),
        ("pbs.py", ["#PBS -q workq", "#PBS -l select=1:ncpus=4:mem=16GB"]),
    ],
)
def test_queues(name: str, directives: list[str], tmp_path: Path) -> None:
    """The job that dask-jobqueue renders is a shell script with a worker of our rules."""
    if importlib.util.find_spec("dask_jobqueue") is None:  # importing it replaces a signal handler
        pytest.skip("dask-jobqueue is not installed")
    folder = certificate(tmp_path)
    script = tmp_path / name
    script.write_text(block(name).replace('"port": 8786', '"port": 0, "host": "127.0.0.1"'))
    ended = subprocess.run(
        [sys.executable, "-c", _RENDER, str(script)],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    assert 0 == ended.returncode, ended.stderr
    assert "jobs=8" in ended.stdout
    (line,) = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    found = json.loads(line)
    assert (0, 120, True) == (found["failures"], found["ttl"], found["encrypted"])
    assert found["address"].startswith("tls://127.0.0.1:")

    job = found["script"]
    assert subprocess.run(["bash", "-n"], input=job, text=True, check=False).returncode == 0
    assert set(directives) <= set(job.splitlines())
    command = shlex.split(job.strip().splitlines()[-1])
    assert ["-m", "distributed.cli.dask_worker", found["address"]] == command[1:4]
    options = options_of("worker", command[3:])
    assert_works(options, str(folder))
    assert (1, "tls://") == (options["nthreads"], options["protocol"])


def test_ssh_hosts_by_their_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script is valid, and its workers have our rules."""
    folder = certificate(tmp_path)
    monkeypatch.chdir(tmp_path)
    text = block("ssh.sh")
    assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0
    for name, value in RULES.items():
        assert f"export {name}={value}" in text.replace('"', "")
    (tls,) = re.findall(r'^tls="(.*)"$', text, re.MULTILINE)
    ((command,),) = [re.findall(r'"(\$dask worker .*?)"', text, re.DOTALL)]
    (keys,) = re.findall(r"^keys=(.*)$", text, re.MULTILINE)
    whole = command.replace("$tls", tls).replace("$keys", keys).replace("\\\n", " ")
    words = shlex.split(whole)
    assert_works(options_of("worker", words[2:]), str(folder))


@pytest.mark.real_agent
def test_ssh_hosts(tmp_path: Path) -> None:
    """The script starts a scheduler, a worker on each host, and ends all of them with itself."""
    folder = certificate(tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    ssh = programs / "ssh"
    ssh.write_text('#!/bin/sh\nshift 2\nexec sh -c "exec $*"\n')  # the host is this machine
    ssh.chmod(0o755)
    port = own_port()
    dask = Path(sys.executable).parent / "dask"
    text = block("ssh.sh").replace("8786", str(port))
    text = re.sub(r"^head=.*$", "head=127.0.0.1", text, flags=re.MULTILINE)
    text = re.sub(r"^dask=.*$", f"dask={dask}", text, flags=re.MULTILINE)
    script = tmp_path / "ssh.sh"
    script.write_text(text)
    process = subprocess.Popen(
        ["bash", str(script)],
        env={**os.environ, "HOME": str(tmp_path), "PATH": f"{programs}:{os.environ['PATH']}"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    started: list[psutil.Process] = []
    try:
        assert {"build1", "build2", "build3"} == _names(folder, port)
        started = psutil.Process(process.pid).children(recursive=True)
    finally:
        process.terminate()
        process.wait(LIMIT)
    assert eventually(lambda: not any(_is_at_work(one) for one in started))


def _names(folder: Path, port: int) -> set[str]:
    """Return the names of the workers, once there are three."""
    from distributed import Client

    from cuggino.config import ClusterSettings
    from cuggino.placement import cluster_address, security_of

    address = f"tls://127.0.0.1:{port}"
    settings = ClusterSettings(address=address, ca="cert.pem", cert="cert.pem", key="key.pem")
    cluster = cluster_address(settings, folder=folder)
    assert cluster is not None
    with Client(cluster.address, security=security_of(cluster), timeout=LIMIT) as client:
        client.wait_for_workers(3, timeout=LIMIT)
        return {
            worker["name"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()
        }


def _is_at_work(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.real_agent
def test_kubernetes(tmp_path: Path) -> None:
    """The manifest is one that the operator's own schema accepts, with our rules."""
    if importlib.util.find_spec("dask_kubernetes") is None:
        reason = "dask-kubernetes brings 180 MB: it is in the extra dev, which CI installs"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    import jsonschema

    script = tmp_path / "kubernetes_manifest.py"
    script.write_text(block(script.name))
    ended = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    assert 0 == ended.returncode, ended.stderr
    manifest = json.loads(ended.stdout)

    files = distribution("dask-kubernetes").files or []
    (crd,) = [
        one for one in files if str(one).endswith("dask-kubernetes-operator/crds/daskcluster.yaml")
    ]
    declared = importlib.import_module("yaml").safe_load(crd.read_text())
    (version,) = declared["spec"]["versions"]
    jsonschema.validate(manifest, version["schema"]["openAPIV3Schema"])
    assert f"{declared['spec']['group']}/{version['name']}" == manifest["apiVersion"]
    assert declared["spec"]["names"]["kind"] == manifest["kind"]

    parts = {part: manifest["spec"][part]["spec"] for part in ("scheduler", "worker")}
    for pod in parts.values():
        given = {one["name"]: one["value"] for one in pod["containers"][0]["env"]}
        assert given.items() >= RULES.items()
        (mount,) = pod["containers"][0]["volumeMounts"]
        assert [mount["name"]] == [one["name"] for one in pod["volumes"]]
    folder = certificate(tmp_path)
    found = {
        part: [word.replace("/tls/", f"{folder}/") for word in pod["containers"][0]["args"]]
        for part, pod in parts.items()
    }
    words = found["worker"]
    assert ["dask", "worker", "tls://cuggino-scheduler.default.svc.cluster.local:8786"] == words[:3]
    assert_works(options_of("worker", words[2:]), str(folder))
    options = options_of("scheduler", found["scheduler"][2:])
    assert ("tls", str(folder / "key.pem")) == (options["protocol"], options["tls_key"])
