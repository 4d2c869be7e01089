"""A child process as a cold Observable of the lines that it prints.

The lane of the subscription reads the process itself (`process_run`). Only on a scheduler that is
not a `LoopScheduler` a private lane reads it, and posts its lines.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from reactivex import Observable, abc

from cuggino.errors import NoAnswer, ProcessFailed
from cuggino.operators import LoopScheduler
from cuggino.operators.scheduler import lane_of
from cuggino.processes.command import Command, Confinement
from cuggino.processes.process_run import LIVE, ProcessRun
from cuggino.processes.program_input import OpenInput


class Said(NamedTuple):
    """What a program printed, and its exit code (negative: killed by that signal)."""

    code: int
    output: bytes
    errors: str = ""

    def checked(self, argv0: str) -> Said:
        """Return it if the program `argv0` has exited with 0.

        Raises:
            ProcessFailed: it has not.
        """
        if self.code:
            raise ProcessFailed(argv0, self.code, self.errors, stdout_tail=self.text)
        return self

    @property
    def text(self) -> str:
        """The output without its last line end."""
        return os.fsdecode(self.output.removesuffix(b"\n"))

    @property
    def fields(self) -> list[str]:
        """The output, split at NUL bytes."""
        return [os.fsdecode(field) for field in self.output.split(b"\0") if field]

    @property
    def words(self) -> str:
        """Everything that was printed, for people."""
        return f"{self.output.decode('utf-8', 'replace')}\n{self.errors}"


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
    tail: int = 64 * 1024,
    grace: float = 2.0,
    enclosure: Confinement | None = None,
) -> Observable[bytes]:
    r"""Run `argv` and emit each line of its standard output, in order, as it is printed.

    Cold: every subscription starts a process, in its own session and process group. A line is
    emitted without its `\n` and otherwise byte for byte (no decoding, a `\r` stays), an
    unterminated last line too. Lines that follow each other within 10 ms may come up to 10 ms
    later, together. Everything is emitted on the scheduler given to `subscribe` if it is
    serial, otherwise on a private thread. A slow subscriber slows the process down: the next 64 KiB
    are read when it has got the last, on a scheduler other than `LoopScheduler` the last but one.

    Completes when the process has exited with 0 and its output has ended. If other processes hold
    the pipe open after the exit, their output is read for one more second.

    Errors: `SpawnFailed` if it cannot be started, `StorageError` if there is no room for its input,
    `ProcessFailed` with the last `tail` bytes
    of standard error and of the output for any other exit code, `LineTooLong` for a line
    above `max_line` bytes. The whole process tree is gone when the error is emitted.

    Disposal terminates the process tree and returns when all of it is gone and the process is
    reaped: SIGINT to the group, after at most `grace` seconds SIGTERM to the rest, after
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
    if isinstance(argv, str | bytes):
        raise TypeError(f"argv must be a list of arguments, not {argv!r}: see shlex.split")
    command = Command(
        argv=tuple(os.fspath(word) for word in argv),
        cwd=None if cwd is None else os.fspath(cwd),
        env=None if env is None else dict(env),
        stdin=stdin.encode() if isinstance(stdin, str) else stdin,
        merge_stderr=merge_stderr,
        keep_ends=keep_ends,
        sweep=sweep,
        max_line=max_line,
        tail=tail,
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
    uninterrupted: bool = False,
    sweep: bool = True,
    grace: float = 2.0,
    enclosure: Confinement | None = None,
) -> Observable[bytes]:
    """Run `argv` like `process_lines`, but emit the whole output at once, even if it is empty.

    The output of a program that failed is emitted before the error.

    An `uninterrupted` program may finish: disposal waits up to `grace` seconds for its exit and
    only then kills its group. If the Python process dies, it still runs to its end.
    """
    command = Command(
        argv=tuple(argv),
        cwd=os.fspath(cwd),
        env=dict(env),
        stdin=stdin,
        merge_stderr=merge_stderr,
        output="whole",
        uninterrupted=uninterrupted,
        sweep=sweep,
        grace=grace,
        enclosure=enclosure,
    )

    return _stream(command)


def run_bounded(
    argv: Sequence[str | os.PathLike[str]],
    *,
    seconds: float,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    enclosure: Confinement | None = None,
) -> Said:
    """Run a program that answers soon, without a terminal, and wait for it.

    Its process group is killed when the time is up, or when a person presses Ctrl-C.

    Raises:
        SpawnFailed: it cannot be started.
        NoAnswer: it has not ended after `seconds`.
        StorageError: there is no room for its input and output.
    """
    command = Command(
        argv=tuple(os.fspath(word) for word in argv),
        cwd=None if cwd is None else os.fspath(cwd),
        env=env,
        stdin=stdin,
        output="whole",
        uninterrupted=True,
        enclosure=enclosure,
    )
    # Started on a thread of its own: no interruption can come between the start and its result.
    with ThreadPoolExecutor(max_workers=1) as starter:
        starting = starter.submit(command.spawn)
        try:
            is_late = not starting.result().exit.wait(seconds)
        finally:
            child = starting.result()
            for pause in child.ending(()):
                child.exit.wait(pause)
            output, errors = child.printed()
            code = child.close()
    if is_late or code is None:
        raise NoAnswer(command.argv0, seconds)
    return Said(code, output, errors.decode(errors="replace"))


def process_batches(
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: str | os.PathLike[str],
    env: Mapping[str, str],
    stdin: bytes | OpenInput,
    enclosure: Confinement | None = None,
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
        lane, self._release = lane_of(scheduler, name)
        self._across: abc.SchedulerBase | None = None
        """Where events are posted from a private lane, if the scheduler is no `LoopScheduler`."""
        if not isinstance(lane, LoopScheduler):
            private = LoopScheduler(name)
            lane, self._across, self._release = private, lane, private.dispose
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
