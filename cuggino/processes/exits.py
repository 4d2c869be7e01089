"""The exit of a child process, and how a lane notices it."""

from __future__ import annotations

import os
import select
import selectors
import time
from collections.abc import Callable

import psutil
from reactivex import abc
from reactivex.disposable import SerialDisposable

from cuggino.operators import LoopScheduler

FIRST_TICK = 0.0005
"""Seconds before the first check of a process that cannot be watched (no pidfd: macOS)."""

TICK = 0.05
"""Seconds between two checks, up to which the first is doubled."""


class Exit:
    """The exit of the child `pid`, which stays a zombie until it is reaped elsewhere."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.pidfd = _pidfd(pid)
        """A descriptor that becomes readable at the exit; None outside Linux, and when closed."""

    def has_come(self) -> bool:
        """Return True when the process itself has ended."""
        if self.pidfd is not None:
            return self.wait(0.0)
        try:
            return psutil.Process(self._pid).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:  # reaped by other code in this process
            return True

    def wait(self, seconds: float) -> bool:
        """Return True when the process has ended, False after `seconds`."""
        if self.pidfd is not None:
            poll = select.poll()
            poll.register(self.pidfd, select.POLLIN)
            return bool(poll.poll(seconds * 1000))
        until = time.monotonic() + seconds
        tick = FIRST_TICK
        while not self.has_come():
            if (left := until - time.monotonic()) <= 0:
                return False
            time.sleep(min(tick, left))  # nothing announces the exit here
            tick = min(tick * 2, TICK)
        return True

    def close(self) -> None:
        pidfd, self.pidfd = self.pidfd, None
        if pidfd is not None:
            os.close(pidfd)


def when_ended(
    awaited: Exit, lane: LoopScheduler, then: Callable[[], object]
) -> abc.DisposableBase:
    """Call `then` on the lane, once, when the process has ended and before it is reaped."""
    waiting = SerialDisposable()

    def look(tick: float) -> None:
        if awaited.has_come():
            waiting.dispose()
            then()
        else:
            look_again = min(tick * 2, TICK)
            waiting.disposable = lane.schedule_relative(tick, lambda *_: look(look_again))

    if awaited.pidfd is None:
        waiting.disposable = lane.schedule_relative(FIRST_TICK, lambda *_: look(FIRST_TICK))
    else:
        waiting.disposable = lane.watch(awaited.pidfd, selectors.EVENT_READ, lambda: look(TICK))
    return waiting


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
