"""The reader thread of a process: starts it, reads its pipes, terminates its tree.

It waits only in one poll over stdout, stderr, a wake pipe and the process itself, so that it
notices disposal at once and keeps reading while the process is being terminated.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import termios
import time
from errno import EPERM
from typing import Protocol

from cuggino.errors import LineTooLong, ProcessFailed, SpawnFailed
from cuggino.sources.command import PIPE_SIZE, Child, Command
from cuggino.sources.namespace import NotStarted

CHUNK = 1 << 16
"""Bytes per read of anything but standard output."""

DRAIN = 1.0
"""Seconds that other processes may hold the pipes open after the process has ended."""

LEFTOVER_GRACE = 0.5
"""Seconds after SIGTERM for processes left behind by one that exited without being stopped."""

TICK = 0.05
"""Seconds between two checks of a process that cannot be polled (no pidfd: macOS)."""

FIRST_TICK = 0.0005
"""Seconds before the first check after the pipes have ended; doubled up to TICK."""


class Port(Protocol):
    """The subscription as its reader sees it; safe to call from the thread."""

    wake_fd: int
    """Becomes readable when `cancelled` or `has_room` has changed."""

    @property
    def cancelled(self) -> bool:
        """True when the subscription has ended."""

    def has_room(self) -> bool:
        """Return whether another chunk may be posted; if not, a wake-up follows when it may."""

    def post(self, lines: list[bytes]) -> None:
        """Send `lines` to the subscriber."""


class ProcessReader:
    """One run of `command`, from start to reaped."""

    def __init__(self, command: Command, port: Port) -> None:
        self._command = command
        self._port = port

    def run(self) -> Exception | None:
        """Run it to its end; return the error, None for exit code 0 and for disposal."""
        if self._port.cancelled:
            return None
        try:
            reading = _Reading(self._command, self._command.spawn(), self._port)
        except Exception as error:
            return error
        return reading.run()


class _Reading:
    def __init__(self, command: Command, child: Child, port: Port) -> None:
        self._command = command
        self._child = child
        self._port = port
        self._splitter = (
            Gatherer()
            if command.whole
            else LineSplitter(command.max_line, keep_ends=command.keep_ends)
        )
        self._tail = bytearray()
        self._exited_at: float | None = None
        self._tick = FIRST_TICK
        self._open = {fd for fd in (child.stdout, child.stderr) if fd is not None}
        self._owed = dict.fromkeys(self._open, 0)
        """Bytes in each pipe when the process ended: its own output, to be read."""

    def run(self) -> Exception | None:
        failure: Exception | None = None
        finished = False
        try:
            finished = self._read()
            if self._splitter.overflow:
                failure = LineTooLong(self._command.argv0, self._command.max_line)
        except Exception as error:  # the tree must not survive a defect here
            failure = error
        try:
            self._end_tree(finished)
        except Exception as error:
            failure = failure or error
        try:
            code = self._child.close()
        except NotStarted:
            if failure is None and finished:
                failure = SpawnFailed(self._command.argv0, self._refusal())
        if failure is not None or not finished:
            return failure
        if rest := self._splitter.rest():
            self._port.post(rest)
        if code == 0:
            return None
        self._trim_tail()
        return ProcessFailed(
            self._command.argv0,
            -signal.SIGKILL if code is None else code,
            self._tail.decode(errors="replace"),
        )

    def _refusal(self) -> OSError:
        """Return the reason for which the enclosure did not start the program."""
        self._trim_tail()
        last = self._tail.decode(errors="replace").strip().rpartition("\n")[2]
        return OSError(EPERM, last or "the sandbox could not be set up")

    def _end_tree(self, finished: bool) -> None:
        grace = self._command.grace
        if not finished:
            self._child.end(((signal.SIGINT, grace), (signal.SIGTERM, grace)), self._drain)
        elif self._command.sweep or self._command.namespace is not None:
            self._child.end(((signal.SIGTERM, min(grace, LEFTOVER_GRACE)),), self._drain)

    def _read(self) -> bool:
        """Post lines until the process has ended and its pipes are empty; False if cut short."""
        while self._open or self._exited_at is None:
            if self._port.cancelled:
                return False
            has_room = self._port.has_room()
            ready = self._poll(self._timeout(), stdout=has_room)
            if self._port.wake_fd in ready:
                os.read(self._port.wake_fd, CHUNK)
            if self._command.waiting is not None and self._input_fd() in ready:
                self._command.waiting.write()
            if self._exited_at is None and self._ended(ready):
                self._exited_at = time.monotonic()
                self._owed = {fd: _pending(fd) for fd in self._open}
            if self._child.stderr in ready:
                self._read_stderr(self._child.stderr)
            if self._child.stdout in ready and (chunk := self._take(self._child.stdout)):
                if lines := self._splitter.feed(chunk):
                    self._port.post(lines)
                if self._splitter.overflow:
                    return False
            if self._drained():
                return True
        return True

    def _ended(self, ready: set[int]) -> bool:
        if self._child.pidfd is not None:
            return self._child.pidfd in ready
        return self._child.exited()

    def _timeout(self) -> float | None:
        if self._exited_at is not None:
            left = self._exited_at + DRAIN - time.monotonic()
            return left if left > 0 else None  # then it waits for room
        if self._child.pidfd is not None:
            return None
        if self._open:
            return TICK
        self._tick = min(self._tick * 2, TICK)  # without output the end is near
        return self._tick

    def _drained(self) -> bool:
        """Return whether the process has ended, its output is read, and the drain time is over."""
        return (
            self._exited_at is not None
            and time.monotonic() >= self._exited_at + DRAIN
            and all(self._owed.get(fd, 0) <= 0 for fd in self._open)
        )

    def _poll(self, timeout: float | None, *, stdout: bool, wake: bool = True) -> set[int]:
        poll = select.poll()
        for fd in self._open:
            if stdout or fd != self._child.stdout:
                poll.register(fd, select.POLLIN)
        if wake:
            poll.register(self._port.wake_fd, select.POLLIN)
        if self._child.pidfd is not None and self._exited_at is None:
            poll.register(self._child.pidfd, select.POLLIN)
        if wake and (fd := self._input_fd()) >= 0:
            poll.register(fd, select.POLLOUT)
        return {fd for fd, _ in poll.poll(None if timeout is None else timeout * 1000)}

    def _input_fd(self) -> int:
        """Return the descriptor to write the rest of the input to; -1 when there is none."""
        waiting = self._command.waiting
        return -1 if waiting is None or self._exited_at is not None else waiting.waiting_fd()

    def _take(self, fd: int) -> bytes:
        """Read the available data; b"" means the end of the pipe."""
        chunk = os.read(fd, PIPE_SIZE if fd == self._child.stdout else CHUNK)
        self._owed[fd] -= len(chunk)
        if not chunk:
            self._open.discard(fd)
        return chunk

    def _read_stderr(self, fd: int) -> None:
        self._tail += self._take(fd)
        if len(self._tail) > 2 * self._command.stderr_tail + CHUNK:
            self._trim_tail()

    def _trim_tail(self) -> None:
        del self._tail[: max(0, len(self._tail) - self._command.stderr_tail)]

    def _drain(self, seconds: float) -> None:
        """Keep the pipes empty for `seconds`, or until the leader has ended.

        Programs that write synchronously (node) cannot handle a signal while a pipe is full.
        """
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            ready = self._poll(left, stdout=True, wake=False)
            for fd in ready & self._open:
                if fd == self._child.stderr:
                    self._read_stderr(fd)
                else:
                    self._take(fd)
            if self._child.pidfd in ready:
                self._exited_at = time.monotonic()
                return


def _pending(fd: int) -> int:
    """Return the number of bytes in a pipe."""
    size: int = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0"))[0]
    return size


class Gatherer:
    """Keeps all chunks until the end, like a `LineSplitter` of output that is one line."""

    overflow = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return nothing."""
        self._parts.append(chunk)
        return []

    def rest(self) -> list[bytes]:
        """Return the whole output, which may be empty."""
        return [b"".join(self._parts)]


