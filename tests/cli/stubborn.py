"""A tool of an agent that no signal but SIGKILL ends, found from outside of the agent's view."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

import psutil

from tests.limits import LIMIT
from tests.sources.subscribers import eventually

ORDINARY = "from cuggino_cli.main import entry; entry()"
PATIENT = f"""
from cuggino.sources import process

Command = process.Command
process.Command = lambda **given: Command(**{{**given, "grace": {LIMIT}}})
from cuggino_cli.main import entry

entry()
"""
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
def ended(process: subprocess.Popen[bytes], tools: StubbornTools) -> Iterator[None]:
    """Kill the process afterwards, and assert that none of its tools is left."""
    try:
        yield
    finally:
        process.kill()
        process.communicate()
    assert eventually(lambda: not tools.are_alive)
