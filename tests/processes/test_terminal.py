"""`run_in_terminal`: the terminal is the program's, in an enclosure too."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest

from cuggino.errors import SpawnFailed
from cuggino.processes import run_in_terminal
from cuggino.sandbox import Enclosure
from cuggino.testing import no_leaks
from tests.limits import LIMIT
from tests.processes.enclosures import LAUNCHER, NAMESPACE, hiding, marked, needs_namespaces
from tests.processes.subscribers import children, eventually, python

SHELL = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
while True:
    _, status = os.waitpid(job, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpid())
    if not os.WIFSTOPPED(status):
        break
    print("stopped", flush=True)
    sys.stdin.readline()
    os.tcsetpgrp(0, job)
    os.killpg(job, signal.SIGCONT)
print("ended", os.waitstatus_to_exitcode(status), flush=True)
"""
"""A shell with one job in the foreground, which any line continues when it has stopped."""

JOB = """
import json, os, signal, sys
from pathlib import Path
from cuggino.sandbox import Enclosure
from cuggino.processes import run_in_terminal

def leave(*_):
    sys.exit(9)

signal.signal(signal.SIGTERM, leave)
program, enclosure = sys.argv[1:]
print("code", run_in_terminal(
    [sys.executable, "-I", "-S", "-c", program],
    cwd=Path.cwd(),
    env=os.environ,
    enclosure=Enclosure(**json.loads(enclosure)) if enclosure else None,
), flush=True)
"""

PROGRAM = """
import os, select, signal, subprocess, sys
def note(number, frame):
    os.write(1, b"got SIGINT\\n")
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
signal.signal(signal.SIGINT, note)
def leave(number, frame):
    os.write(1, b"asked to leave\\n")
    sys.exit(3)
signal.signal(signal.SIGTERM, leave)
if os.getppid() == 1:  # in a namespace, which ends it
    subprocess.Popen(["sleep", "600"], start_new_session=True)
interrupts, wakeup = os.pipe()  # so that a signal just before it waits wakes it, too
os.set_blocking(wakeup, False)
signal.set_wakeup_fd(wakeup)
print("ready", sys.stdin.isatty(), flush=True)
while True:
    if interrupts in select.select([0, interrupts], [], [])[0]:
        os.read(interrupts, 1)
    elif line := os.read(0, 4096).strip():
        print("heard", line.decode(), flush=True)
    else:
        break
sys.exit(5)
"""


class _Terminal:
    """The other side of a terminal."""

    def __init__(self, master: int, shell: subprocess.Popen[bytes]) -> None:
        self._master = master
        self.shell = shell
        self.text = ""

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def wait_for(self, text: str) -> None:
        """Wait until the screen shows the text, after what was waited for before."""
        deadline = time.monotonic() + LIMIT
        while text not in self.text:
            assert time.monotonic() < deadline, self.text
            if select.select([self._master], [], [], 0.1)[0]:
                self.text += os.read(self._master, 4096).decode()
        self.text = self.text.partition(text)[2]

    def job(self) -> int:
        """Return the id of the job."""
        (pid,) = Path(f"/proc/{self.shell.pid}/task/{self.shell.pid}/children").read_text().split()
        return int(pid)

    def program(self) -> psutil.Process:
        """Return the program itself, behind its monitor."""
        (found,) = (
            process
            for process in psutil.Process(self.job()).children(recursive=True)
            if process.name() != "bwrap" and process.cmdline()[-1:] == [PROGRAM]
        )
        return found


@contextmanager
def _session(enclosure: Enclosure | None) -> Iterator[_Terminal]:
    fields = "" if enclosure is None else json.dumps(asdict(enclosure), default=dict)
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", SHELL, "-c", JOB, PROGRAM, fields],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        cwd=Path(__file__).parents[2],
    ) as shell:
        os.close(slave)
        try:
            yield _Terminal(master, shell)
        finally:
            shell.kill()
            os.close(master)


@pytest.fixture(params=[None, LAUNCHER, NAMESPACE], ids=["plain", "launcher", "namespace"])
def enclosure(request: pytest.FixtureRequest) -> Enclosure | None:
    """No enclosure, and one of each kind."""
    found: Enclosure | None = request.param
    if found is not None and found.namespace:
        needs_namespaces()
    return found


def test_an_interrupt_is_the_programs(enclosure: Enclosure | None) -> None:
    """Ctrl-C reaches the program and ends neither it nor its monitor."""
    with _session(enclosure) as terminal:
        terminal.wait_for("ready True")
        terminal.type("\x03")
        terminal.wait_for("got SIGINT")
        terminal.type("hello\n")
        terminal.wait_for("heard hello")
        terminal.type("\n")
        terminal.wait_for("code 5")
        terminal.wait_for("ended 0")


def test_the_shell_stops_and_continues_it(enclosure: Enclosure | None) -> None:
    """Ctrl-Z gives the terminal back to the shell, which lets program and cuggino go on."""
    with _session(enclosure) as terminal:
        terminal.wait_for("ready True")
        terminal.type("\x1a")
        terminal.wait_for("stopped")
        assert eventually(lambda: terminal.program().status() == psutil.STATUS_STOPPED)
        terminal.type("fg\n")
        terminal.type("again\n")
        terminal.wait_for("heard again")
        terminal.type("\n")
        terminal.wait_for("code 5")


def test_a_terminated_session_asks_its_program_to_leave(enclosure: Enclosure | None) -> None:
    """SIGTERM for cuggino reaches the program; in a namespace nothing else is left then."""
    with _session(enclosure) as terminal:
        terminal.wait_for("ready True")
        os.kill(terminal.job(), signal.SIGTERM)
        terminal.wait_for("asked to leave")
        terminal.wait_for("ended 9")
        if enclosure is not None and enclosure.namespace:
            assert not marked()


def test_a_killed_session_leaves_nothing() -> None:
    """The kernel ends a namespace when cuggino is killed."""
    needs_namespaces()
    with _session(NAMESPACE) as terminal:
        terminal.wait_for("ready True")
        assert marked()
        os.kill(terminal.job(), signal.SIGKILL)
        terminal.wait_for("ended -9")
        assert eventually(lambda: not marked())


@pytest.mark.parametrize("code", ["sys.exit(4)", "os.kill(os.getpid(), 9)"])
def test_the_exit_code(enclosure: Enclosure | None, tmp_path: Path, code: str) -> None:
    """The exit code is the program's, negative for a signal; nothing is left open."""
    argv = python(f"import os, sys\nassert os.getcwd() == {str(tmp_path)!r}\n{code}")
    with no_leaks():
        ended = run_in_terminal(argv, cwd=tmp_path, env=os.environ, enclosure=enclosure)
    assert ended == (4 if "exit" in code else -9)


def test_a_program_that_is_missing(enclosure: Enclosure | None, tmp_path: Path) -> None:
    """A missing program is an error, not an exit code."""
    with no_leaks(), pytest.raises(FileNotFoundError):
        run_in_terminal(["./missing"], cwd=tmp_path, env=os.environ, enclosure=enclosure)


def test_an_enclosure_that_cannot_be_made(tmp_path: Path) -> None:
    """An enclosure that fails is an error, and nothing is left."""
    needs_namespaces()
    failing = hiding("--bind", tmp_path / "missing", "/mnt")
    with no_leaks(), pytest.raises(SpawnFailed, match="sandbox could not be set up"):
        run_in_terminal(["true"], cwd=tmp_path, env=os.environ, enclosure=failing)
    assert set() == children()
