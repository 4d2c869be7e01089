"""The console scripts: `cuggino`, and the names of the tools whose projects it takes on."""

from __future__ import annotations

import gc
import importlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cuggino_cli import console_scripts, main
from tests.cli.cli import Cli
from tests.limits import LIMIT


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Give the signals back their handlers, which last as long as the script's process."""
    before = {sign: signal.getsignal(sign) for sign in (signal.SIGINT, signal.SIGTERM)}
    yield
    for sign, handler in before.items():
        signal.signal(sign, handler)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("run --max-iterations 3", "deliver --max-iterations 3"),
        ("sync -p shop", "deliver sync -p shop"),
        ("run", "deliver"),
        ("--version", "--version"),
        ("", ""),
        ("doctor run", "doctor run"),
    ],
)
def test_autonoe(words: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`autonoe run` is `cuggino deliver`, `autonoe sync` is `cuggino deliver sync`."""
    asked: list[list[str]] = []
    monkeypatch.setattr(sys, "argv", ["autonoe", *words.split()])

    def run(args: list[str]) -> int:
        asked.append(args)
        return 7

    monkeypatch.setattr(main, "main", run)
    with pytest.raises(SystemExit) as ended:
        console_scripts.autonoe()
    assert ([expected.split()], 7) == (asked, ended.value.code)


@pytest.mark.parametrize("words", ["run", "sync"])
def test_autonoe_in_a_folder_without_a_specification(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """The command is really `deliver`: it asks for SPEC.md, not for a focus."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["autonoe", words])
    with pytest.raises(SystemExit) as ended:
        console_scripts.autonoe()
    assert 2 == ended.value.code
    assert "SPEC.md" in cli.printed().err


def test_scripts_are_declared() -> None:
    """The package installs all three."""
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    for line in ("cuggino = ", "lopen = "):
        assert f'{line}"cuggino_cli.console_scripts:cuggino"' in text
    assert 'autonoe = "cuggino_cli.console_scripts:autonoe"' in text


_INTERRUPTED_IMPORT = """
import signal, sys
from cuggino_cli.console_scripts import {script}

class Person:
    def find_spec(self, name, *_):
        if name == "{module}":
            signal.raise_signal(signal.{sign})

sys.meta_path.insert(0, Person())
sys.argv[1:] = ["status"]
{script}()
"""


@pytest.mark.parametrize("script", ["cuggino", "autonoe"])
@pytest.mark.parametrize("module", ["cuggino_cli.main", "click", "cuggino.runs"])
@pytest.mark.parametrize(("sign", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_while_the_command_is_imported(
    script: str, module: str, sign: str, code: int, tmp_path: Path
) -> None:
    """It ends with its exit code, without a word."""
    words = _INTERRUPTED_IMPORT.format(script=script, module=module, sign=sign)
    done = subprocess.run(
        [sys.executable, "-c", words], cwd=tmp_path, capture_output=True, timeout=LIMIT, check=False
    )
    assert (code, b"") == (done.returncode, done.stderr.strip())


def test_an_ignored_signal() -> None:
    """A command in the background of a shell, which ignores Ctrl-C, goes on doing so."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    console_scripts._handle_signals()
    assert signal.SIG_IGN == signal.getsignal(signal.SIGINT)
    assert console_scripts._leave == signal.getsignal(signal.SIGTERM)


def test_no_garbage_is_searched_for_while_a_command_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is again once the command has been imported, or could not be."""
    searched: list[bool] = []

    def gone(name: str) -> None:
        searched.append(gc.isenabled())
        raise ModuleNotFoundError(name=name)

    monkeypatch.delitem(sys.modules, "cuggino_cli.commands.skip", raising=False)
    monkeypatch.setattr(importlib, "import_module", gone)
    with pytest.raises(ModuleNotFoundError):
        main.cli.get_command(click.Context(main.cli), "skip")
    assert [False, True] == [*searched, gc.isenabled()]
    monkeypatch.undo()
    assert main.cli.get_command(click.Context(main.cli), "skip") is not None
    assert gc.isenabled()
