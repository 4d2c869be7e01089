"""A child process that is spoken to while it runs: `process_lines` with an open standard input."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from cuggino.sources.command import Command
from cuggino.sources.process import _Subscription

__all__ = ["InputPipe", "process_duplex"]


class InputPipe:
    """The standard input of one process, for as long as somebody has something to say to it.

    Closing it is the end of the process's input; a process that starts after that has none. One
    thread at a time may use it, while another starts the process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)

    def fileno(self) -> int:
        """The descriptor to wait at until it can be written to; -1 when it is closed."""
        return self._write_end

    def send(self, data: bytes | memoryview) -> int:
        """Write as much as there is room for, which may be nothing; gives the number of bytes.

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
        """End the input; any number of times."""
        write_end, self._write_end = self._write_end, -1
        for end in (write_end, self._untaken()):
            if end >= 0:
                os.close(end)

    def take(self) -> IO[bytes]:
        """The end that the process gets; once."""
        end = self._untaken()
        if end < 0:
            return open(os.devnull, "rb")  # noqa: PTH123 - os.devnull is a name, not a place
        return os.fdopen(end, "rb", buffering=0)

    def _untaken(self) -> int:
        """The process's end for whoever asks first; -1 for all others."""
        with self._lock:
            end, self._read_end = self._read_end, -1
        return end


@dataclass(frozen=True, kw_only=True)
class _SpokenTo(Command):
    pipe: InputPipe

    def _input(self) -> IO[bytes]:
        return self.pipe.take()


def process_duplex(
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: str | os.PathLike[str],
    env: Mapping[str, str],
    stdin: InputPipe,
    max_line: int = 64 * 1024 * 1024,
    stderr_tail: int = 64 * 1024,
    grace: float = 2.0,
) -> Observable[bytes]:
    """Run `argv` and emit each line of its standard output, while `stdin` is written to.

    As `process_lines` in all else: lines, errors, disposal, guardian. For one subscription, as the
    pipe is one process's. Whoever made the pipe closes it, the process started or not.
    """
    command = _SpokenTo(
        argv=tuple(os.fspath(word) for word in argv),
        cwd=os.fspath(cwd),
        env=dict(env),
        stdin=None,
        merge_stderr=False,
        keep_ends=False,
        sweep=True,
        max_line=max_line,
        stderr_tail=stderr_tail,
        grace=grace,
        pipe=stdin,
    )

    def subscribe(
        observer: abc.ObserverBase[bytes], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        subscription = _Subscription(command, observer, scheduler)
        subscription.start()
        return Disposable(subscription.dispose)

    return Observable(subscribe)
