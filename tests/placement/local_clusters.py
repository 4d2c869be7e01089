"""`cuggino cluster up` as a separate process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.limits import LIMIT


@contextmanager
def cluster_up(state: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Run it within the block, once it is announced; `state` is the user's state folder."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cuggino_cli", "cluster", "up", *options],
        env={**os.environ, "XDG_STATE_HOME": str(state)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert "runs at tls://127.0.0.1:" in process.stdout.readline()
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=LIMIT)


def programs(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Return the processes that it has started."""
    return psutil.Process(process.pid).children(recursive=True)


def at_work(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Return the processes that have not ended; an ended one may still be a zombie."""
    return [one for one in processes if _is_at_work(one)]


def _is_at_work(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
