"""Threads that read processes, one process at a time, and are kept for later ones."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

IDLE_READER = "cuggino-idle-reader"
"""The name of a thread without work; while it works, it has the name of the work."""

_KEPT = 2
"""Maximum number of idle threads. Starting a thread takes as much CPU as starting a process."""


class ReaderThreads:
    """A pool of daemon threads that grows as needed and keeps a few idle ones."""

    def __init__(self) -> None:
        self._hooked = False
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Reader] = []

    def run(self, work: Callable[[], None], *, name: str) -> threading.Thread:
        """Run `work` in a thread with this name; return the thread.

        Raises:
            RuntimeError: no thread can be started.
        """
        with self._lock:
            if not self._hooked:
                self._hooked = True
                os.register_at_fork(after_in_child=self._reset)  # a copy has no threads
            reader = self._idle.pop() if self._idle else None
        is_new = reader is None
        if reader is None:
            reader = _Reader(self._keep)
        reader.thread.name = name
        reader.work.put(work)
        if is_new:
            reader.thread.start()
        return reader.thread

    def _keep(self, reader: _Reader) -> bool:
        """Keep the thread as an idle one; return False if there are enough."""
        with self._lock:
            is_kept = len(self._idle) < _KEPT
            if is_kept:
                reader.thread.name = IDLE_READER
                self._idle.append(reader)
        return is_kept


class _Reader:
    def __init__(self, keep: Callable[[_Reader], bool]) -> None:
        self.work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self._keep = keep

    def _run(self) -> None:
        while True:
            self.work.get()()
            if not self._keep(self):
                return


READERS = ReaderThreads()
"""The threads of this process."""
