"""One run of a program on a lane, from its start until it is reaped."""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from errno import EPERM
from pathlib import Path

from reactivex import abc
from reactivex.disposable import Disposable
from reactivex.internal.exceptions import DisposedException

from cuggino.errors import ProcessFailed, SpawnFailed
from cuggino.operators import LoopScheduler
from cuggino.processes.command import Child, Command
from cuggino.processes.guardian_client import GUARDIAN
from cuggino.processes.namespace import NotStarted
from cuggino.processes.process_tree import Ladder
from cuggino.processes.reading import Pipes, Reading

LEFTOVER_GRACE = 0.5
"""Seconds after SIGTERM for processes left behind by one that exited without being stopped."""
_LOOK = 0.05
"""Longest wait, in seconds, of a thread that terminates several programs at once."""


class ProcessRun:
    """The program of one subscription: started, read and terminated on `lane`.

    `post` gets its lines and `end` its error, None if it has exited with 0; on the lane, and not
    after `cancel` or `terminate`. These two can be called from any thread, which then reads the
    pipes itself: `_turn` is the lock of whoever does that. It is never held while other code runs.
    """

    def __init__(
        self,
        command: Command,
        lane: LoopScheduler,
        *,
        post: Callable[[list[bytes]], object],
        end: Callable[[Exception | None], object],
    ) -> None:
        self._command = command
        self._lane = lane
        self._post = post
        self._end = end
        self._turn = threading.Lock()
        self._reading: Reading | None = None
        self._ending: Ending | None = None
        self._has_ended = False
        """Whether the process has ended by itself, and its output has been read."""
        self._is_over = False
        self._lane_end: abc.DisposableBase = Disposable()
        self.is_cancelled = False

    def start(self) -> None:
        """Start the program in the next turn of the lane.

        Raises:
            DisposedException: the lane has ended.
            RuntimeError: its thread cannot be started.
        """
        LIVE.add(self)
        try:
            self._lane_end = self._lane.at_end(self.terminate)
            self._lane.schedule(self._begin)
        except BaseException:
            LIVE.discard(self)
            raise

    @property
    def cwd(self) -> Path:
        """The absolute path of the working directory."""
        return Path(self._command.cwd or "").absolute()

    @property
    def is_ending(self) -> bool:
        """True while it is terminated because it was cancelled."""
        return self.is_cancelled and not self._is_over

    def cancel(self) -> None:
        """Begin to terminate the process tree, and return at once."""
        self.is_cancelled = True
        with suppress(DisposedException):  # then the end of the lane has terminated it
            self._lane.schedule(self._advance)

    def terminate(self) -> None:
        """Terminate the process tree and return when it is gone; idempotent.

        Other programs that have been cancelled are terminated at the same time.
        """
        self.is_cancelled = True
        with self._turn:
            while (left := self._step()) is not None:
                assert self._ending is not None
                others = LIVE.ending(besides=self)
                self._ending.wait(min(left, _LOOK) if others else left)
                for other in others:
                    other.help()

    def help(self) -> None:
        """Take the step that is due, unless another thread is doing that."""
        if self._turn.acquire(blocking=False):
            try:
                self._step()
            finally:
                self._turn.release()

    def pause(self) -> None:
        """Read no more output until `resume`; on the lane."""
        if self._reading is not None:
            self._reading.pause()

    def resume(self) -> None:
        """Read output again; on any thread."""
        with suppress(DisposedException):
            self._lane.schedule(self._resume)

    # -- on the lane

    def _begin(self, *_: object) -> None:
        with self._turn:
            if self._is_over:
                return
            failure = None if self.is_cancelled else self._spawn()
            if self._reading is None:
                self._close()
        if self._reading is not None:
            if self._reading.failure is not None:
                self._stop_reading(False)
        elif failure is not None:
            self._end(failure)

    def _spawn(self) -> Exception | None:
        """Start the process; return why it cannot be started."""
        try:
            child = self._command.spawn()
        except Exception as error:
            return error
        self._reading = Reading(
            self._command, child, self._lane, self._turn, post=self._post, over=self._stop_reading
        )
        try:
            self._reading.start()
        except Exception as error:  # no descriptors are left, for example
            self._reading.failure = error
        return None

    def _resume(self, *_: object) -> None:
        if self._reading is not None:
            self._reading.resume()

    def _stop_reading(self, has_ended: bool) -> None:
        self._has_ended = has_ended
        self._advance()

    def _advance(self, *_: object) -> None:
        if not self._turn.acquire(blocking=False):
            return  # another thread terminates it
        try:
            if self._is_over:
                return
            left = self._step()
        finally:
            self._turn.release()
        if left is not None:
            self._lane.schedule_relative(left, self._advance)
        elif not self.is_cancelled and (reading := self._reading) is not None:
            is_read = self._has_ended and not isinstance(reading.failure, SpawnFailed)
            if is_read and (rest := reading.rest()):
                self._post(rest)
            self._end(reading.failure)

    # -- with `_turn`

    def _step(self) -> float | None:
        """Terminate the process tree a step further; return the seconds until the next one."""
        if self._is_over:
            return None
        left = None
        if (reading := self._reading) is not None:
            try:
                if self._ending is None:
                    reading.close()
                    signals = ladder(self._command, has_ended=self._has_ended)
                    self._ending = Ending(reading.child, reading.pipes, signals)
                left = self._ending.advance()
            except Exception as error:  # a defect: report it rather than hang
                reading.failure = reading.failure or error
                self._has_ended = False
        if left is None:
            self._close()
        return left

    def _close(self) -> None:
        self._is_over = True
        self._lane_end.dispose()
        if (reading := self._reading) is not None:
            try:
                reading.take()
                error = exit_error(self._command, reading)
            except Exception as defect:
                error = defect
            if self._has_ended:
                reading.failure = reading.failure or error
        LIVE.discard(self)


