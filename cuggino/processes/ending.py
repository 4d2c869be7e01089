"""The termination of a child and of everything it started, step by step."""

from __future__ import annotations

import signal
import time
from errno import EPERM

from cuggino.errors import ProcessFailed, SpawnFailed
from cuggino.processes.command import Child, Command
from cuggino.processes.namespace import NotStarted
from cuggino.processes.pipes import Pipes
from cuggino.processes.process_tree import Ladder

LEFTOVER_GRACE = 0.5
"""Seconds after SIGTERM for processes left behind by one that exited without being stopped."""


def ladder(command: Command, *, has_ended: bool) -> Ladder | None:
    """Return the signals for what is left of the process tree; None to leave it alone."""
    grace = command.grace
    if not has_ended:
        return ((signal.SIGINT, grace), (signal.SIGTERM, grace))
    if command.sweep or command.namespace is not None:
        return ((signal.SIGTERM, min(grace, LEFTOVER_GRACE)),)
    return None


class Ending:
    """The steps that terminate a process tree, while its pipes are kept empty."""

    def __init__(self, child: Child, pipes: Pipes, signals: Ladder | None) -> None:
        self._child = child
        self._pipes = pipes
        self._steps = iter(()) if signals is None else child.ending(signals)
        self._due = 0.0
        """When to take the next step, on the monotonic clock."""
        self._has_leader = True

    def advance(self) -> float | None:
        """Take the step that is due; return the seconds until the next one, None at the end."""
        self._pipes.drain()
        if self._has_leader and self._child.exit.has_come():  # then the next step need not wait
            self._has_leader = False
            self._due = 0.0
        left = self._due - time.monotonic()
        if left > 0:
            return left
        pause = next(self._steps, None)
        if pause is not None:
            self._due = time.monotonic() + pause
        return pause

    def wait(self, seconds: float) -> None:
        """Wait until then, or for output or the exit of the leader."""
        leader = self._child.exit.pidfd if self._has_leader else None
        self._pipes.wait(seconds, *(() if leader is None else (leader,)))


def exit_error(command: Command, child: Child, pipes: Pipes) -> Exception | None:
    """Reap the process of a tree that has ended; return the error of its exit code."""
    try:
        code = child.close()
    except NotStarted:
        last = pipes.tail().strip().rpartition("\n")[2]
        reason = OSError(EPERM, last or "the sandbox could not be set up")
        return SpawnFailed(command.argv0, reason)
    if code == 0:
        return None
    return ProcessFailed(command.argv0, -signal.SIGKILL if code is None else code, pipes.tail())
