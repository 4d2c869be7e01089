"""Ctrl-C in each loop: the immediate message, the second one, and what is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cuggino import parse_event
from cuggino.config import Config, save_config
from tests.cli import deliveries, loops
from tests.cli.keyboard import CTRL_C
from tests.cli.rounds import PLANS
from tests.cli.stamps import unstamped
from tests.cli.stubborn import PATIENT, RUN_STUBBORN, read_until, working
from tests.limits import LIMIT
from tests.screen.pseudo_terminal import PseudoTerminal
from tests.screen.screen import Screen

WORDS = {
    "run": ("run", "--focus", "x"),
    "deliver": ("deliver",),
    "plan": ("loop", "--auto"),
    "build": ("loop", "--auto"),
}
"""The command whose agent is interrupted, also by the phase of `cuggino loop`."""
NOTICE = "cuggino: stopping; Ctrl-C once more ends it at once"
RECEIVED = "Received SIGINT, stopping..."
RESUME = "`cuggino {} --resume` continues where it stopped"
STARTING = '''
import click

from cuggino_cli import main

# What dataclasses and pydantic do while they are imported.
TEXT = """
import os, signal
os.kill(os.getpid(), signal.SIGINT)
while True: pass
"""


@click.command("status")
def command():
    exec(TEXT, {})


main.cli.get_command = lambda _ctx, name: command if name == "status" else None
main.entry(["status"])
'''
STATUS = """{
  "createdAt": "2026-01-02",
  "updatedAt": "2026-01-02",
  "deliverables": [
    {"id": "DL-001", "description": "a login", "acceptanceCriteria": ["it works"],
     "passed": false, "blocked": false}
  ]
}
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the user's own configuration out."""
    monkeypatch.setenv("HOME", str(tmp_path))


def stubborn(place: Path, name: str, role: str = "") -> Path:
    """Return a project whose agent says something, then runs a tool that only SIGKILL ends.

    In a view the tool would be killed with its agent, too soon to look at it.
    """
    folder = place / "project"
    role = role or {"run": "implementing", "deliver": "initializer"}.get(name, name)
    before = {"run": PLANS, "build": '[[plan]]\nsteps = [{ say = "planned" }]\n'}.get(name, "")
    steps = f"[[{role}.steps]]\n"
    scenario = f'{before}\n[[{role}]]\n{steps}say = "Half a line"\n{steps}{RUN_STUBBORN}\n'
    match name:
        case "deliver":
            return deliveries.project_of(folder, scenario, guard="off", sandbox="off")
        case "plan" | "build":
            folder.mkdir()
            return loops.project_of(folder, scenario, guard="off")
        case _:
            (folder / ".specs").mkdir(parents=True)
            (folder / ".specs" / "login.md").write_text("# Login\n")
            (folder / "scenario.toml").write_text(scenario)
            save_config(folder, Config(agent="scripted:scenario.toml", sandbox="off"))
            return folder


@pytest.mark.real_agent
def test_the_first_one_is_answered_at_once(tmp_path: Path) -> None:
    """One line on standard error reports the stop immediately; the summary follows."""
    project = stubborn(tmp_path, "run")
    with working(project, *WORDS["run"], program=PATIENT) as (process, tools):
        tools.wait()
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert f"{NOTICE}\n" == process.stderr.readline().decode()
        assert tools.are_alive, "it is still being ended"
        tools.kill()
        out, err = process.communicate(timeout=LIMIT)
    assert 130 == process.returncode
    assert b"[Summary] Interrupted" in out
    assert NOTICE.encode() not in out
    assert b"" == err.strip()


only_real = pytest.mark.real_agent  # with the second command


