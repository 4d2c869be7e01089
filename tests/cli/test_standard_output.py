"""The command with its output closed, full or unread: no traceback, the exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.rounds import APPROVES, PLANS, implements
from tests.limits import LIMIT

CUGGINO = (sys.executable, "-m", "cuggino_cli")
MUCH = f"""\
[[planning]]
steps = [{{ say = "{"word " * 60_000}" }}, {{ sleep = 600 }}]
"""


def shell(command: str, folder: Path, **env: str) -> tuple[int, str]:
    """Run a shell command, with `cuggino` as `$@`; return its code and standard error."""
    argv = ["sh", "-c", command, "sh", *CUGGINO]
    ran = subprocess.run(
        argv, cwd=folder, env={**os.environ, **env}, capture_output=True, timeout=LIMIT
    )
    return ran.returncode, ran.stderr.decode()


@pytest.mark.parametrize(
    "command",
    [
        "runs",
        "help config",
        # More commands: with the second command.
        *(pytest.param(one, marks=pytest.mark.real_agent) for one in ("--version", "doctor")),
    ],
)
def test_closed(ready: Path, command: str) -> None:
    """Closed streams are as good as `/dev/null`."""
    assert (0, "") == shell(f'"$@" {command} >&- <&-', ready)
    assert (0, "") == shell(f'"$@" {command} >&- 2>&- <&-', ready)


@pytest.mark.parametrize("command", ["runs", "--version"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_full(ready: Path, command: str) -> None:
    """A full disk under the output is one sentence and exit code 1; under errors it is silent."""
    full = "cuggino: standard output cannot be written: No space left on device\n"
    assert (1, full) == shell(f'"$@" {command} >/dev/full', ready)
    if command == "runs":
        assert (2, "") == shell('"$@" runs show nope 2>/dev/full', ready)


@pytest.mark.real_agent
def test_a_file_in_the_project(ready: Path) -> None:
    """Output of a run to a project file is not blamed on an agent that may not write."""
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run([*git, "init", "-q"], cwd=ready, check=True)
    (ready / "scenario.toml").write_text(PLANS + implements() + APPROVES)
    subprocess.run([*git, "add", "-A"], cwd=ready, check=True)
    subprocess.run([*git, "commit", "-qm", "begin"], cwd=ready, check=True)
    code, told = shell('"$@" run --focus x >log.txt 2>errors.txt', ready)
    assert (0, "") == (code, told)
    log = (ready / "log.txt").read_text()
    assert "[Planning] Starting..." in log
    assert "[Summary] Approved" in log


def test_a_reader_that_leaves(ready: Path) -> None:
    """`| head` ends the command quietly."""
    assert (0, "") == shell('"$@" help config | head -n 1', ready)


@pytest.mark.parametrize("options", [("--json", "--verbose"), ("--verbose",)], ids=["json", "text"])
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.real_agent)]
)
def test_a_reader_that_does_not_read(
    ready: Path, number: signal.Signals, options: tuple[str, ...]
) -> None:
    """A signal ends a run whose output fills an unread pipe."""
    (ready / "scenario.toml").write_text(MUCH, encoding="utf-8")
    with subprocess.Popen(
        [*CUGGINO, "run", "--focus", "x", *options],
        cwd=ready,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as run:
        assert run.stdout is not None
        os.read(run.stdout.fileno(), 1)  # the agent has begun to talk
        run.send_signal(number)
        assert 128 + number == run.wait(timeout=LIMIT)


@pytest.mark.real_agent
def test_a_locale_without_other_letters(ready: Path) -> None:
    """Names and arguments are UTF-8 where the locale knows only ASCII."""
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    code, told = shell('"$@" run --focus "@größe.md"', ready, **ascii_only)
    assert 2 == code
    assert "größe.md" in told
