"""Standard output and error as they are outside a shell: closed, full, or read by nobody."""

from __future__ import annotations

import io
import os
import select
import stat
import sys
import time
from typing import Any, TextIO

PATIENCE_S = 1.0
"""Seconds that a reader has, after a signal, to read what was written before."""

_POLL_S = 0.1
_PIECE = 512
"""Bytes for which a pipe that is ready has room, on every system (`PIPE_BUF` may be larger)."""

_gives_up_at: list[float] = []


def use_patient_output() -> None:
    """Replace the standard streams of the process by ones that survive how they are connected.

    Streams that the caller has closed (`>&-`) are opened, so that no file of a run takes their
    place. An output that cannot be written remembers why (`output_failure`). One that nobody reads
    holds nothing up after `give_up_soon`.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            _open_null(number, name)
    # Not those that somebody else has put there, such as a test.
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is getattr(sys, f"__{name}__"):
            setattr(sys, name, _patient(getattr(sys, name)))


def give_up_soon() -> None:
    """Discard what is still unread in a moment: the process is to end."""
    if not _gives_up_at:
        _gives_up_at.append(time.monotonic() + PATIENCE_S)


def is_giving_up() -> bool:
    """Return whether `give_up_soon` was called: Ctrl-C has interrupted the process."""
    return bool(_gives_up_at)


def discard_output(stream: TextIO | None = None) -> None:
    """Write the rest of standard output, or of `stream`, nowhere: Python flushes it at its exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, (stream or sys.stdout).fileno())
    os.close(null)


def output_failure() -> OSError | None:
    """Return why standard output could not be written."""
    return sys.stdout.failure if isinstance(sys.stdout, _Output) else None


class _Output(io.TextIOWrapper):
    failure: OSError | None = None

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError as error:
            self.failure = error
            raise

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self.failure = error
            raise


class _PatientFile(io.FileIO):
    """A pipe, socket or terminal that is written only while there is room."""

    def write(self, data: Any, /) -> int:
        while not select.select([], [self], [], _POLL_S)[1]:
            if _gives_up_at and time.monotonic() > _gives_up_at[0]:
                return len(data)
        return super().write(memoryview(data)[: select.PIPE_BUF or _PIECE])


def _patient(stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper) or isinstance(stream, _Output):
        return stream
    encoding, errors, lines = stream.encoding, stream.errors, stream.line_buffering
    number = stream.fileno()
    buffer = stream.detach()
    if not stat.S_ISREG(os.fstat(number).st_mode):
        buffer = io.BufferedWriter(_PatientFile(number, "w", closefd=False))
    return _Output(buffer, encoding=encoding, errors=errors, line_buffering=lines)


def _open_null(number: int, name: str) -> None:
    opened = os.open(os.devnull, os.O_RDWR)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)
    mode = "r" if number == 0 else "w"
    setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
