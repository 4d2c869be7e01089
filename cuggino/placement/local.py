"""A cluster on this machine for trials: a scheduler and workers on loopback, with TLS."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from reactivex import Observable, defer, operators as ops, throw

from cuggino.errors import ConfigError, ProcessFailed, install_extra
from cuggino.files import read_json_object, render_json, storing, write_atomic
from cuggino.operators import acquire_release
from cuggino.operators.mapcat import mapcat
from cuggino.operators.merge_now import merge_now
from cuggino.placement.address import (
    LOCAL,
    STATE_FILE,
    TlsFiles,
    is_running,
    load_distributed,
    local_state,
)
from cuggino.processes import process_lines

MOST_WORKERS = 64
RULES: Mapping[str, str] = {
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "2 minutes",
}
"""The environment of every scheduler that cuggino uses.

Dask would run the attempt of a worker that died again, from its beginning; cuggino resumes it. A
worker that has not reported for this long is given up.
"""
WORKER_RULES: Sequence[str] = ("--memory-limit", "0", "--death-timeout", "60")
"""The options of every worker that cuggino uses: Dask would end it for the memory that agents use.
"""

_QUIET = {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True", "DASK_LOGGING__DISTRIBUTED": "info"}
_REGISTERED = re.compile(rb"Registered to:\s+(\S+)")
_DASHBOARD = re.compile(rb"dashboard at:\s+(http\S+)")
_LOOPBACK = "127.0.0.1"


class LocalCluster(NamedTuple):
    """A local cluster that all of its workers have joined."""

    address: str
    workers: int
    tls: TlsFiles
    dashboard: str = ""
    """The address of Dask's own page; empty if the package bokeh is not installed."""


def local_cluster(
    *,
    workers: int = 2,
    resources: Mapping[str, float] | None = None,
    env: Mapping[str, str] | None = None,
) -> Observable[LocalCluster]:
    """Run a scheduler and its workers until the stream is disposed; emits once all have joined.

    Each worker works on one item at a time, and offers these `resources`. It listens on loopback,
    only for holders of the certificate, which is in the user's state folder while the cluster runs:
    `cluster_address` finds it under the name `local`. A worker that dies is restarted.

    Errors: `ConfigError` if the extra `cluster` is missing or this user runs one already;
    `ProcessFailed` if the scheduler ends.
    """
    given = dict(os.environ if env is None else env)

    def acquire() -> _Files:
        return _prepare(given, workers)

    def use(files: _Files) -> Observable[LocalCluster]:
        return _running(files, workers, resources or {}, given)

    return acquire_release(acquire, use, _Files.remove)


def resources_text(resources: Mapping[str, float]) -> str:
    """Return resources in the format of `dask worker --resources`."""
    return " ".join(f"{name}={amount:g}" for name, amount in resources.items())


class _Files(NamedTuple):
    place: Path
    tls: TlsFiles
    scratch: Path

    @property
    def scheduler_file(self) -> Path:
        return self.scratch / "scheduler.json"

    def announce(self, address: str) -> None:
        files = {name: path.name for name, path in self.tls._asdict().items()}
        content = {"address": address, "process": os.getpid(), **files}
        with storing("announce the cluster", self.place / STATE_FILE):
            write_atomic(self.place / STATE_FILE, render_json(content), private=True)

    def remove(self) -> None:
        for path in (self.place / STATE_FILE, self.tls.cert, self.tls.key):
            with suppress(OSError):
                path.unlink(missing_ok=True)
        shutil.rmtree(self.scratch, ignore_errors=True)


def _prepare(env: Mapping[str, str], workers: int) -> _Files:
    """Write the certificate and its key."""
    if not 1 <= workers <= MOST_WORKERS:
        raise ConfigError(f"a local cluster has 1 to {MOST_WORKERS} workers, not {workers}")
    distributed = load_distributed()
    if importlib.util.find_spec("cryptography") is None:
        raise ConfigError(
            "the certificate of a cluster needs the package cryptography",
            hint=install_extra("cluster"),
        )
    place = local_state(env)
    if (process := _running_process(place)) is not None:
        raise ConfigError(
            f"a local cluster of yours runs already, by process {process}",
            hint="use it with --cluster local, or end it with Ctrl-C in its terminal",
        )
    certificate = distributed.Security.temporary()
    tls = TlsFiles(place / "cert.pem", place / "cert.pem", place / "key.pem")
    with storing("write the certificate", place):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(tls.cert, certificate.tls_ca_file, private=True)
        write_atomic(tls.key, certificate.tls_scheduler_key, private=True)
        scratch = Path(tempfile.mkdtemp(prefix="cuggino-cluster-"))
    return _Files(place, tls, scratch)


