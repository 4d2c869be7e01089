"""Ctrl-C in `cuggino loop`: at the question, while planning and while building."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from cuggino import parse_event
from cuggino.events import PlanBuildEnded
from tests.cli.keyboard import CTRL_C
from tests.cli.loops import project_of
from tests.cli.stamps import unstamped
from tests.cli.stubborn import RUN_STUBBORN, Terminal, read_until, working
from tests.limits import LIMIT
from tests.screen.screen import Screen

WAITING = """
[[{0}.steps]]
say = "Half a line"
[[{0}.steps]]
{1}
"""
"""An agent that says something, then runs a tool that no signal but SIGKILL ends."""
STOPPING = "cuggino: stopping; Ctrl-C once more ends it at once"
RESUME = "`cuggino loop --resume` continues where it stopped"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the user's own configuration out."""
    monkeypatch.setenv("HOME", str(tmp_path))


def scenario(phase: str) -> str:
    planned = '[[plan]]\nsteps = [{ say = "planned" }]\n' if phase == "build" else ""
    return planned + f"[[{phase}]]\n" + WAITING.format(phase, RUN_STUBBORN)


@pytest.mark.parametrize(
    ("args", "code"),
    [([], 130), pytest.param(["--compat-exit-codes"], 0, marks=pytest.mark.real_agent)],
)
@pytest.mark.parametrize(
    "phase",
    [
        pytest.param("plan", marks=pytest.mark.real_agent),  # with the second command
        "build",
    ],
)
def test_while_an_agent_works(phase: str, args: list[str], code: int, tmp_path: Path) -> None:
    """The session stops, no partial line remains, and the loop prints its progress (LOP-008)."""
    project = project_of(tmp_path, scenario(phase), guard="off")
    with working(project, "loop", "--auto", *args) as (process, tools):
        tools.wait()
        begun = read_until(process.stdout, "▶ Bash")
        process.send_signal(signal.SIGINT)
        rest, err = process.communicate(timeout=LIMIT)
    out = begun + rest
    lines = unstamped(out.decode())
    place = lines.index(RESUME)
    assert "Half a line" in lines[:place]
    assert lines[place - 1].startswith("Overall: ")
    assert [STOPPING, "Loop cancelled by user."] == unstamped(err.decode())[-2:]
    assert (code, phase == "plan") == (process.returncode, "Completed iteration 1" not in lines)
    assert out.endswith(b"\n")
    assert "Completed iteration 2" not in lines


@pytest.mark.real_agent  # the same as for `cuggino run`: with the second command
def test_with_json(tmp_path: Path) -> None:
    """With `--json` the last event is the interruption."""
    project = project_of(tmp_path, scenario("plan"), guard="off")
    with working(project, "loop", "--auto", "--json") as (process, tools):
        tools.wait()
        process.send_signal(signal.SIGINT)
        out, _err = process.communicate(timeout=LIMIT)
    last = parse_event(out.decode().splitlines()[-1])
    assert isinstance(last, PlanBuildEnded)
    assert (130, "interrupted") == (process.returncode, last.reason)


@pytest.mark.real_agent
def test_at_the_question(tmp_path: Path, narrow_terminal: Terminal) -> None:
    """Ctrl-C at the question starts nothing and restores the terminal."""
    keyboard = narrow_terminal
    with working(project_of(tmp_path), "loop", at=keyboard, types=True) as (process, _tools):
        keyboard.read("Select (1-3, default=2):")
        keyboard.type(CTRL_C)
        keyboard.read("Loop cancelled by user.")
        assert 130 == process.wait(LIMIT)
    assert keyboard.is_intact


@pytest.mark.real_agent
def test_on_a_terminal(tmp_path: Path, narrow_terminal: Terminal) -> None:
    """After an answer the loop runs; Ctrl-C ends it without a spinner and restores the terminal."""
    keyboard = narrow_terminal
    project = project_of(tmp_path, scenario("build"), guard="off")
    words = ("loop", "--color", "never")
    with working(project, *words, at=keyboard, types=True) as (process, tools):
        keyboard.read("Select (1-3, default=2):")
        keyboard.type("3\r")
        keyboard.read("Jobs: ")
        keyboard.read("Working...")
        keyboard.read("▶ Bash")  # the tool may work before its line is there
        tools.wait()
        process.send_signal(signal.SIGINT)
        keyboard.read("where it stopped")
        assert 130 == process.wait(LIMIT)
    assert keyboard.is_intact
    written = keyboard.screen.getvalue()
    screen = Screen(200)
    screen.write(written[written.index("Jobs: ") :].replace("\r\n", "\n"))
    lines = unstamped("\n".join(screen.visible()))
    assert "Half a line" in lines
    assert [STOPPING, "Loop cancelled by user."] == lines[lines.index(STOPPING) :][:2]
    assert not any("Working" in line for line in lines)
