"""A child process as a cold Observable of the lines that it prints.

One thread per process reads its pipes and only *posts* to the subscription's scheduler. Threads are
reused. All state that the two share is in `_Subscription`, guarded by one lock.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from reactivex import Observable, abc

from cuggino.operators.scheduler import lane_of
from cuggino.sandbox import Enclosure
from cuggino.sources.command import Command
from cuggino.sources.guardian_client import GUARDIAN
from cuggino.sources.process_reader import ProcessReader
from cuggino.sources.reader_threads import READERS

IN_FLIGHT = 2
"""Most chunks posted to the scheduler and not yet delivered."""


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
    enclosure: Enclosure | None = None,
) -> Observable[bytes]:
    r"""Run `argv` and emit each line of its standard output, in order, as it is printed.

    Cold: every subscription starts a process, in its own session and process group. A line is
    emitted without its `\n` and otherwise byte for byte (no decoding, a `\r` stays), an
    unterminated last line too. Everything is emitted on the scheduler given to `subscribe` if it is
    serial, otherwise on a private thread. A slow subscriber slows the process down, as at most two
    chunks of 64 KiB are in flight.

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
    `stdin` text (as UTF-8) or bytes of any size, empty by default; `merge_stderr` reads standard
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
    """Run `argv` like `process_lines`, but emit lines that arrive together as one list.

    With an `OpenInput` it is for one subscription, as the pipe belongs to one process. The caller
    closes the pipe, even if the process was never started.
    """
    words, cwd, env = tuple(os.fspath(word) for word in argv), os.fspath(cwd), dict(env)
    if isinstance(stdin, bytes):
        command = Command(argv=words, cwd=cwd, env=env, stdin=stdin, enclosure=enclosure)
        return _stream(command, batches=True)
    spoken_to = _Duplex(
        argv=words, cwd=cwd, env=env, stdin=None, pipe=stdin, waiting=stdin, enclosure=enclosure
    )
    return _stream(spoken_to, batches=True)


def _stream(command: Command, *, batches: bool = False) -> Observable[Any]:
    def subscribe(
        observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        subscription = _Subscription(command, observer, scheduler, batches=batches)
        if command.waiting is not None:
            command.waiting.on_more = subscription.wake
        subscription.start()
        return subscription

    return Observable(subscribe)


def interrupt_processes(*folders: str | os.PathLike[str]) -> None:
    """Begin to terminate all processes whose working directory is in one of the folders.

    Returns at once. Disposing of their streams then waits as usual, while all processes end at the
    same time. Until then the streams emit nothing and do not end.
    """
    _LIVE.cancel([Path(folder).absolute() for folder in folders])


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

    Data that does not fit into the pipe is written later, by the thread that reads the process.
    Usable from any thread.
    """

    def __init__(self) -> None:
        super().__init__()
        self._writing = threading.RLock()
        self._left = bytearray()
        self._has_ended = False
        self.on_more: Callable[[], object] = lambda: None
        """Called when there is something left to write."""

    def add(self, data: bytes) -> None:
        """Write the data after everything before it; nothing after the end."""
        with self._writing:
            if self._has_ended or self._write_end < 0:
                return
            self._left += data
            self.write()
            is_left = bool(self._left)
        if is_left:
            self.on_more()

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
            super().close()

    def waiting_fd(self) -> int:
        """Return the descriptor to poll for room; -1 when nothing is left to write."""
        return self._write_end if self._left else -1

    def write(self) -> None:
        """Write as much as there is room for."""
        with self._writing:
            try:
                while self._left and (sent := self.send(self._left)):
                    del self._left[:sent]
            except BrokenPipeError:  # the process listens no longer
                self.close()
            if self._has_ended and not self._left:
                self.close()


@dataclass(frozen=True, kw_only=True)
class _Duplex(Command):
    pipe: InputPipe

    def _input(self) -> IO[bytes]:
        return self.pipe.take()


def process_duplex(
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: str | os.PathLike[str],
    env: Mapping[str, str],
    stdin: InputPipe,
    enclosure: Enclosure | None = None,
) -> Observable[bytes]:
    """Run `argv` like `process_lines`, with a standard input that is written to while it runs.

    For one subscription, as the pipe belongs to one process. The caller closes the pipe, even if
    the process was never started.
    """
    command = _Duplex(
        argv=tuple(os.fspath(word) for word in argv),
        cwd=os.fspath(cwd),
        env=dict(env),
        stdin=None,
        pipe=stdin,
        enclosure=enclosure,
    )
    return _stream(command)


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
        self._cwd = command.cwd
        self._lane, self._close_lane = lane_of(scheduler)
        self._reader = ProcessReader(command, self)
        self._name = f"cuggino-{os.path.basename(command.argv0)}"  # noqa: PTH119
        self._thread: threading.Thread | None = None
        self._reading = threading.Lock()
        """Held until the process has ended and is reaped."""
        self._lock = threading.Lock()
        self._in_flight = 0
        self._cancelled = False
        self.wake_fd, self._wake_end = os.pipe()
        os.set_blocking(self._wake_end, False)

    def start(self) -> None:
        self._reading.acquire()
        try:
            _LIVE.add(self)
            self._thread = READERS.run(self._run, name=self._name)
        except BaseException:
            self._release()
            self._reading.release()
            self._close_lane()
            raise

    def dispose(self) -> None:
        """Terminate the process tree and wait until it is gone; thread-safe and idempotent."""
        self.cancel()
        self.join()
        self._close_lane()

    @property
    def cwd(self) -> Path:
        """The absolute path of the working directory."""
        return Path(self._cwd or "").absolute()

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            self._wake()

    def wake(self) -> None:
        """Let the reader look at its input again."""
        with self._lock:
            self._wake()

    def join(self) -> None:
        if threading.current_thread() is not self._thread:
            with self._reading:
                pass

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
        except Exception as error:  # a defect: report it rather than hang
            failure = error
        self._release()
        self._reading.release()
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
        except Exception:  # the scheduler is closed
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
            with suppress(BlockingIOError):  # full: the reader wakes up anyway
                os.write(self._wake_end, b"!")


class _LiveSubscriptions:
    """All running subscriptions, terminated when the interpreter exits without disposing."""

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

    def cancel(self, folders: Sequence[Path]) -> None:
        """Cancel the subscriptions whose process works in one of the folders."""
        with self._lock:
            live = list(self._live)
        for subscription in live:
            if any(subscription.cwd.is_relative_to(folder) for folder in folders):
                subscription.cancel()

    def end(self) -> None:
        """Terminate all processes in parallel, then the guardian."""
        with self._lock:
            live = list(self._live)
        for subscription in live:
            subscription.cancel()
        for subscription in live:
            subscription.join()
        GUARDIAN.close()

    def _forked(self) -> None:
        """Forget the processes in a forked copy: they belong to the original."""
        self._lock = threading.Lock()
        self._live = set()


_LIVE = _LiveSubscriptions()