@pytest.mark.parametrize(
    ("args", "code"), [([], 130), pytest.param(["--compat-exit-codes"], 0, marks=only_real)]
)
@pytest.mark.parametrize("name", ["deliver", pytest.param("plan", marks=only_real), "build"])
def test_the_first_one_stops_the_loop(
    name: str, args: list[str], code: int, tmp_path: Path
) -> None:
    """No partial line remains, and the loop prints its progress and how to resume (LOP-008)."""
    with working(stubborn(tmp_path, name), *WORDS[name], *args) as (process, tools):
        tools.wait()
        begun = read_until(process.stdout, "▶ Bash")
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=LIMIT)
    out, err = (begun + rest).decode(), unstamped(errors.decode())
    lines = unstamped(out)
    place = next(n for n, line in enumerate(lines) if line.startswith("Overall: "))
    assert (code, True) == (process.returncode, out.endswith("\n"))
    if name == "deliver":
        assert ["", RECEIVED, "User interrupted"] == lines[place - 3 : place]
        assert lines[place].startswith("Overall: 1 session(s), 0/0 deliverables passed, cost=$0.00")
        assert (
            [NOTICE] == [line for line in err if line.startswith("cuggino: stopping")] == err[-1:]
        )
        rest_of = ["Session interrupted by user", RESUME.format("deliver")]
        assert rest_of == [line for line in lines[place + 1 :] if line]
    else:
        assert "Half a line" in lines[:place]
        assert [RESUME.format("loop")] == lines[place + 1 :]
        assert [NOTICE, "Loop cancelled by user."] == err[-2:]
        assert (name == "plan") == ("Completed iteration 1" not in lines)
        assert "Completed iteration 2" not in lines


@pytest.mark.real_agent
@pytest.mark.parametrize(
    ("name", "ending"), [("run", b"Summary"), ("deliver", b"User interrupted")]
)
def test_the_second_one_exits_immediately(name: str, ending: bytes, tmp_path: Path) -> None:
    """A second Ctrl-C during termination exits without further output."""
    project = stubborn(tmp_path, name)
    with working(project, *WORDS[name], program=PATIENT) as (process, tools):
        tools.wait()
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        while NOTICE != process.stderr.readline().decode().rstrip():
            pass
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    assert (130, False, b"") == (process.returncode, ending in out, err)


@pytest.mark.real_agent
@pytest.mark.parametrize(
    ("name", "tag"), [("run", "ToolCall"), ("deliver", "DeliverEnded"), ("plan", "PlanBuildEnded")]
)
def test_with_json(name: str, tag: str, tmp_path: Path) -> None:
    """With `--json` there are only events, of which a loop's last one is the interruption."""
    with working(stubborn(tmp_path, name), *WORDS[name], "--json") as (process, tools):
        tools.wait()
        begun = read_until(process.stdout, '"ToolCall"')
        process.send_signal(signal.SIGINT)
        rest, err = process.communicate(timeout=LIMIT)
    last = [parse_event(line) for line in (begun + rest).decode().splitlines()][-1]
    assert (130, tag) == (process.returncode, last.tag)
    assert name == "run" or "interrupted" == getattr(last, "reason")  # noqa: B009
    assert name != "run" or b"" == err.strip()
    assert name != "deliver" or 1 == len(err.splitlines())


@pytest.mark.real_agent
def test_sigterm(tmp_path: Path) -> None:
    """SIGTERM stops the agent and exits with its own code; the run can be resumed."""
    with working(stubborn(tmp_path, "deliver"), "deliver") as (process, tools):
        tools.wait()
        process.send_signal(signal.SIGTERM)
        out, _err = process.communicate(timeout=LIMIT)
    assert 143 == process.returncode
    assert RESUME.format("deliver") == out.decode().splitlines()[-1]


