"""`cuggino` on Windows, where some modules are missing."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from cuggino._version import __version__
from cuggino_cli import main
from cuggino_cli.commands import COMMANDS
from tests.cli.cli import Cli
from tests.limits import LIMIT

_ON_WINDOWS = """
import sys
import click  # would look for the console of a real Windows

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in {"fcntl", "grp", "pwd", "resource", "termios", "tty"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in ("fcntl", "grp", "pwd", "resource", "termios", "tty"):
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Missing())
sys.platform = "win32"
from cuggino_cli.main import entry
entry()
"""
SENTENCE = "Windows is not supported, only Linux and macOS: use WSL, which works as Linux"


def on_windows(*args: str) -> tuple[int, str, str]:
    """Run the command without POSIX-only modules; return exit code, output and errors."""
    ran = subprocess.run(
        [sys.executable, "-c", _ON_WINDOWS, *args],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    return ran.returncode, ran.stdout, ran.stderr


@pytest.mark.parametrize("args", [[], ["run", "--focus", "x"], ["guard", "--help"], ["nothing"]])
def test_one_sentence(args: list[str]) -> None:
    """Any command prints one sentence on standard error, exits with 2 and imports nothing."""
    assert (2, "", f"cuggino: {SENTENCE}\n") == on_windows(*args)


@pytest.mark.parametrize("option", ["-v", "--version"])
def test_the_version(option: str) -> None:
    """`--version` prints the version."""
    code, out, err = on_windows(option)
    assert (0, "") == (code, err)
    assert __version__ in out


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_the_help(option: str) -> None:
    """`--help` prints the help with all commands."""
    code, out, err = on_windows(option)
    assert (0, "") == (code, err)
    assert set(COMMANDS) <= set(re.findall(r"(?:\n  |, )(\w+)", out))


def test_elsewhere(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """On other systems the command runs, and the process ends with its exit code."""
    monkeypatch.setattr(sys, "argv", ["cuggino", "help", "exit-codes"])
    with pytest.raises(SystemExit) as ended:
        main.entry()
    assert 0 == ended.value.code
    assert "interrupted by SIGTERM" in cli.printed().out
