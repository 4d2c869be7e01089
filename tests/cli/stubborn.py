"""Commands that are interrupted while a tool runs that no signal but SIGKILL ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import psutil

from tests.limits import LIMIT
from tests.processes.subscribers import eventually
from tests.screen.pseudo_terminal import PseudoTerminal

_PROGRAM = """
from cuggino.processes import process

Command = process.Command
process.Command = lambda **given: Command(**{{**given, "grace": {}}})
from cuggino_cli.main import entry

entry()
"""
QUICK = _PROGRAM.format(0.1)
"""A `cuggino` that soon kills stubborn tools."""
PATIENT = _PROGRAM.format(LIMIT)
"""A `cuggino` that waits for stubborn tools as long as a test does, and kills none of them."""
RUN_STUBBORN = """run = "trap '' INT TERM; while :; do sleep 1; done\""""
"""The step of a scenario in which the tool runs."""


class StubbornTools:
    """The tools that the process `root` and its descendants run."""

    def __init__(self, root: int) -> None:
        self._root = psutil.Process(root)
        self._tools: list[psutil.Process] = []

    def wait(self) -> None:
        """Wait until a tool ignores signals, which it does as soon as it sleeps."""
        assert eventually(self._found, every=0.1), "no tool was started"

    def kill(self) -> None:
        """Kill them, for whom the command waits."""
        for tool in self._tools:
            with suppress(psutil.NoSuchProcess):
                tool.kill()

    @property
    def are_alive(self) -> bool:
        """True while one of them is running."""
        return any(tool.is_running() for tool in self._tools)

    def _found(self) -> bool:
        with suppress(psutil.Error):
            for process in self._root.children(recursive=True):
                with suppress(psutil.Error):
                    if process.name() == "sleep" and (parent := process.parent()) is not None:
                        self._tools.append(parent)
                        self._tools.append(process)
                        return True
        return False


def read_until(pipe: IO[bytes] | None, text: str) -> bytes:
    """Read a pipe until the text is there: a tool may work before its line is.

    The rest stays for `communicate`.
    """
    assert pipe is not None
    read = b""
    while text.encode() not in read:
        more = os.read(pipe.fileno(), 4096)
        assert more, read.decode()
        read += more
    return read


@contextmanager
def working(
    project: Path,
    *words: str,
    program: str = QUICK,
    at: PseudoTerminal | None = None,
    types: bool = False,
) -> Iterator[tuple[subprocess.Popen[bytes], StubbornTools]]:
    """Run a command; terminate everything afterwards, and assert that no tool is left.

    It prints to pipes, or to the terminal, from which it reads if somebody `types`.
    """
    place = subprocess.PIPE if at is None else at.theirs
    environment = {"TERM": "xterm", "NO_COLOR": "", "PROMPT_TOOLKIT_NO_CPR": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words],
        cwd=project,
        stdin=place if types else subprocess.DEVNULL,
        stdout=place,
        stderr=place,
        env={**os.environ, **environment},
    )
    tools = StubbornTools(process.pid)
    try:
        yield process, tools
    finally:
        process.kill()
        process.communicate()
    assert eventually(lambda: not tools.are_alive)
