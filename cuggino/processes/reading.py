"""A running program, read on a lane until it has ended or has to be terminated."""

from __future__ import annotations

import fcntl
import math
import os
import select
import selectors
import struct
import termios
import threading
import time
from collections.abc import Callable

from reactivex import abc
from reactivex.disposable import SerialDisposable

from cuggino.errors import LineTooLong
from cuggino.operators import LoopScheduler
from cuggino.processes.command import Child, Command
from cuggino.processes.exits import when_ended

DRAIN = 1.0
"""Seconds that other processes may hold the pipes open after the process has ended."""

GATHER = 0.01
"""Seconds between two reads of a program that prints line after line faster than that."""
_FEW = 1 << 14
"""Bytes of a read below which the pipe has room for what is printed meanwhile."""


class Reading:
    """The watches of one started `child`: its output, its exit and its input.

    `post` gets the lines, and `over` is called once: with True when the process has ended and its
    output has been read, with False when it has to be terminated for `failure`. Both are called on
    the lane, without `turn`: the lock of whoever reads the pipes.
    """

    def __init__(
        self,
        command: Command,
        child: Child,
        lane: LoopScheduler,
        turn: threading.Lock,
        *,
        post: Callable[[list[bytes]], object],
        over: Callable[[bool], object],
    ) -> None:
        self.child = child
        self.pipes = Pipes(child, tail=command.tail)
        self.lines = LineSplitter(command.max_line, keep_ends=command.keep_ends)
        self.failure: Exception | None = None
        self._command = command
        self._whole: list[bytes] = []
        """The output and the errors of a program whose output is whole."""
        self._lane = lane
        self._turn = turn
        self._post = post
        self._over = over
        self._watches: dict[int, abc.DisposableBase] = {}
        self._exit = SerialDisposable()
        """Waits for the exit, then for the end of the drain time."""
        self._gathering = SerialDisposable()
        """Waits for the next read of the output, instead of a watch."""
        self._read_at = -math.inf
        """When the output was read last, on the monotonic clock."""
        self._is_paused = False
        self._has_exited = self._is_drained = self._is_closed = False

    def start(self) -> None:
        """Begin to read; with `turn`."""
        if self.child.stderr is not None:
            self._watch(self.child.stderr, self._read_stderr)
        if self.child.stdout is not None:
            self._watch(self.child.stdout, self._read_stdout)
        self._exit.disposable = when_ended(self.child.exit, self._lane, self._note_exit)
        if self._command.open_input is not None:
            self._command.open_input.write_on(self._lane)

    def pause(self) -> None:
        """Leave the output in its pipe; on the lane."""
        self._is_paused = True
        if self.child.stdout is not None:
            self._unwatch(self.child.stdout)

    def resume(self) -> None:
        """Read the output again; on the lane."""
        self._is_paused = False
        if not self._turn.acquire(blocking=False):
            return
        try:
            self._watch_output()
        finally:
            self._turn.release()

    def close(self) -> None:
        """End all watches; from any thread, with `turn`."""
        self._is_closed = True
        self._exit.dispose()
        self._gathering.dispose()
        for fd in tuple(self._watches):
            self._unwatch(fd)
        if self._command.open_input is not None:
            self._command.open_input.stop()

    def take(self) -> None:
        """Take the output of a program whose output is whole; with `turn`, after its end."""
        self._whole = self.child.printed()

    def rest(self) -> list[bytes]:
        """Return the output that has not been posted."""
        return self._whole[:1] if self._command.output == "whole" else self.lines.rest()

    def tails(self) -> tuple[str, str]:
        """Return the last lines of the output, and the last part of the errors."""
        pipes = (self.child.stdout, self.child.stderr)
        output, errors = (*(self._whole or map(self.pipes.tail, pipes)), b"")[:2]
        limit = self._command.tail
        if len(output) > limit:
            output = output[len(output) - limit :].partition(b"\n")[2]
        errors = errors[max(0, len(errors) - limit) :]
        return output.decode(errors="replace"), errors.decode(errors="replace")

    def _watch(self, fd: int, read: Callable[[], object]) -> None:
        self._watches[fd] = self._lane.watch(fd, selectors.EVENT_READ, read)

    def _unwatch(self, fd: int) -> None:
        if (watch := self._watches.pop(fd, None)) is not None:
            watch.dispose()

    def _watch_output(self) -> None:
        """Read the output as soon as there is some, unless it is paused; with `turn`."""
        stdout = self.child.stdout
        if stdout is None or self._is_closed or self._is_paused:
            return
        if stdout in self.pipes.open and stdout not in self._watches:
            self._watch(stdout, self._read_stdout)

    # -- on the lane

    def _read_stdout(self) -> None:
        assert self.child.stdout is not None
        if lines := [] if self._is_paused else self._read(self.child.stdout):
            self._post(lines)
        self._look()

    def _read_stderr(self) -> None:
        assert self.child.stderr is not None
        self._read(self.child.stderr)
        self._look()

    def _read(self, fd: int) -> list[bytes]:
        """Read once; return the lines that this completes."""
        if not self._turn.acquire(blocking=False):
            return []  # another thread terminates it
        try:
            chunk = None if self._is_closed else self.pipes.read(fd)
            if chunk == b"":
                self._unwatch(fd)
                self._expect_exit()
            if fd != self.child.stdout:
                return []
            if not chunk:
                self._watch_output()
                return []
            lines = self.lines.feed(chunk)
            if self.lines.overflow:
                self.failure = LineTooLong(self._command.argv0, self._command.max_line)
            self._pace(fd, len(chunk), several=len(lines) > 1)
            return lines
        except Exception as error:  # a defect: the tree must not survive it
            self.failure = error
            return []
        finally:
            self._turn.release()

    def _pace(self, fd: int, size: int, *, several: bool) -> None:
        """Decide when to read the output again, after a read of `size` bytes.

        Each read wakes this process up, which costs more than reading a line. So lines that follow
        each other faster than `GATHER` are read together.
        """
        now = time.monotonic()
        is_fast = size < _FEW and (several or now - self._read_at < GATHER)
        self._read_at = now
        if is_fast and not self._has_exited:
            self._unwatch(fd)
            self._gathering.disposable = self._lane.schedule_relative(
                GATHER, lambda *_: self._read_stdout()
            )
        else:
            self._watch_output()

    def _expect_exit(self) -> None:
        """Check for the exit more often, as a process without open pipes is about to end."""
        if not (self.pipes.open or self._has_exited or self.child.exit.pidfd is not None):
            self._exit.disposable = when_ended(self.child.exit, self._lane, self._note_exit)

    def _note_exit(self) -> None:
        if not self._turn.acquire(blocking=False):
            return
        try:
            if self._is_closed:
                return
            self._has_exited = True
            self.pipes.note_exit()
            self._watch_output()
            if self._command.open_input is not None:
                self._command.open_input.stop()
            if self.pipes.open:
                self._exit.disposable = self._lane.schedule_relative(DRAIN, self._end_drain)
        finally:
            self._turn.release()
        self._look()

    def _end_drain(self, *_: object) -> None:
        self._is_drained = True
        self._look()

    def _look(self) -> None:
        if self._is_closed:
            return
        if self.failure is not None:
            self._over(False)
        elif self._has_exited and (
            not self.pipes.open or (self._is_drained and not self.pipes.owes())
        ):
            self._over(True)


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
        lines = chunk.split(b"\n")
        self._parts.append(lines[0])
        self._size += len(lines[0])
        if self._size > self.limit:
            self.overflow = True
            return []
        if len(lines) == 1:
            return []
        last = lines.pop()
        lines[0] = b"".join(self._parts)
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


CHUNK = 1 << 16
"""Bytes per read: more would be slower, as most reads find a line or two."""


class Pipes:
    """The standard output and standard error of `child`, and the end of both."""

    def __init__(self, child: Child, *, tail: int) -> None:
        self.open = set(child.pipes)
        self._owed = dict.fromkeys(child.pipes, 0)
        """Bytes in each pipe when the process ended: its own output, to be read."""
        self._limit = tail
        self._tails = {fd: bytearray() for fd in child.pipes}
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
        tail = self._tails[fd]
        tail += chunk
        if len(tail) > 2 * self._limit + CHUNK:
            del tail[: len(tail) - self._limit]
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

    def tail(self, fd: int | None) -> bytes:
        """Return the last part of what was read from a pipe."""
        return b"" if fd is None else bytes(self._tails[fd])


def _pending(fd: int) -> int:
    """Return the number of bytes in a pipe."""
    size: int = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0"))[0]
    return size
