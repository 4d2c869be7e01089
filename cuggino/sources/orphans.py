"""What a killed process left behind, until its guardian has ended it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

import psutil
from reactivex import Observable, defer, interval, of
from reactivex import operators as ops

_LOOK_EVERY = 0.1


def orphans_gone(pid: int, *, limit: float = 30.0) -> Observable[bool]:
    """Emit True as soon as no guardian of the dead process `pid` is at work any more.

    A guardian ends when everything that its process had started is gone, so nothing of an earlier
    run writes into the folder any longer. Emits False when that has not come about within `limit`
    seconds. A process is no orphan of itself.
    """

    def look(_scheduler: object) -> Observable[bool]:
        if pid == os.getpid() or not any(guardians_of(pid)):
            return of(True)
        times = max(1, round(limit / _LOOK_EVERY))
        return interval(_LOOK_EVERY).pipe(
            ops.map(lambda n: (n + 1 >= times, any(guardians_of(pid)))),
            ops.filter(lambda seen: seen[0] or not seen[1]),
            ops.map(lambda seen: not seen[1]),
            ops.take(1),
        )

    return defer(look)


def guardians_of(pid: int) -> Iterator[psutil.Process]:
    """The guardians that were started by the process `pid`, which may be gone."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            words = process.cmdline()
            for program, cookie in zip(words, words[1:], strict=False):
                own = cookie.rpartition("/")[2]
                if program.endswith("guardian.py") and own.startswith(f"{pid}-"):
                    yield process
