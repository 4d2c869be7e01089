"""The standard input of a program that is written to while it runs."""

from __future__ import annotations

import os
import selectors
import threading
from contextlib import suppress
from typing import IO

from reactivex import abc
from reactivex.internal.exceptions import DisposedException

from cuggino.operators import LoopScheduler


class OpenInput:
    """The standard input of one process, which stays open for more until `end`.

    Data that does not fit into the pipe is written later, on the lane that reads the process. A
    process that starts after `close` has no input. Usable from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        self._left = bytearray()
        self._has_ended = False
        self._lane: LoopScheduler | None = None
        self._room: abc.DisposableBase | None = None
        """Waits on the lane for room in the pipe."""

    def take(self) -> IO[bytes]:
        """Return the end that the process reads, once."""
        end = self._untaken()
        if end < 0:
            return open(os.devnull, "rb")  # noqa: PTH123 - os.devnull is a name, not a place
        return os.fdopen(end, "rb", buffering=0)

    def add(self, data: bytes) -> None:
        """Write the data after everything before it; nothing after the end."""
        with self._lock:
            if self._has_ended or self._write_end < 0:
                return
            is_waiting = bool(self._left)
            self._left += data
            if not is_waiting:
                self._write()

    def end(self) -> None:
        """End the input after everything that was added, also before the process starts."""
        with self._lock:
            self._has_ended = True
            if not self._left:
                self._close_write_end()

    def close(self) -> None:
        """End the input now; idempotent."""
        with self._lock:
            self._left.clear()
            self._close_write_end()
            if (end := self._untaken()) >= 0:
                os.close(end)

    def write_on(self, lane: LoopScheduler) -> None:
        """Write on this lane what is left to write."""
        with self._lock:
            self._lane = lane
            self._write()

    def stop(self) -> None:
        """Write nothing more."""
        with self._lock:
            self._lane = None
            self._wait_no_longer()

    def _write(self) -> None:
        """Write as much as there is room for, and the rest later."""
        with self._lock:
            try:
                while self._left:
                    del self._left[: os.write(self._write_end, self._left)]
            except BlockingIOError:
                pass  # the pipe is full
            except BrokenPipeError:  # the process listens no longer
                self.close()
            if self._left:
                self._wait_for_room()
            else:
                self._wait_no_longer()
                if self._has_ended:
                    self._close_write_end()

    def _close_write_end(self) -> None:
        self.stop()
        end, self._write_end = self._write_end, -1
        if end >= 0:
            os.close(end)

    def _untaken(self) -> int:
        """Return the process's end to the first caller, -1 to all others."""
        with self._lock:
            end, self._read_end = self._read_end, -1
        return end

    def _wait_for_room(self) -> None:
        if self._room is None and self._lane is not None:
            with suppress(DisposedException):  # then the process is terminated
                self._room = self._lane.watch(self._write_end, selectors.EVENT_WRITE, self._write)

    def _wait_no_longer(self) -> None:
        room, self._room = self._room, None
        if room is not None:
            room.dispose()