@pytest.mark.real_agent
def test_the_summary_on_a_terminal(tmp_path: Path, terminal: PseudoTerminal) -> None:
    """The line replaces the status, and the summary starts below it."""
    words = (*WORDS["run"], "--color", "never")
    with working(stubborn(tmp_path, "run"), *words, at=terminal) as (process, tools):
        tools.wait()
        terminal.hears("Working...")
        terminal.hears("▶ Bash: trap")  # the tool may work before its line is there
        process.send_signal(signal.SIGINT)
        terminal.hears("where it stopped")
        assert 130 == process.wait(LIMIT)
    lines = terminal.screen.visible()
    place = lines.index(NOTICE)
    assert any("▶ Bash: trap" in line for line in lines[:place])
    assert ["", "[Summary] Interrupted"] == lines[place + 1 : place + 3]
    assert not any("Working" in line for line in lines)


@pytest.mark.real_agent
def test_the_list_on_a_terminal(tmp_path: Path, terminal: PseudoTerminal) -> None:
    """The list stays below the lines until the first Ctrl-C, then disappears."""
    project = stubborn(tmp_path, "deliver", "coding")
    (project / ".autonoe").mkdir()
    (project / ".autonoe" / "status.json").write_text(STATUS)
    below = ["Deliverables: 0/1 passed", "  ○ DL-001 a login"]
    words = ("deliver", "--color", "never")
    with working(project, *words, at=terminal) as (process, tools):
        tools.wait()
        terminal.hears("Running Bash... (1 tool)")
        terminal.until(lambda: below == terminal.screen.visible()[-4:-2])  # not half a drawing
        process.send_signal(signal.SIGINT)
        terminal.hears("where it stopped")
        assert 130 == process.wait(LIMIT)
    lines = unstamped("\n".join(terminal.screen.visible()))
    place = lines.index(NOTICE)
    assert ["", RECEIVED] == lines[place - 2 : place]
    assert any("▶ Bash: trap" in line for line in lines[:place])
    assert "User interrupted" == lines[place + 1]
    assert not any("Deliverables:" in line or "⚡" in line for line in lines)


@pytest.mark.real_agent
def test_at_the_question(tmp_path: Path, narrow_terminal: PseudoTerminal) -> None:
    """Ctrl-C at the question starts nothing and restores the terminal."""
    keyboard = narrow_terminal
    project = stubborn(tmp_path, "plan")
    with working(project, "loop", at=keyboard, types=True) as (process, _tools):
        keyboard.hears("Select (1-3, default=2):")
        keyboard.type(CTRL_C)
        keyboard.hears("Loop cancelled by user.")
        assert 130 == process.wait(LIMIT)
    assert keyboard.before == keyboard.mode()


@pytest.mark.real_agent
def test_after_a_question_on_a_terminal(tmp_path: Path, narrow_terminal: PseudoTerminal) -> None:
    """After an answer the loop runs; Ctrl-C ends it without a spinner and restores the terminal."""
    keyboard = narrow_terminal
    words = ("loop", "--color", "never")
    project = stubborn(tmp_path, "build")
    with working(project, *words, at=keyboard, types=True) as (process, tools):
        keyboard.hears("Select (1-3, default=2):")
        keyboard.type("3\r")
        keyboard.hears("Jobs: ")
        keyboard.hears("Working...")
        keyboard.hears("▶ Bash")  # the tool may work before its line is there
        tools.wait()
        process.send_signal(signal.SIGINT)
        keyboard.hears("where it stopped")
        assert 130 == process.wait(LIMIT)
    assert keyboard.before == keyboard.mode()
    written = keyboard.raw
    screen = Screen(200)
    screen.write(written[written.index("Jobs: ") :].replace("\r\n", "\n"))
    lines = unstamped("\n".join(screen.visible()))
    assert "Half a line" in lines
    assert [NOTICE, "Loop cancelled by user."] == lines[lines.index(NOTICE) :][:2]
    assert not any("Working" in line for line in lines)


@pytest.mark.real_agent
def test_while_a_command_starts(tmp_path: Path) -> None:
    """Also an import ends with the exit code; Python would let the signal end the program."""
    (tmp_path / "started.py").write_text(STARTING)
    done = subprocess.run(
        [sys.executable, "-m", "started"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert (130, "") == (done.returncode, done.stderr.strip())
