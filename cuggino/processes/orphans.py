"""Wait for the guardian of a killed process to terminate its orphans."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

import psutil
from reactivex import Observable, defer, of, operators as ops

from cuggino.operators import Schedule
from cuggino.operators.repeat_on import repeat_on

_LOOK_EVERY = 0.1


def orphans_gone(pid: int, *, limit: float = 30.0) -> Observable[bool]:
    """Emit True as soon as no guardian of the dead process `pid` is running.

    A guardian exits when every process that its own process started is gone, so nothing of an
    earlier run writes into the folder any more. Emits False after `limit` seconds.
    """

    def is_gone(_scheduler: object) -> Observable[bool]:
        return of(pid == os.getpid() or not any(guardians_of(pid)))

    looks = defer(is_gone).pipe(repeat_on(Schedule.constant(_LOOK_EVERY).within(limit)))
    return looks.pipe(ops.take_while(lambda is_gone: not is_gone, inclusive=True), ops.last())


def guardians_of(pid: int) -> Iterator[psutil.Process]:
    """Yield the guardians that the process `pid` started; `pid` may be gone."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            words = process.cmdline()
            for program, cookie in pairwise(words):
                own = cookie.rpartition("/")[2]
                if program.endswith("guardian.py") and own.startswith(f"{pid}-"):
                    yield process
