"""Processes that a command leaves running, terminated later and together."""

from __future__ import annotations

import os
import signal

from cuggino.processes.guardian_client import GUARDIAN
from cuggino.processes.process_tree import COOKIE, Ladder, ProcessTree

_LADDER: Ladder = ((signal.SIGTERM, 2.0),)


class KeptProcesses:
    """The processes that are started with `environment`, and theirs, until `end`.

    If the Python process dies, even by SIGKILL, they are terminated too.
    """

    def __init__(self) -> None:
        self._cookie: str | None = None

    def environment(self) -> dict[str, str]:
        """Return this process's environment with a mark for those to come."""
        self._cookie = self._cookie or GUARDIAN.cookie()
        return {**os.environ, COOKIE: self._cookie}

    def end(self) -> None:
        """Terminate all of them, and return when they are gone; any number of times."""
        cookie, self._cookie = self._cookie, None
        if cookie is not None:
            ProcessTree((), cookie).end(_LADDER)