class LineSplitter:
    """Splits chunks at newlines, in linear time; `overflow` is set by a line above `limit` bytes.

    With `keep_ends` lines keep their newlines, which are not counted, and the lines of a chunk come
    as one, to avoid the cost of splitting where single lines do not matter.
    """

    def __init__(self, limit: int, *, keep_ends: bool = False) -> None:
        self.limit = limit
        self._end = b"\n" if keep_ends else b""
        self.overflow = False
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that `chunk` completes; none from an overlong line on."""
        if self._end and len(chunk) <= self.limit:
            return self._together(chunk)
        first, *lines = chunk.split(b"\n")
        self._parts.append(first)
        self._size += len(first)
        if self._size > self.limit:
            self.overflow = True
            return []
        if not lines:
            return []
        last = lines.pop()
        lines.insert(0, b"".join(self._parts))
        self._parts = [last]
        self._size = len(last)
        if self.limit < len(chunk):
            for index, line in enumerate(lines):
                if len(line) > self.limit:
                    self.overflow = True
                    return self._ended(lines[:index])
        self.overflow = self._size > self.limit
        return self._ended(lines)

    def _together(self, chunk: bytes) -> list[bytes]:
        """Return the lines that `chunk` completes as one."""
        first, end = chunk.find(b"\n"), chunk.rfind(b"\n") + 1
        self._size += first if end else len(chunk)
        self.overflow = self._size > self.limit
        if self.overflow or not end:
            self._parts.append(chunk)
            return []
        lines = b"".join((*self._parts, chunk[:end]))
        self._parts, self._size = [chunk[end:]], len(chunk) - end
        return [lines]

    def _ended(self, lines: list[bytes]) -> list[bytes]:
        return [line + self._end for line in lines] if self._end else lines

    def rest(self) -> list[bytes]:
        """Return the unterminated last line, if there is one."""
        parts, self._parts = self._parts, []
        return [b"".join(parts)] if self._size else []
