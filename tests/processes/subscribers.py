"""A subscriber that waits and remembers, and looks at what processes are there."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from reactivex import Observable, abc

from cuggino.processes import GUARDIAN
from tests.limits import LIMIT
from tests.processes.enclosures import outside


class Recorder:
    """A subscriber that keeps everything it receives."""

    def __init__(
        self,
        stream: Observable[Any],
        *,
        on_next: Callable[[Any], None] | None = None,
        scheduler: abc.SchedulerBase | None = None,
    ) -> None:
        self.items: list[Any] = []
        self.threads: set[threading.Thread] = set()
        self.error: Exception | None = None
        self.completed = False
        self.first = threading.Event()
        self.ended = threading.Event()
        self._on_next = on_next
        self.subscription = stream.subscribe(
            self._next, self._error, self._completed, scheduler=scheduler
        )

    def _next(self, item: Any) -> None:
        self.threads.add(threading.current_thread())
        self.items.append(item)
        self.first.set()
        if self._on_next is not None:
            self._on_next(item)

    def _error(self, error: Exception) -> None:
        self.error = error
        self.ended.set()

    def _completed(self) -> None:
        self.completed = True
        self.ended.set()

    def wait(self, limit: float = LIMIT) -> Recorder:
        """Wait for the end of the stream."""
        assert self.ended.wait(limit), "the stream did not end"
        return self

    def wait_first(self) -> Any:
        """Wait for the first item."""
        assert self.first.wait(LIMIT), "the stream gave nothing"
        return self.items[0]


def python(code: str) -> list[str]:
    """The command line that runs `code` in a bare interpreter."""
    return [sys.executable, "-I", "-S", "-c", code]


def eventually(condition: Callable[[], bool], limit: float = LIMIT, *, every: float = 0.01) -> bool:
    """Return whether `condition` becomes true within `limit` seconds."""
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            return False
        threading.Event().wait(every)
    return True


def wait_for(event: threading.Event) -> None:
    """Block until `event` is set."""
    assert event.wait(LIMIT), "it was never let go"


def alive(pid: int) -> bool:
    """Return whether `pid`, an id in the test's enclosure, runs (a zombie does not)."""
    found = outside(pid)
    try:
        return found is not None and psutil.Process(found).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def exists(pid: int) -> bool:
    """Return whether `pid`, an id in the test's enclosure, runs or has not been reaped."""
    found = outside(pid)
    return found is not None and psutil.pid_exists(found)


_LISTS = Path("/proc/thread-self/children").exists()


def children() -> set[int]:
    """Children of this process, zombies included, without the guardian, which stays."""
    return {pid for pid in _child_pids() if not _is_guardian(pid)}


def _child_pids() -> list[int]:
    """Ask the kernel where it keeps a list, which takes no search through all processes."""
    pids: list[int] = []
    if not _LISTS:
        return [child.pid for child in psutil.Process().children()]
    for thread in os.listdir("/proc/self/task"):  # noqa: PTH208 (after each test)
        with suppress(OSError):  # a thread that has ended since
            file = os.open(f"/proc/self/task/{thread}/children", os.O_RDONLY)
            try:
                while read := os.read(file, 4096):
                    pids += map(int, read.split())
            finally:
                os.close(file)
    return pids


def words_of(process: psutil.Process) -> list[str]:
    """Return its command line; nothing if it has ended since it was found."""
    with suppress(psutil.Error):
        return process.cmdline()
    return []


def _is_guardian(pid: int) -> bool:
    try:
        return any(word.endswith("guardian.py") for word in psutil.Process(pid).cmdline())
    except psutil.Error:
        return False


def descriptors() -> set[int]:
    """The open descriptors of this process, the guardian's pipe among them, which stays."""
    GUARDIAN.cookie()
    return {number for number in range(1024) if _is_open(number)}


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
