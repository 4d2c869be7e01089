"""What `cuggino` says on Windows, where modules that it is made of are missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cuggino._version import __version__
from cuggino_cli import main

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
    """The exit code, output and errors of the command, where what is POSIX's alone is missing."""
    ran = subprocess.run(
        [sys.executable, "-c", _ON_WINDOWS, *args],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return ran.returncode, ran.stdout, ran.stderr


@pytest.mark.parametrize("args", [[], ["run", "--focus", "x"], ["guard", "--help"], ["nothing"]])
def test_a_sentence(args: list[str]) -> None:
    """Any command is one sentence on standard error and exit code 2, and nothing is imported."""
    assert (2, "", f"cuggino: {SENTENCE}\n") == on_windows(*args)


@pytest.mark.parametrize("option", ["-v", "--version"])
def test_the_version(option: str) -> None:
    """The version is told."""
    code, out, err = on_windows(option)
    assert (0, "") == (code, err)
    assert __version__ in out


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_the_help(option: str) -> None:
    """The help is told, with all commands."""
    code, out, err = on_windows(option)
    assert (0, "") == (code, err)
    assert all(f"\n  {name} " in out for name in main.COMMANDS)


def test_elsewhere(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """On other systems the command is run, and ends the process with its exit code."""
    monkeypatch.setattr(sys, "argv", ["cuggino", "help", "exit-codes"])
    with pytest.raises(SystemExit) as ended:
        main.entry()
    assert 0 == ended.value.code
    assert "interrupted by SIGTERM" in capsys.readouterr().out