def ladder(command: Command, *, has_ended: bool) -> Ladder | None:
    """Return the signals for what is left of the process tree; None to leave it alone."""
    grace = command.grace
    if command.uninterrupted:
        return None if has_ended else ((signal.SIGCONT, grace),)
    if not has_ended:
        return ((signal.SIGINT, grace), (signal.SIGTERM, grace))
    if command.sweep or command.namespace is not None:
        return ((signal.SIGTERM, min(grace, LEFTOVER_GRACE)),)
    return None


class Ending:
    """The steps that terminate a process tree, while its pipes are kept empty."""

    def __init__(self, child: Child, pipes: Pipes, signals: Ladder | None) -> None:
        self._child = child
        self._pipes = pipes
        self._steps = iter(()) if signals is None else child.ending(signals)
        self._due = 0.0
        """When to take the next step, on the monotonic clock."""
        self._has_leader = True

    def advance(self) -> float | None:
        """Take the step that is due; return the seconds until the next one, None at the end."""
        self._pipes.drain()
        if self._has_leader and self._child.exit.has_come():  # then the next step need not wait
            self._has_leader = False
            self._due = 0.0
        left = self._due - time.monotonic()
        if left > 0:
            return left
        pause = next(self._steps, None)
        if pause is not None:
            self._due = time.monotonic() + pause
        return pause

    def wait(self, seconds: float) -> None:
        """Wait until then, or for output or the exit of the leader."""
        leader = self._child.exit.pidfd if self._has_leader else None
        self._pipes.wait(seconds, *(() if leader is None else (leader,)))


def exit_error(command: Command, reading: Reading) -> Exception | None:
    """Reap the process of a tree that has ended; return the error of its exit code."""
    output, errors = reading.tails()
    try:
        code = reading.child.close()
    except NotStarted:
        last = errors.strip().rpartition("\n")[2]
        reason = OSError(EPERM, last or "the sandbox could not be set up")
        return SpawnFailed(command.argv0, reason)
    if code == 0:
        return None
    return ProcessFailed(
        command.argv0, -signal.SIGKILL if code is None else code, errors, stdout_tail=output
    )


class LiveRuns:
    """All programs that run, terminated when the interpreter exits without disposing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._live: set[ProcessRun] = set()
        self._hooked = False

    def add(self, run: ProcessRun) -> None:
        with self._lock:
            self._live.add(run)
            if not self._hooked:
                self._hooked = True
                atexit.register(self.end)
                os.register_at_fork(after_in_child=self._forked)

    def discard(self, run: ProcessRun) -> None:
        with self._lock:
            self._live.discard(run)

    def cancel(self, folders: Sequence[Path]) -> None:
        """Cancel the programs that work in one of the folders."""
        for run in self._all():
            if any(run.cwd.is_relative_to(folder) for folder in folders):
                run.cancel()

    def ending(self, *, besides: ProcessRun) -> list[ProcessRun]:
        """Return the other programs that have been cancelled and are not gone yet."""
        return [run for run in self._all() if run.is_ending and run is not besides]

    def end(self) -> None:
        """Terminate all programs at the same time, then the guardian."""
        live = self._all()
        for run in live:
            run.cancel()
        for run in live:
            run.terminate()
        GUARDIAN.close()

    def _all(self) -> list[ProcessRun]:
        with self._lock:
            return list(self._live)

    def _forked(self) -> None:
        """Forget the programs in a forked copy: they belong to the original."""
        self._lock = threading.Lock()
        self._live = set()


LIVE = LiveRuns()
"""The programs of this process."""
