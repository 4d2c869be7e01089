"""Wait for the guardian of a killed process to terminate its orphans."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

import psutil
from reactivex import Observable, defer, interval, of, operators as ops

_LOOK_EVERY = 0.1


def orphans_gone(pid: int, *, limit: float = 30.0) -> Observable[bool]:
    """Emit True as soon as no guardian of the dead process `pid` is running.

    A guardian exits when every process that its own process started is gone, so nothing of an
    earlier run writes into the folder any more. Emits False after `limit` seconds.
    """

    def look(_scheduler: object) -> Observable[bool]:
        if pid == os.getpid() or not any(guardians_of(pid)):
            return of(True)
        times = max(1, round(limit / _LOOK_EVERY))
        ticks: Observable[int] = interval(_LOOK_EVERY)
        gone = ticks.pipe(ops.take(times), ops.map(lambda _tick: not any(guardians_of(pid))))
        return gone.pipe(ops.take_while(lambda is_gone: not is_gone, inclusive=True), ops.last())

    return defer(look)


def guardians_of(pid: int) -> Iterator[psutil.Process]:
    """Yield the guardians that the process `pid` started; `pid` may be gone."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            words = process.cmdline()
            for program, cookie in pairwise(words):
                own = cookie.rpartition("/")[2]
                if program.endswith("guardian.py") and own.startswith(f"{pid}-"):
                    yield process
