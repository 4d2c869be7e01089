"""Ctrl-C: the immediate message, and the effect of a second one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cuggino import Config, parse_event, save_config
from tests.cli.stubborn import PATIENT, RUN_STUBBORN, Terminal, read_until, working
from tests.limits import LIMIT

_STARTING = '''
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

pytestmark = pytest.mark.real_agent
WORDS = ("run", "--focus", "x")
NOTICE = "cuggino: stopping; Ctrl-C once more ends it at once\n"

STUBBORN = f"""
[[planning]]
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "# Plan"
[[planning.steps]]
say = "<PLAN_COMPLETE>One task.</PLAN_COMPLETE>"

[[implementing]]
[[implementing.steps]]
{RUN_STUBBORN}
"""


@pytest.fixture
def stubborn(ready: Path) -> Path:
    """A project whose agent runs a tool that only SIGKILL ends.

    In a view the tool would be killed with its agent, too soon to look at it.
    """
    (ready / "scenario.toml").write_text(STUBBORN)
    save_config(ready, Config(agent="scripted:scenario.toml", sandbox="off"))
    return ready


def test_the_first_one_is_answered_at_once(stubborn: Path) -> None:
    """One line on standard error reports the stop immediately; the summary follows."""
    with working(stubborn, *WORDS, program=PATIENT) as (process, tools):
        tools.wait()
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert NOTICE == process.stderr.readline().decode()
        assert tools.are_alive, "it is still being ended"
        tools.kill()
        out, err = process.communicate(timeout=LIMIT)
    assert 130 == process.returncode
    assert b"[Summary] Interrupted" in out
    assert NOTICE.encode() not in out
    assert b"" == err.strip()


def test_the_second_one_exits_immediately(stubborn: Path) -> None:
    """A second Ctrl-C during termination exits without further output."""
    with working(stubborn, *WORDS, program=PATIENT) as (process, tools):
        tools.wait()
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    assert 130 == process.returncode
    assert (False, b"") == (b"Summary" in out, err)


def test_json_stays_as_it_is(stubborn: Path) -> None:
    """With `--json` standard output has only events, and standard error is empty."""
    with working(stubborn, *WORDS, "--json") as (process, tools):
        tools.wait()
        begun = read_until(process.stdout, '"ToolCall"')
        process.send_signal(signal.SIGINT)
        rest, err = process.communicate(timeout=LIMIT)
    assert (130, b"") == (process.returncode, err.strip())
    out = (begun + rest).decode()
    assert "ToolCall" == [parse_event(line) for line in out.splitlines()][-1].tag


def test_on_a_terminal(stubborn: Path, terminal: Terminal) -> None:
    """The line replaces the status, and the summary starts below it."""
    words = (*WORDS, "--color", "never")
    with working(stubborn, *words, at=terminal) as (process, tools):
        tools.wait()
        terminal.read("Working...")
        terminal.read("▶ Bash: trap")  # the tool may work before its line is there
        process.send_signal(signal.SIGINT)
        terminal.read("where it stopped")
        assert 130 == process.wait(LIMIT)
    lines = terminal.screen.visible()
    place = lines.index(NOTICE.rstrip())
    assert any("▶ Bash: trap" in line for line in lines[:place])
    assert ["", "[Summary] Interrupted"] == lines[place + 1 : place + 3]
    assert not any("Working" in line for line in lines)


def test_while_a_command_starts(tmp_path: Path) -> None:
    """Also an import ends with the exit code; Python would let the signal end the program."""
    (tmp_path / "started.py").write_text(_STARTING)
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
