"""A Dask cluster on loopback: a scheduler and workers, each with its own home and folder."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

import cuggino
from tests.limits import LIMIT
from tests.processes.subscribers import eventually

_PRCTL = getattr(ctypes.CDLL(None), "prctl", None)
ROOT = Path(cuggino.__file__).parent.parent


class Cluster:
    """The processes of a cluster; `close` ends each of them by its id."""

    def __init__(
        self, folder: Path, *, options: Sequence[str] = (), config: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self._options = tuple(options)
        self._config = dict(config or {})
        self._processes: list[subprocess.Popen[bytes]] = []
        file = folder / "scheduler.json"
        program = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show")
        self.scheduler = self._start(
            "scheduler", *program, "--scheduler-file", str(file), *self._options
        )
        assert eventually(lambda: _is_written(file), LIMIT), self.log("scheduler")
        self.address = str(json.loads(file.read_text())["address"])

    def add_worker(
        self,
        name: str,
        *,
        resources: str = "place=4 alone=1",
        threads: int = 8,
        nanny: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a worker, without waiting for it."""
        return self._start(
            "worker",
            *(self.address, "--name", name, "--host", "127.0.0.1", "--resources", resources),
            *("--nthreads", str(threads), "--memory-limit", "0", "--no-dashboard"),
            *("--nanny" if nanny else "--no-nanny", "--death-timeout", "60"),
            *self._options,
            name=name,
            env=env,
        )

    @contextmanager
    def worker(
        self, name: str, *, resources: str, env: Mapping[str, str] | None = None
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Run another worker meanwhile."""
        process = self.add_worker(name, resources=resources, env=env)
        try:
            yield process
        finally:
            self.end(process)

    def at_work(self, worker: str = "") -> list[str]:
        """Return the processes that agents of a worker run."""
        found = []
        for process in psutil.process_iter():
            try:
                home = process.environ().get("HOME", "")
                command = " ".join(process.cmdline())
            except (psutil.Error, OSError):
                continue
            is_its = home.startswith(str(self.folder / worker))
            if is_its and "distributed.cli" not in command and "guardian.py" not in command:
                found.append(command[:100])
        return found

    def log(self, name: str) -> str:
        """Return the last lines that a process has printed."""
        return (self.folder / f"{name}.log").read_text(errors="replace")[-4000:]

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a process of the cluster and its children."""
        with contextlib.suppress(psutil.NoSuchProcess):
            for each in [*psutil.Process(process.pid).children(recursive=True)]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()
        process.kill()
        process.wait()

    def kill_scheduler(self) -> None:
        self.end(self._processes[0])

    def close(self) -> None:
        for process in reversed(self._processes):
            self.end(process)

    def _start(
        self, kind: str, *options: str, name: str = "", env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        name = name or kind
        home = self.folder / name
        home.mkdir(exist_ok=True)
        local = ("--local-directory", str(home / "local")) if kind == "worker" else ()
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options, *local],
                cwd=home,
                env={
                    **os.environ,
                    "HOME": str(home),
                    "PYTHONPATH": str(ROOT),
                    **self._config,
                    **(env or {}),
                },
                stdin=subprocess.DEVNULL,
                preexec_fn=_die_with_parent,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._processes.append(process)
        return process


@contextmanager
def running_cluster(
    folder: Path,
    *names: str,
    nanny: bool = False,
    config: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
) -> Iterator[Cluster]:
    """Run a cluster with these workers, which take up attempts as they come up."""
    cluster = Cluster(folder, config=config, options=options)
    try:
        for name in names:
            cluster.add_worker(name, nanny=nanny)
        yield cluster
    finally:
        cluster.close()


def _is_written(file: Path) -> bool:
    try:
        return bool(json.loads(file.read_text()))
    except (OSError, ValueError):
        return False


def _die_with_parent() -> None:
    """Be killed also where the tests were."""
    if _PRCTL:
        _PRCTL(1, signal.SIGKILL)
