"""A child process as a cold Observable of the lines that it prints.

The lane of the subscription reads the process itself (`process_run`). Only on a scheduler that is
not a `LoopScheduler` a private lane reads it, and posts its lines.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from reactivex import Observable, abc

from cuggino.processes.command import Command
from cuggino.processes.process_run import LIVE, ProcessRun
from cuggino.processes.program_input import OpenInput
from cuggino.processes.reading_lane import reading_lane
from cuggino.sandbox import Enclosure

IN_FLIGHT = 2
"""Most chunks posted to another scheduler and not yet delivered."""


def process_lines(
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | bytes | OpenInput | None = None,
    merge_stderr: bool = False,
    keep_ends: bool = False,
    sweep: bool = True,
    max_line: int = 64 * 1024 * 1024,
    stderr_tail: int = 64 * 1024,
    grace: float = 2.0,
    enclosure: Enclosure | None = None,
) -> Observable[bytes]:
    r"""Run `argv` and emit each line of its standard output, in order, as it is printed.

    Cold: every subscription starts a process, in its own session and process group. A line is
    emitted without its `\n` and otherwise byte for byte (no decoding, a `\r` stays), an
    unterminated last line too. Everything is emitted on the scheduler given to `subscribe` if it is
    serial, otherwise on a private thread. A slow subscriber slows the process down: the next 64 KiB
    are read when it has got the last, on a scheduler other than `LoopScheduler` the last but one.

    Completes when the process has exited with 0 and its output has ended. If other processes hold
    the pipe open after the exit, their output is read for one more second.

    Errors: `SpawnFailed` if it cannot be started, `ProcessFailed` with the last `stderr_tail`
    bytes of standard error for any other exit code (CUG-083), `LineTooLong` for a line above
    `max_line` bytes. The whole process tree is gone when the error is emitted.

    Disposal terminates the process tree and returns when all of it is gone and the process is
    reaped (AUT-021): SIGINT to the group, after at most `grace` seconds SIGTERM to the rest, after
    at most `grace` more SIGKILL. If the Python process dies, even by SIGKILL, a guardian process
    does the same.

    Options: `cwd` is the working directory; `env` the whole environment instead of this process's;
    `stdin` text (as UTF-8) or bytes of any size, empty by default, or an `OpenInput`, to which
    more can be added while the process runs (it belongs to one subscription, and its owner closes
    it, even if the process was never started); `merge_stderr` reads standard
    error as part of the output; with `keep_ends` lines keep their `\n`, and those that arrive
    together are emitted as one. With `sweep`, every process left behind is terminated before
    completion; with `sweep=False`, for commands that start a daemon, a normal exit terminates
    nothing. `enclosure` confines the process and everything it starts. In an enclosure with a
    namespace, SIGINT and SIGTERM go to the program and its group, SIGKILL to all processes at once,
    and no process outlives the program, even with `sweep=False`: its remaining processes are killed
    when it exits, and all of them by the kernel if the Python process dies.

    Requires POSIX.
    """
    if not argv:
        raise ValueError("argv is empty")
    command = Command(
        argv=tuple(os.fspath(word) for word in argv),
        cwd=None if cwd is None else os.fspath(cwd),
        env=None if env is None else dict(env),
        stdin=stdin.encode() if isinstance(stdin, str) else stdin,
        merge_stderr=merge_stderr,
        keep_ends=keep_ends,
        sweep=sweep,
        max_line=max_line,
        stderr_tail=stderr_tail,
        grace=grace,
        enclosure=enclosure,
    )

    return _stream(command)


def process_output(
    argv: Sequence[str],
    *,
    cwd: str | os.PathLike[str],
    env: Mapping[str, str],
    stdin: bytes | None = None,
    merge_stderr: bool = False,
    sweep: bool = True,
    enclosure: Enclosure | None = None,
) -> Observable[bytes]:
    """Run `argv` like `process_lines`, but emit the whole output at once, even if it is empty.

    The output of a process that failed is emitted before the error.
    """
    command = Command(
        argv=tuple(argv),
        cwd=os.fspath(cwd),
        env=dict(env),
        stdin=stdin,
        merge_stderr=merge_stderr,
        whole=True,
        sweep=sweep,
        enclosure=enclosure,
    )

    return _stream(command)


def process_batches(
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: str | os.PathLike[str],
    env: Mapping[str, str],
    stdin: bytes | OpenInput,
    enclosure: Enclosure | None = None,
) -> Observable[list[bytes]]:
    """Run `argv` like `process_lines`, but emit lines that arrive together as one list."""
    command = Command(
        argv=tuple(os.fspath(word) for word in argv),
        cwd=os.fspath(cwd),
        env=dict(env),
        stdin=stdin,
        enclosure=enclosure,
    )
    return _stream(command, batches=True)


def _stream(command: Command, *, batches: bool = False) -> Observable[Any]:
    def subscribe(
        observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        subscription = _Subscription(command, observer, scheduler, batches=batches)
        subscription.start()
        return subscription

    return Observable(subscribe)


def interrupt_processes(*folders: str | os.PathLike[str]) -> None:
    """Begin to terminate all processes whose working directory is in one of the folders.

    Returns at once. Disposing of their streams then waits as usual, while all processes end at the
    same time. Until then the streams emit nothing and do not end.
    """
    LIVE.cancel([Path(folder).absolute() for folder in folders])


class _Subscription(abc.DisposableBase):
    """One subscriber and its process."""

    def __init__(
        self,
        command: Command,
        observer: abc.ObserverBase[Any],
        scheduler: abc.SchedulerBase | None,
        *,
        batches: bool = False,
    ) -> None:
        self._observer = observer
        self._batches = batches
        name = f"cuggino-{os.path.basename(command.argv0)}"  # noqa: PTH119
        lane, self._across, self._release = reading_lane(scheduler, name)
        self._run = ProcessRun(command, lane, post=self._post, end=self._post_end)
        self._posted = _InFlight()

    def start(self) -> None:
        try:
            self._run.start()
        except BaseException:
            self._release()
            raise

    def dispose(self) -> None:
        """Terminate the process tree and wait until it is gone; thread-safe and idempotent."""
        self._run.terminate()
        self._release()

    # -- on the lane that reads

    def _post(self, lines: list[bytes]) -> None:
        if self._across is None:
            self._deliver(lines)
            return
        if not self._posted.add():
            self._run.pause()
        self._schedule(lambda: self._deliver_one_of(lines))

    def _post_end(self, failure: Exception | None) -> None:
        if self._across is None:
            self._finish(failure)
            return
        self._schedule(lambda: self._finish(failure))
        self._release()

    def _schedule(self, action: Callable[[], None]) -> None:
        assert self._across is not None
        try:
            self._across.schedule(lambda *_: action())
        except Exception:  # the scheduler is closed
            self.dispose()

    # -- on the subscription's scheduler

    def _deliver_one_of(self, lines: list[bytes]) -> None:
        self._deliver(lines)
        if self._posted.remove():
            self._run.resume()

    def _deliver(self, lines: list[bytes]) -> None:
        try:
            for printed in (lines,) if self._batches else lines:
                if self._run.is_cancelled:
                    return
                self._observer.on_next(printed)
        except Exception as error:
            self._run.terminate()
            self._conclude(partial(self._observer.on_error, error))
        except BaseException:
            self.dispose()
            raise

    def _finish(self, failure: Exception | None) -> None:
        if self._run.is_cancelled:
            return
        self._run.is_cancelled = True
        if failure is None:
            self._conclude(self._observer.on_completed)
        else:
            self._conclude(partial(self._observer.on_error, failure))

    def _conclude(self, end: Callable[[], None]) -> None:
        try:
            end()
        finally:
            self._release()


class _InFlight:
    """The number of chunks posted and not yet delivered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._number = 0

    def add(self) -> bool:
        """Return whether there is room for another one."""
        with self._lock:
            self._number += 1
            return self._number < IN_FLIGHT

    def remove(self) -> bool:
        """Return whether there is room again."""
        with self._lock:
            self._number -= 1
            return self._number == IN_FLIGHT - 1
