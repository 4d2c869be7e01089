"""The status area of a job: suspended, in the background, interrupted."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.limits import LIMIT
from tests.processes.test_process_enclosed import SHELL

JOB = """
import sys, threading
from datetime import UTC, datetime
from cuggino_cli.follow.follower import _interrupting
from cuggino_cli.screen.fragments import Fragment
from cuggino_cli.screen import live
from cuggino_cli.screen.live import KeyActions, LiveScreen
from cuggino_cli.screen.terminal import Lines

live._PARK_S = 300.0  # however busy the machine is

class Status:
    def rows(self, now, *, columns, height):
        return [[Fragment("plain", "the status")]]
    def title(self):
        return "cuggino"

over = threading.Event()
def press(key):
    screen.print([Fragment("plain", f"pressed {key}")])
    if key == "q":
        over.set()

screen = LiveScreen(
    Lines(sys.stdout, color=False, is_terminal=True),
    clock=lambda: datetime.now(UTC),
    stdin=sys.stdin,
    actions=KeyActions(press=press, steer=press),
    term="xterm",
)
screen.show(Status())
def interrupt():
    screen.print([Fragment("plain", "stopping")])

with screen.handling_signals(), _interrupting(interrupt, screen.abandon):
    screen.start()
    while not over.wait(0.5):  # as `run` waits: a signal just before a wait does not end it
        pass
screen.stop()
print("left")
"""


class Shell:
    """A shell with the job in the foreground of a terminal."""

    def __init__(self, folder: Path) -> None:
        self.ours, theirs = pty.openpty()
        self.theirs = theirs
        self.before = termios.tcgetattr(theirs)
        self.seen = ""
        self._changed = threading.Condition()
        self.process = subprocess.Popen(
            [sys.executable, "-c", SHELL, "-c", JOB],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(Path.cwd())},
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self.ours, 65536)
            except OSError:
                return
            with self._changed:
                self.seen += data.decode(errors="replace")
                self._changed.notify_all()

    def until(self, condition: Callable[[], Any]) -> None:
        ends = time.monotonic() + LIMIT
        with self._changed:
            while not condition():
                self._changed.wait(0.1)
                assert time.monotonic() < ends, self.seen

    def forget(self) -> None:
        with self._changed:
            self.seen = ""

    def type(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    @property
    def local(self) -> int:
        flags: int = termios.tcgetattr(self.theirs)[3]
        return flags

    def close(self) -> None:
        if "ended" not in self.seen:
            self.process.kill()  # the kernel ends its job with it
        self.process.wait(LIMIT)
        os.close(self.theirs)
        self._reader.join(LIMIT)
        os.close(self.ours)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    shell.until(lambda: "the status" in shell.seen)
    yield shell
    shell.close()


def test_a_suspended_job_gives_the_terminal_back(shell: Shell) -> None:
    """Ctrl-Z erases the status and restores the mode; in the foreground both are back."""
    shell.until(lambda: not shell.local & termios.ICANON)
    shell.type("\x1a")
    shell.until(lambda: "stopped" in shell.seen)
    assert termios.tcgetattr(shell.theirs)[:4] == shell.before[:4]
    assert re.search(r"\x1b\[J(?!.*the status)", shell.seen, re.DOTALL)
    shell.forget()
    shell.type("\n")
    shell.until(lambda: "the status" in shell.seen)
    shell.until(lambda: not shell.local & termios.ICANON)
    shell.type("p")
    shell.until(lambda: "pressed p" in shell.seen)
    shell.type("q")
    shell.until(lambda: "ended 0" in shell.seen)
    assert termios.tcgetattr(shell.theirs)[:4] == shell.before[:4]


def test_a_second_interrupt_gives_the_terminal_back(shell: Shell) -> None:
    """Ctrl-C is the kernel's signal; the second one ends the process with the mode restored."""
    shell.until(lambda: not shell.local & termios.ICANON)
    shell.type("\x03")
    shell.until(lambda: "stopping" in shell.seen)
    shell.type("\x03")
    shell.until(lambda: "ended 130" in shell.seen)
    assert termios.tcgetattr(shell.theirs)[:4] == shell.before[:4]
