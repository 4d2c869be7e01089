"""`process_lines`: a child process as a cold Observable of the lines that it prints.

One thread per process reads its pipes and only *posts* to the subscription's scheduler. Everything
the thread and the scheduler share is in `_Subscription`, behind one lock.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from cuggino.sources.command import Command
from cuggino.sources.guardian_client import GUARDIAN
from cuggino.sources.lane import serial_lane
from cuggino.sources.process_reader import ProcessReader

IN_FLIGHT = 2
"""Chunks posted to the scheduler and not yet delivered, at most."""


def process_lines(
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | bytes | None = None,
    merge_stderr: bool = False,
    keep_ends: bool = False,
    sweep: bool = True,
    max_line: int = 64 * 1024 * 1024,
    stderr_tail: int = 64 * 1024,
    grace: float = 2.0,
) -> Observable[bytes]:
    r"""Run `argv` and emit each line of its standard output, in order, as soon as it is there.

    Cold: every subscription starts a process of its own, in its own session and process group. A
    line is emitted without its `\n` and otherwise byte for byte (no decoding, a `\r` stays); an
    unterminated last line is emitted too. All notifications come on the scheduler given to
    `subscribe`, which must be serial; without one, and instead of one that is not serial, on a
    private thread of the subscription. A slow subscriber slows the process down (two chunks of
    64 KiB are on their way to it at most), it neither fills memory nor loses lines.

    Completes when the process has exited with 0 and its output has ended. Where others still hold
    the pipe open after the exit, their output is read for one more second.

    Errors: `SpawnFailed` if it cannot be started, `ProcessFailed` with the last `stderr_tail`
    bytes of standard error for any other exit code (CUG-083), `LineTooLong` for a line above
    `max_line` bytes, and whatever the subscriber's `on_next` raises. In all of these cases nothing
    of the process is left when the error arrives.

    Disposal ends the whole tree, and returns only when all of it is gone and the process is
    reaped (AUT-021): SIGINT to the group, after at most `grace` seconds SIGTERM to all that is
    left, after at most `grace` more SIGKILL. If the Python process dies, even by SIGKILL, a
    guardian process does the same.

    Options: `cwd` the working directory; `env` the whole environment instead of this process's;
    `stdin` text (as UTF-8) or bytes of any size, otherwise standard input is empty;
    `merge_stderr` reads standard error as part of the output; with `keep_ends` lines keep their
    `\n`, so that it is known whether the last one had it; `sweep=False` for commands that
    start a daemon which is to stay: a normal exit then ends nothing, while with `sweep` whatever
    the process leaves behind is ended before completion.

    POSIX is needed.
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
    )

    def subscribe(
        observer: abc.ObserverBase[bytes], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        subscription = _Subscription(command, observer, scheduler)
        subscription.start()
        return Disposable(subscription.dispose)

    return Observable(subscribe)


def process_batches(
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: str | os.PathLike[str],
    env: Mapping[str, str],
    stdin: bytes,
) -> Observable[list[bytes]]:
    """As `process_lines`, but emit the lines that came at once together: one or more, in order.

    For whoever can say less about many lines than about each. When they come one by one, so are
    they emitted.
    """
    command = Command(
        argv=tuple(os.fspath(word) for word in argv),
        cwd=os.fspath(cwd),
        env=dict(env),
        stdin=stdin,
    )

    def subscribe(
        observer: abc.ObserverBase[list[bytes]], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        subscription = _Subscription(command, observer, scheduler, batches=True)
        subscription.start()
        return Disposable(subscription.dispose)

    return Observable(subscribe)


class _Subscription:
    """One subscriber, one process: the reader's port, the scheduler's actions, the disposal."""

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
        self._lane, self._close_lane = serial_lane(scheduler)
        self._reader = ProcessReader(command, self)
        self._thread = threading.Thread(
            target=self._run, name=f"cuggino-{Path(command.argv0).name}", daemon=True
        )
        self._lock = threading.Lock()
        self._in_flight = 0
        self._cancelled = False
        self.wake_fd, self._wake_end = os.pipe()
        os.set_blocking(self._wake_end, False)

    def start(self) -> None:
        try:
            _LIVE.add(self)
            self._thread.start()
        except BaseException:
            self._release()
            self._close_lane()
            raise

    def dispose(self) -> None:
        """End the process tree and wait for that; from any thread, any number of times."""
        self.cancel()
        self.join()
        self._close_lane()

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            self._wake()

    def join(self) -> None:
        if threading.current_thread() is not self._thread:
            self._thread.join()

    # -- on the reader's thread

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def has_room(self) -> bool:
        with self._lock:
            return self._in_flight < IN_FLIGHT

    def post(self, lines: list[bytes]) -> None:
        with self._lock:
            self._in_flight += 1
        self._schedule(lambda: self._deliver(lines))

    def _run(self) -> None:
        try:
            failure = self._reader.run()
        except Exception as error:  # a defect: say so rather than stay silent for ever
            failure = error
        self._release()
        self._schedule(lambda: self._finish(failure))

    def _release(self) -> None:
        _LIVE.discard(self)
        with self._lock:
            os.close(self._wake_end)
            os.close(self.wake_fd)
            self._wake_end = self.wake_fd = -1

    def _schedule(self, action: Callable[[], None]) -> None:
        if self._cancelled:
            return
        try:
            self._lane.schedule(lambda *_: action())
        except Exception:  # the scheduler is closed: nobody is left to be told
            self.cancel()

    # -- on the scheduler

    def _deliver(self, lines: list[bytes]) -> None:
        try:
            for said in (lines,) if self._batches else lines:
                if self._cancelled:
                    return
                self._observer.on_next(said)
        except BaseException as error:
            self.cancel()
            self.join()
            if not isinstance(error, Exception):
                self._close_lane()
                raise
            try:
                self._observer.on_error(error)
            finally:
                self._close_lane()
        else:
            with self._lock:
                self._in_flight -= 1
                if self._in_flight == IN_FLIGHT - 1:
                    self._wake()

    def _finish(self, failure: Exception | None) -> None:
        self.join()
        if self._cancelled:
            return
        self._cancelled = True
        try:
            if failure is None:
                self._observer.on_completed()
            else:
                self._observer.on_error(failure)
        finally:
            self._close_lane()

    def _wake(self) -> None:
        if self._wake_end >= 0:
            with suppress(BlockingIOError):  # full: the reader will wake up anyway
                os.write(self._wake_end, b"!")


class _LiveSubscriptions:
    """The net for an interpreter that exits without disposing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._live: set[_Subscription] = set()
        self._hooked = False

    def add(self, subscription: _Subscription) -> None:
        with self._lock:
            self._live.add(subscription)
            if not self._hooked:
                self._hooked = True
                atexit.register(self.end)
                os.register_at_fork(after_in_child=self._forked)

    def discard(self, subscription: _Subscription) -> None:
        with self._lock:
            self._live.discard(subscription)

    def end(self) -> None:
        """End all processes, side by side, and send the guardian home."""
        with self._lock:
            live = list(self._live)
        for subscription in live:
            subscription.cancel()
        for subscription in live:
            subscription.join()
        GUARDIAN.close()

    def _forked(self) -> None:
        """In a forked copy: the processes are the original's."""
        self._lock = threading.Lock()
        self._live = set()


_LIVE = _LiveSubscriptions()
