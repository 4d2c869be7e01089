"""A running program, read on a lane until it has ended or has to be terminated."""

from __future__ import annotations

import selectors
import threading
from collections.abc import Callable

from reactivex import abc
from reactivex.disposable import SerialDisposable

from cuggino.errors import LineTooLong
from cuggino.operators import LoopScheduler
from cuggino.processes.command import Child, Command
from cuggino.processes.exits import when_ended
from cuggino.processes.lines import Gatherer, LineSplitter
from cuggino.processes.pipes import Pipes

DRAIN = 1.0
"""Seconds that other processes may hold the pipes open after the process has ended."""


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
        self.pipes = Pipes(child, tail=command.stderr_tail)
        self.lines = (
            Gatherer()
            if command.whole
            else LineSplitter(command.max_line, keep_ends=command.keep_ends)
        )
        self.failure: Exception | None = None
        self._command = command
        self._lane = lane
        self._turn = turn
        self._post = post
        self._over = over
        self._watches: dict[int, abc.DisposableBase] = {}
        self._exit = SerialDisposable()
        """Waits for the exit, then for the end of the drain time."""
        self._has_exited = self._is_drained = self._is_closed = False

    def start(self) -> None:
        """Begin to read; with `turn`."""
        if self.child.stderr is not None:
            self._watch(self.child.stderr, self._read_stderr)
        self._watch(self.child.stdout, self._read_stdout)
        self._exit.disposable = when_ended(self.child.exit, self._lane, self._note_exit)
        if self._command.open_input is not None:
            self._command.open_input.write_on(self._lane)

    def pause(self) -> None:
        """Leave the output in its pipe; on the lane."""
        self._unwatch(self.child.stdout)

    def resume(self) -> None:
        """Read the output again; on the lane."""
        stdout = self.child.stdout
        if not self._turn.acquire(blocking=False):
            return
        try:
            if not self._is_closed and stdout in self.pipes.open and stdout not in self._watches:
                self._watch(stdout, self._read_stdout)
        finally:
            self._turn.release()

    def close(self) -> None:
        """End all watches; from any thread, with `turn`."""
        self._is_closed = True
        self._exit.dispose()
        for fd in tuple(self._watches):
            self._unwatch(fd)
        if self._command.open_input is not None:
            self._command.open_input.stop()

    def _watch(self, fd: int, read: Callable[[], object]) -> None:
        self._watches[fd] = self._lane.watch(fd, selectors.EVENT_READ, read)

    def _unwatch(self, fd: int) -> None:
        if (watch := self._watches.pop(fd, None)) is not None:
            watch.dispose()

    # -- on the lane

    def _read_stdout(self) -> None:
        if lines := self._read(self.child.stdout):
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
            if not chunk or fd != self.child.stdout:
                return []
            lines = self.lines.feed(chunk)
            if self.lines.overflow:
                self.failure = LineTooLong(self._command.argv0, self._command.max_line)
            return lines
        except Exception as error:  # a defect: the tree must not survive it
            self.failure = error
            return []
        finally:
            self._turn.release()

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
