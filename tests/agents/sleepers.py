"""What a tool of a test has started: whether it runs, and whether it is gone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

import psutil


def running(command: str) -> list[int]:
    """The processes that run these words, which one file of tests has for itself."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cmdline() == command.split():
                found.append(process.pid)
    return found


def wait_for(what: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until it is so; fails when it does not come about."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come about"
        threading.Event().wait(0.02)