def _running_process(place: Path) -> int | None:
    """Return the process of the user's running cluster, if any."""
    with suppress(OSError, ValueError):
        match read_json_object(place / STATE_FILE):
            case {"process": int(process)} if is_running(process):
                return process
            case _:
                return None
    return None


def _running(
    files: _Files, workers: int, resources: Mapping[str, float], env: Mapping[str, str]
) -> Observable[LocalCluster]:
    seen = _Seen(files, workers)
    commands = {
        "dask_worker": _worker_options(files, workers, resources),
        "dask_scheduler": _scheduler_options(files),
    }
    # The workers first: a disposal ends them in this order.
    return merge_now(*(_program(name, it, seen, files, env) for name, it in commands.items()))


def _program(
    name: str, options: Sequence[str], seen: _Seen, files: _Files, env: Mapping[str, str]
) -> Observable[LocalCluster]:
    # -P: the current folder must not provide modules.
    argv = [sys.executable, "-P", "-m", f"distributed.cli.{name}", *options]
    lines = process_lines(
        argv, cwd=files.scratch, env={**env, **RULES, **_QUIET}, merge_stderr=True
    )

    def ended(error: Exception, _source: object) -> Observable[Any]:
        code = error.child_exit_code if isinstance(error, ProcessFailed) else None
        return throw(error if code is None else ProcessFailed(name, code, seen.last))

    def announced(line: bytes) -> Iterator[LocalCluster]:
        if (cluster := seen.line(line)) is not None:
            files.announce(cluster.address)
            yield cluster

    return lines.pipe(
        ops.catch(ended),
        ops.concat(defer(lambda _: throw(ProcessFailed(name, 0, seen.last)))),
        mapcat(announced),
    )


def _scheduler_options(files: _Files) -> list[str]:
    has_page = importlib.util.find_spec("bokeh") is not None
    return [
        *("--protocol", "tls", "--host", _LOOPBACK, "--port", "0", *_tls_options(files.tls)),
        *("--scheduler-file", str(files.scheduler_file)),
        *(("--dashboard-address", f"{_LOOPBACK}:0") if has_page else ("--no-dashboard",)),
    ]


def _worker_options(files: _Files, workers: int, resources: Mapping[str, float]) -> list[str]:
    offered = resources_text(resources)
    return [
        *("--protocol", "tls", "--host", _LOOPBACK, *_tls_options(files.tls)),
        *("--scheduler-file", str(files.scheduler_file), "--no-dashboard"),
        *("--nworkers", str(workers), "--nthreads", "1", "--name", LOCAL, *WORKER_RULES),
        *("--local-directory", str(files.scratch), *(("--resources", offered) if offered else ())),
    ]


def _tls_options(tls: TlsFiles) -> list[str]:
    files = {"--tls-ca-file": tls.ca, "--tls-cert": tls.cert, "--tls-key": tls.key}
    return [word for option, path in files.items() for word in (option, str(path))]


class _Seen:
    """The output of the programs, which completes the cluster's values."""

    def __init__(self, files: _Files, workers: int) -> None:
        self._files = files
        self._workers = workers
        self._joined = 0
        self._dashboard = ""
        self.last = ""

    def line(self, line: bytes) -> LocalCluster | None:
        """Read a line; return the cluster if the line completes it."""
        self.last = line.decode("utf-8", "replace")
        if found := _DASHBOARD.search(line):
            self._dashboard = found[1].decode("utf-8", "replace")
        found = _REGISTERED.search(line)
        self._joined += found is not None
        if found is None or self._joined != self._workers:
            return None
        address = found[1].decode("utf-8", "replace")
        return LocalCluster(address, self._workers, self._files.tls, self._dashboard)
