"""Runs the tests of a module also in an enclosure, where the ids of processes are others."""

from __future__ import annotations

import dataclasses
import functools
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from reactivex import Observable

from cuggino.processes import process
from cuggino.processes.command import Command
from cuggino.sandbox import Enclosure

MARK = "CUGGINO_TEST_ENCLOSURE"
"""The environment variable by which the processes of a test are found from outside."""

NAMESPACE = Enclosure(
    words=(
        *("bwrap", "--unshare-user", "--unshare-pid", "--cap-drop", "ALL", "--die-with-parent"),
        *("--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc", "--"),
    ),
    env={MARK: str(uuid.uuid4())},
    reports=True,
    namespace=True,
)
"""An enclosure that confines nothing and has a namespace of its own."""

LAUNCHER = Enclosure(words=("env", "--"), env=NAMESPACE.env)
"""An enclosure that becomes the program, like Landlock's."""


def hiding(*options: str | Path) -> Enclosure:
    """Return the namespace with further options."""
    words = (*NAMESPACE.words[:-1], *map(str, options), "--")
    return dataclasses.replace(NAMESPACE, words=words)


def marked() -> list[int]:
    """Return the processes in an enclosure that still run."""
    return [pid for pid, _ in _marked()]


def _marked() -> Iterator[tuple[int, str]]:
    mark = f"{MARK}={NAMESPACE.env[MARK]}".encode()
    for pid in psutil.pids():
        place = Path(f"/proc/{pid}")
        with suppress(OSError):
            if mark in (place / "environ").read_bytes():
                yield pid, (place / "status").read_text()


@functools.cache
def namespaces_work() -> bool:
    """Return whether bubblewrap is installed and may create namespaces."""
    if shutil.which("bwrap") is None:
        return False
    return subprocess.run([*NAMESPACE.words, "true"], capture_output=True).returncode == 0


def needs_namespaces() -> None:
    """Skip the test where there are none."""
    if not namespaces_work():
        pytest.skip("no namespaces here")


@pytest.fixture(params=[None, NAMESPACE], ids=["plain", "namespace"])
def enclosed(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Enclosure | None]:
    """Run every program of the test in the enclosure."""
    enclosure: Enclosure | None = request.param
    if enclosure is None:
        yield None
        return
    needs_namespaces()
    stream = process._stream

    def enclose(command: Command, **options: bool) -> Observable[Any]:
        return stream(dataclasses.replace(command, enclosure=enclosure), **options)

    monkeypatch.setattr(process, "_stream", enclose)
    with ids_of(enclosure):
        yield enclosure


plain_only = pytest.mark.parametrize("enclosed", [None], ids=["plain"], indirect=True)
"""Marks a test of what only processes without a namespace do."""


_inside: list[Enclosure] = []


@contextmanager
def ids_of(enclosure: Enclosure) -> Iterator[None]:
    """Take ids of processes for those of `enclosure`."""
    _inside.append(enclosure)
    yield
    _inside.remove(enclosure)


def outside(pid: int) -> int | None:
    """Return the id of a process whose id in an enclosure is `pid`; None if it has ended."""
    if not _inside:
        return pid
    return next((own for own, said in _marked() if f"NSpid:\t{own}\t{pid}\n" in said), None)
