"""Signals for `cuggino deliver`: output, remaining processes and exit code."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cuggino import parse_event
from cuggino.events import DeliverEnded
from tests.cli.deliveries import STUBBORN, project_of
from tests.cli.stamps import unstamped
from tests.cli.stubborn import ORDINARY, PATIENT, RUN_STUBBORN, StubbornTools, ended
from tests.limits import LIMIT
from tests.screen.screen import Screen

STOPPING = "cuggino: stopping; Ctrl-C once more ends it at once"
RECEIVED = "Received SIGINT, stopping..."
RESUME = "`cuggino deliver --resume` continues where it stopped"

BESIDES = f"""
[[coding]]
[[coding.steps]]
{RUN_STUBBORN}
"""
STATUS = """{
  "createdAt": "2026-01-02",
  "updatedAt": "2026-01-02",
  "deliverables": [
    {"id": "DL-001", "description": "a login", "acceptanceCriteria": ["it works"],
     "passed": false, "blocked": false}
  ]
}
"""


@pytest.fixture
def stubborn(tmp_path: Path) -> Path:
    """A project whose agent runs a tool that only SIGKILL ends."""
    return project_of(tmp_path / "project", STUBBORN, guard="off")


@contextmanager
def command(
    project: Path,
    *args: str,
    program: str = ORDINARY,
    out: int = subprocess.PIPE,
    err: int = subprocess.PIPE,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the command while its tool works, and terminate everything afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, "deliver", *args],
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        env={**os.environ, "TERM": "xterm", "NO_COLOR": ""},
    )
    tools = StubbornTools(process.pid)
    with ended(process, tools):
        tools.wait()
        yield process


@pytest.mark.parametrize(
    ("args", "code"),
    [([], 130), pytest.param(["--compat-exit-codes"], 0, marks=pytest.mark.real_agent)],
)
def test_the_first_one_stops_the_loop(args: list[str], code: int, stubborn: Path) -> None:
    """The session is stopped, and the loop prints its progress and how to resume."""
    with command(stubborn, *args) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    lines = unstamped(out.decode())
    place = lines.index("User interrupted")
    assert ["", RECEIVED] == lines[place - 2 : place]
    overall = lines[place + 1]
    assert overall.startswith("Overall: 1 session(s), 0/0 deliverables passed, cost=$0.0000, ")
    ending = ["User interrupted", overall, "Session interrupted by user", RESUME]
    assert ending == [line for line in lines[place:] if line]
    assert (code, [STOPPING]) == (process.returncode, err.decode().splitlines()[1:])


@pytest.mark.real_agent  # the same as for `cuggino run`: with the second command
def test_the_second_one_exits_immediately(stubborn: Path) -> None:
    """A second Ctrl-C during termination exits without further output."""
    with command(stubborn, program=PATIENT) as process:
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        while STOPPING != process.stderr.readline().decode().rstrip():
            pass
        process.send_signal(signal.SIGINT)
        out, _err = process.communicate(timeout=LIMIT)
    assert (130, False) == (process.returncode, b"User interrupted" in out)


@pytest.mark.real_agent  # the same as for `cuggino run`: with the second command
def test_with_json(stubborn: Path) -> None:
    """With `--json` the last event is the interruption, and nothing else is printed."""
    with command(stubborn, "--json") as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    assert (130, 1) == (process.returncode, len(err.splitlines()))
    last = [parse_event(line) for line in out.decode().splitlines()][-1]
    assert isinstance(last, DeliverEnded)
    assert "interrupted" == last.reason


@pytest.mark.real_agent
def test_sigterm(stubborn: Path) -> None:
    """SIGTERM stops the agent and exits with its own code; the run can be resumed."""
    with command(stubborn) as process:
        process.send_signal(signal.SIGTERM)
        out, _err = process.communicate(timeout=LIMIT)
    assert 143 == process.returncode
    assert RESUME == out.decode().splitlines()[-1]


@pytest.mark.real_agent
def test_on_a_terminal(tmp_path: Path) -> None:
    """The list stays below the lines until the first Ctrl-C, then disappears."""
    project = project_of(tmp_path / "project", BESIDES, guard="off")
    (project / ".autonoe").mkdir()
    (project / ".autonoe" / "status.json").write_text(STATUS)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
    screen = Screen(200)
    decoder = codecs.getincrementaldecoder("utf-8")()

    def read(until: Callable[[], bool]) -> None:
        while not until():
            screen.write(decoder.decode(os.read(ours, 4096)))

    below = ["Deliverables: 0/1 passed", "  ○ DL-001 a login"]

    try:
        with command(project, "--color", "never", out=theirs, err=theirs) as process:
            read(lambda: "Running Bash... (1 tool)" in screen.getvalue())
            read(lambda: below == screen.visible()[-4:-2])  # a look may meet half a drawing
            process.send_signal(signal.SIGINT)
            read(lambda: "where it stopped" in screen.getvalue())
            assert 130 == process.wait(LIMIT)
    finally:
        os.close(ours)
        os.close(theirs)
    lines = unstamped("\n".join(screen.visible()))
    place = lines.index(STOPPING)
    assert ["", RECEIVED] == lines[place - 2 : place]
    assert any("▶ Bash: trap" in line for line in lines[:place])
    assert "User interrupted" == lines[place + 1]
    assert not any("Deliverables:" in line or "⚡" in line for line in lines)
