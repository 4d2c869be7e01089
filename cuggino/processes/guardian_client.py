"""The client of `guardian.py`: one guardian per Python process, started with the first child.

Until the guarded process ends, the guardian is a shell that reads a pipe whose only writer is that
process: it takes a tenth of the time and of the memory of an interpreter. Lines: `+ PGID` and
`- PGID` when a process group starts and ends, `quit` when nothing is left. At the end of the input
without `quit` the shell becomes `guardian.py`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import uuid
from contextlib import suppress
from pathlib import Path
from typing import IO

import psutil

from cuggino.processes.process_tree import COOKIE, Ladder, ProcessTree
from cuggino.programs import program, programs_folder

_WAIT = """trap '' INT TERM HUP
groups=
while read -r sign group; do
    case $sign in
        +) groups="$groups $group" ;;
        -)
            left=
            for one in $groups; do [ "$one" = "$group" ] || left="$left $one"; done
            groups=$left ;;
        *) exit ;;
    esac
done
exec "$0" "$@" $groups
"""
"""Reads the groups, then runs the program and the arguments that follow, with those that remain."""


_LEAVING = 1.0
"""Seconds to wait for the exit of a guardian with nothing to do."""


class GuardianClient:
    """Issues cookies and reports living process groups to the guardian.

    Work continues without a guardian that cannot be started or was killed: disposal and the exit
    handler remain, and the next child tries again.
    """

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._run = ""
        self._count = 0
        self._hooked = False

    def cookie(self) -> str:
        """Return a new cookie; a guardian that knows its prefix is running.

        The cookie continues the one of this process, so that terminating this process's tree
        finds its children too. The closing slash keeps `x.1/` apart from `x.12/`.
        """
        with self._lock:
            if not self._run:
                self._run = f"{os.environ.get(COOKIE, '')}{os.getpid()}-{uuid.uuid4().hex}."
            self._ensure()
            self._count += 1
            return f"{self._run}{self._count}/"

    def add(self, group: int) -> None:
        """Report a new process group."""
        with self._lock:
            self._groups.add(group)
            self._report(f"+ {group}\n")

    def remove(self, group: int) -> None:
        """Report the end of a group; call it before its leader is reaped and the id reused."""
        with self._lock:
            self._groups.discard(group)
            self._report(f"- {group}\n")

    def close(self) -> None:
        with self._lock:
            process, self._process = self._process, None
            if process is None:
                return
            if not self._groups:
                with suppress(OSError):
                    _pipe(process).write(b"quit\n")
            _pipe(process).close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_LEAVING)

    def _report(self, line: str) -> None:
        if self._process is not None:
            with suppress(OSError):  # it was killed; `_ensure` starts another one
                _pipe(self._process).write(line.encode())

    def _ensure(self) -> None:
        if self._process is not None:
            if self._process.poll() is None:
                return
            _pipe(self._process).close()
            self._process = None
        if not sys.executable:  # an embedded interpreter
            return
        if not self._hooked:
            self._hooked = True
            os.register_at_fork(after_in_child=self._forked)
        python = [sys.executable, "-I", "-S"]
        folders = [programs_folder(), Path(psutil.__file__).parents[1]]
        with suppress(OSError):
            self._process = subprocess.Popen(
                [
                    "/bin/sh",
                    "-c",
                    _WAIT,
                    *python,
                    program("processes/guardian.py"),
                    self._run,
                    *folders,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd="/",
                start_new_session=True,
            )
        for group in self._groups:
            self._report(f"+ {group}\n")

    def _forked(self) -> None:
        """Forget the guardian in a forked copy of this process: it belongs to the original."""
        if self._process is not None:
            _pipe(self._process).close()
            self._process.returncode = 0  # not our child: nothing to wait for
        hooked = self._hooked
        self._reset()
        self._hooked = hooked


def _pipe(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdin is not None
    return process.stdin


GUARDIAN = GuardianClient()
"""The guardian of this process, started with the first cookie."""

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
