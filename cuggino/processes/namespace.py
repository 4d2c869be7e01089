"""The PID namespace of an enclosed program: signalled from outside, ended by one kill.

bubblewrap stays outside as the monitor of the namespace's init, whose first child is the program.
It forwards no signals, and reports the end of a program by signal N as exit code 128 + N.
"""

from __future__ import annotations

import os
import re
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil

from cuggino.processes.process_tree import KILL_LIMIT, Ladder

_CHILD_PID = re.compile(rb'"child-pid": *(\d+)')
_EXIT_CODE = re.compile(rb'"exit-code": *(\d+)')
_LOOK_EVERY = 100
"""Milliseconds between two checks whether the monitor has ended."""
_SIGNALS = frozenset(range(1, signal.NSIG))


def namespaces_can_be_ended() -> bool:
    """Return whether the kernel supports pidfds, which, unlike ids, are never reused."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


class StatusPipe:
    """The pipe on which a monitor reports the namespace's init and the program's exit code."""

    def __init__(self) -> None:
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._reports = b""

    def init(self, monitor: int) -> int | None:
        """Wait for the id of the namespace's init; None if the monitor has ended without one.

        Until this returns, do not kill the monitor: an init that has not been set up yet would
        wait for it indefinitely.
        """
        self._close_write_end()
        poll = select.poll()
        poll.register(self._read_end, select.POLLIN)
        while b"\n" not in self._reports:
            ended = not poll.poll(_LOOK_EVERY) and _is_zombie(monitor)  # a fork holds the pipe open
            if self._read() or ended:
                break
        return self._find(_CHILD_PID)

    def exit_code(self) -> int | None:
        """Return the program's exit code; None if it was never started, or not reported."""
        self._read()
        return self._find(_EXIT_CODE)

    def close(self) -> None:
        """Close both ends; idempotent."""
        self._close_write_end()
        end, self._read_end = self._read_end, -1
        if end >= 0:
            os.close(end)

    def _close_write_end(self) -> None:
        end, self.write_end = self.write_end, -1
        if end >= 0:
            os.close(end)

    def _read(self) -> bool:
        """Read all available reports; return whether the pipe has ended."""
        with suppress(BlockingIOError):
            while chunk := os.read(self._read_end, 4096):
                self._reports += chunk
            return True
        return False

    def _find(self, wanted: re.Pattern[bytes]) -> int | None:
        found = wanted.search(self._reports)
        return None if found is None else int(found[1])


class Namespace:
    """The processes of one enclosed program, started by the monitor `monitor`.

    The monitor is a child of this process and must not be reaped before `end`.
    """

    def __init__(self, monitor: int, status: StatusPipe) -> None:
        self._monitor = monitor
        self._status = status
        init = status.init(monitor)
        self._init = init or 0
        with ExitStack() as opened:
            opened.callback(_kill_both, monitor, init)  # unless both can be watched
            self._monitor_fd = os.pidfd_open(monitor)
            opened.callback(os.close, self._monitor_fd)
            self._init_fd = None if init is None else _open_init(init)
            opened.pop_all()

    def end(self, ladder: Ladder, pause: Callable[[float], object] = time.sleep) -> None:
        """Terminate all processes; return when none is left. `pause` waits for some seconds."""
        for seconds in self.ending(ladder):
            pause(seconds)

    def ending(self, ladder: Ladder) -> Iterator[float]:
        """Terminate all processes step by step; yield the seconds to wait before the next step.

        The signals of the ladder go to the program and its process group.
        """
        for sign, seconds in ladder:
            if self._is_empty() or _has_ended(self._monitor_fd) or not self._signal(sign):
                break
            yield from self._await(seconds)
        if self._init_fd is not None and not self._is_empty():
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._init_fd, signal.SIGKILL)
            yield from self._await(KILL_LIMIT)
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._monitor_fd, signal.SIGKILL)

    def exit_code(self, code: int | None) -> int | None:
        """Return the program's exit code for the monitor's; None if the program never started.

        Raises:
            NotStarted: the monitor has ended without starting the program.
        """
        reported = self._status.exit_code()
        if reported is None:
            if code is not None and code >= 0:
                raise NotStarted
            return code
        return 128 - reported if reported - 128 in _SIGNALS else reported

    def close(self) -> None:
        self._status.close()
        os.close(self._monitor_fd)
        if self._init_fd is not None:
            os.close(self._init_fd)

    def _is_empty(self) -> bool:
        """Return whether init has ended, which it does as the last process of its namespace."""
        return self._init_fd is None or _has_ended(self._init_fd)

    def _signal(self, sign: signal.Signals) -> bool:
        """Signal the program, and its group unless it shares it with the monitor."""
        program = _first_child(self._init)
        if program is None:
            return False
        with suppress(ProcessLookupError):
            group = os.getpgid(program)
            if group == os.getpgid(self._monitor):
                os.kill(program, sign)
            else:
                os.killpg(group, sign)
        return True

    def _await(self, seconds: float) -> Iterator[float]:
        deadline = time.monotonic() + seconds
        delay = 0.001
        while not self._is_empty() and (left := deadline - time.monotonic()) > 0:
            yield min(delay, left)
            delay = min(delay * 1.5, 0.05)


class NotStarted(Exception):
    """The monitor could not start the program; its standard error contains the reason."""


def _kill_both(monitor: int, init: int | None) -> None:
    os.kill(monitor, signal.SIGKILL)
    if init is not None and _is_init(init):
        with suppress(ProcessLookupError):
            os.kill(init, signal.SIGKILL)


def _open_init(pid: int) -> int | None:
    """Return a pidfd of a namespace's init, None if it has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    if _is_init(pid):
        return descriptor
    os.close(descriptor)  # the id has been reused
    return None


def _is_init(pid: int) -> bool:
    """Return whether a process has the id 1 in a namespace below this one."""
    try:
        status = Path(f"/proc/{pid}/status").read_bytes()
    except OSError:
        return False
    found = re.search(rb"^NSpid:\t\d+.*\t1$", status, re.MULTILINE)
    return found is not None


def _first_child(pid: int) -> int | None:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:  # a kernel without this list
        with suppress(psutil.Error):
            children = [str(child.pid) for child in psutil.Process(pid).children()]
    except OSError:
        return None
    return int(children[0]) if children else None


def _is_zombie(child: int) -> bool:
    try:
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # other code has reaped it
        return True


def _has_ended(process: int) -> bool:
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(0))
