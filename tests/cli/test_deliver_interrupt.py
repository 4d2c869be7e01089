"""Signals for `cuggino deliver`: output, remaining processes and exit code."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from cuggino import parse_event
from cuggino.events import DeliverEnded
from tests.cli.deliveries import STUBBORN, project_of
from tests.cli.stamps import unstamped
from tests.cli.stubborn import PATIENT, RUN_STUBBORN, Terminal, working
from tests.limits import LIMIT

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


@pytest.mark.parametrize(
    ("args", "code"),
    [([], 130), pytest.param(["--compat-exit-codes"], 0, marks=pytest.mark.real_agent)],
)
def test_the_first_one_stops_the_loop(args: list[str], code: int, stubborn: Path) -> None:
    """The session is stopped, and the loop prints its progress and how to resume."""
    with working(stubborn, "deliver", *args) as (process, tools):
        tools.wait()
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
    with working(stubborn, "deliver", program=PATIENT) as (process, tools):
        tools.wait()
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
    with working(stubborn, "deliver", "--json") as (process, tools):
        tools.wait()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    assert (130, 1) == (process.returncode, len(err.splitlines()))
    last = [parse_event(line) for line in out.decode().splitlines()][-1]
    assert isinstance(last, DeliverEnded)
    assert "interrupted" == last.reason


@pytest.mark.real_agent
def test_sigterm(stubborn: Path) -> None:
    """SIGTERM stops the agent and exits with its own code; the run can be resumed."""
    with working(stubborn, "deliver") as (process, tools):
        tools.wait()
        process.send_signal(signal.SIGTERM)
        out, _err = process.communicate(timeout=LIMIT)
    assert 143 == process.returncode
    assert RESUME == out.decode().splitlines()[-1]


@pytest.mark.real_agent
def test_on_a_terminal(tmp_path: Path, terminal: Terminal) -> None:
    """The list stays below the lines until the first Ctrl-C, then disappears."""
    project = project_of(tmp_path / "project", BESIDES, guard="off", sandbox="off")
    (project / ".autonoe").mkdir()
    (project / ".autonoe" / "status.json").write_text(STATUS)
    below = ["Deliverables: 0/1 passed", "  ○ DL-001 a login"]
    words = ("deliver", "--color", "never")
    with working(project, *words, at=terminal) as (process, tools):
        tools.wait()
        terminal.read("Running Bash... (1 tool)")
        terminal.read(lambda: below == terminal.screen.visible()[-4:-2])  # not half a drawing
        process.send_signal(signal.SIGINT)
        terminal.read("where it stopped")
        assert 130 == process.wait(LIMIT)
    lines = unstamped("\n".join(terminal.screen.visible()))
    place = lines.index(STOPPING)
    assert ["", RECEIVED] == lines[place - 2 : place]
    assert any("▶ Bash: trap" in line for line in lines[:place])
    assert "User interrupted" == lines[place + 1]
    assert not any("Deliverables:" in line or "⚡" in line for line in lines)
