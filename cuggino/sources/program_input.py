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


class InputPipe:
    """The standard input of one process, written to while it runs.

    Closing it ends the process's input; a process that starts after that has none. One thread at
    a time may use it, while another starts the process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)

    def fileno(self) -> int:
        """Return the descriptor to poll for writing; -1 when it is closed."""
        return self._write_end

    def send(self, data: bytes | bytearray | memoryview) -> int:
        """Write as much as there is room for; return the number of bytes, perhaps 0.

        Raises:
            BrokenPipeError: the process has ended or closed its input, or this was closed.
        """
        if self._write_end < 0:
            raise BrokenPipeError("the input is closed")
        try:
            return os.write(self._write_end, data)
        except BlockingIOError:
            return 0

    def close(self) -> None:
        """End the input; idempotent."""
        write_end, self._write_end = self._write_end, -1
        for end in (write_end, self._untaken()):
            if end >= 0:
                os.close(end)

    def take(self) -> IO[bytes]:
        """Return the end that the process reads, once."""
        end = self._untaken()
        if end < 0:
            return open(os.devnull, "rb")  # noqa: PTH123 - os.devnull is a name, not a place
        return os.fdopen(end, "rb", buffering=0)

    def _untaken(self) -> int:
        """Return the process's end to the first caller, -1 to all others."""
        with self._lock:
            end, self._read_end = self._read_end, -1
        return end


class OpenInput(InputPipe):
    """The standard input of one process, which stays open for more until `end`.

    Data that does not fit into the pipe is written later, on the lane that reads the process.
    Usable from any thread.
    """

    def __init__(self) -> None:
        super().__init__()
        self._writing = threading.RLock()
        self._left = bytearray()
        self._has_ended = False
        self._lane: LoopScheduler | None = None
        self._room: abc.DisposableBase | None = None
        """Waits on the lane for room in the pipe."""

    def add(self, data: bytes) -> None:
        """Write the data after everything before it; nothing after the end."""
        with self._writing:
            if self._has_ended or self._write_end < 0:
                return
            is_waiting = bool(self._left)
            self._left += data
            if not is_waiting:
                self._write()

    def end(self) -> None:
        """End the input after everything that was added."""
        with self._writing:
            self._has_ended = True
            if not self._left:
                self.close()

    def close(self) -> None:
        """End the input now; idempotent."""
        with self._writing:
            self._left.clear()
            self.stop()
            super().close()

    def write_on(self, lane: LoopScheduler) -> None:
        """Write on this lane what is left to write."""
        with self._writing:
            self._lane = lane
            self._write()

    def stop(self) -> None:
        """Write nothing more."""
        with self._writing:
            self._lane = None
            self._wait_no_longer()

    def _write(self) -> None:
        """Write as much as there is room for, and the rest later."""
        with self._writing:
            try:
                while self._left and (sent := self.send(self._left)):
                    del self._left[:sent]
            except BrokenPipeError:  # the process listens no longer
                self.close()
            if self._left:
                self._wait_for_room()
            else:
                self._wait_no_longer()
                if self._has_ended:
                    self.close()

    def _wait_for_room(self) -> None:
        if self._room is None and self._lane is not None:
            with suppress(DisposedException):  # then the process is terminated
                self._room = self._lane.watch(self._write_end, selectors.EVENT_WRITE, self._write)

    def _wait_no_longer(self) -> None:
        room, self._room = self._room, None
        if room is not None:
            room.dispose()
