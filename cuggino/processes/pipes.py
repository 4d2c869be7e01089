"""The output pipes of a child."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import termios

from cuggino.processes.command import Child

CHUNK = 1 << 16
"""Bytes per read: more would be slower, as most reads find a line or two."""


class Pipes:
    """The standard output and standard error of `child`, and the end of the latter."""

    def __init__(self, child: Child, *, tail: int) -> None:
        self.stdout = child.stdout
        self.stderr = child.stderr
        self.open = set(child.pipes)
        self._owed = dict.fromkeys(child.pipes, 0)
        """Bytes in each pipe when the process ended: its own output, to be read."""
        self._limit = tail
        self._tail = bytearray()
        for fd in child.pipes:
            os.set_blocking(fd, False)

    def read(self, fd: int) -> bytes | None:
        """Read what is there; None if nothing is, and b"" at the end of the pipe."""
        try:
            chunk = os.read(fd, CHUNK)
        except BlockingIOError:
            return None
        self._owed[fd] -= len(chunk)
        if not chunk:
            self.open.discard(fd)
        elif fd == self.stderr:
            self._tail += chunk
            if len(self._tail) > 2 * self._limit + CHUNK:
                self._trim()
        return chunk

    def drain(self) -> None:
        """Read from both, and drop the output.

        Programs that write synchronously (node) cannot handle a signal while a pipe is full.
        """
        for fd in tuple(self.open):
            self.read(fd)

    def wait(self, seconds: float, *others: int) -> None:
        """Wait until there is something to read here, or from the other descriptors."""
        poll = select.poll()
        for fd in (*self.open, *others):
            poll.register(fd, select.POLLIN)
        poll.poll(seconds * 1000)

    def note_exit(self) -> None:
        """Remember how much of the output is the process's own."""
        self._owed = {fd: _pending(fd) for fd in self.open}

    def owes(self) -> bool:
        """Return whether some of the process's own output has not been read."""
        return any(self._owed.get(fd, 0) > 0 for fd in self.open)

    def tail(self) -> str:
        """Return the last part of standard error."""
        self._trim()
        return self._tail.decode(errors="replace")

    def _trim(self) -> None:
        del self._tail[: max(0, len(self._tail) - self._limit)]


def _pending(fd: int) -> int:
    """Return the number of bytes in a pipe."""
    size: int = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0"))[0]
    return size
