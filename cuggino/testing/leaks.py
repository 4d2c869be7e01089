"""Leak checks for processes, threads and files."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

from cuggino.operators.scheduler import default_scheduler
from cuggino.processes import GUARDIAN


@contextmanager
def no_leaks(*, within: float = 30.0) -> Iterator[None]:
    """Assert that the block leaves no child process, thread or open file behind.

    Resources that are still closing get up to `within` seconds. The guardian process and the
    default lane live as long as this process and do not count. An exception of the block itself is
    raised without a check.

    Raises:
        AssertionError: something was left behind; the message lists it.
    """
    __tracebackhide__ = True  # pytest shows the line of the test instead
    GUARDIAN.cookie()  # starts it, so that its pipe is not counted as left by the block
    default_scheduler().schedule(lambda *_: None)  # the same
    before = _held()
    files = _open_files()
    yield
    deadline = time.monotonic() + within
    while (left := _left(before, _held())) and time.monotonic() < deadline:
        threading.Event().wait(0.02)
    if _FILES in left and (names := sorted(_open_files() - files)):
        left[left.index(_FILES)] = f"{_FILES} {', '.join(names)}"
    if left:
        raise AssertionError(f"left behind: {', '.join(sorted(left))}")


_FILES = "open files"
_KEPT = "cuggino-loop"
"""The name of lanes' threads, of which the default one is kept."""


def _held() -> dict[str, int]:
    me = psutil.Process()
    children = me.children(recursive=True)
    guardians = [c for c in children if is_guardian(c)]
    held = {f"process {c.pid} {_name(c)}": 1 for c in children if c not in guardians}
    held |= {f"thread {t.name} {t.ident}": 1 for t in threading.enumerate() if t.name != _KEPT}
    # The pipe to the guardian stays as long as the guardian.
    held[_FILES] = me.num_fds() - len(guardians) if os.name == "posix" else 0
    return held


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.Error:  # it has ended since
        return ""


def _open_files() -> set[str]:
    """Return the open files with a name, so no pipes and sockets."""
    with suppress(psutil.Error, OSError):
        return {file.path for file in psutil.Process().open_files()}
    return set()


def _left(before: dict[str, int], after: dict[str, int]) -> list[str]:
    return [name for name, count in after.items() if count > before.get(name, 0)]


def is_guardian(process: psutil.Process) -> bool:
    """Return whether the process is a guardian, or has just ended."""
    try:
        return any(part.endswith("guardian.py") for part in process.cmdline())
    except psutil.Error:
        return True
