"""The help of every command: examples that work, exit codes, and what else to read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cuggino_cli import main as main_module
from cuggino_cli.commands.help import TOPICS
from cuggino_cli.main import COMMANDS, cli, main
from cuggino_cli.topics import EXIT_CODES
from tests.command_lines import parse_line

LOOPS = ("run", "watch", "deliver", "loop")


def all_commands() -> Iterator[tuple[str, ...]]:
    """The names of each command and each command of a command."""
    for name in COMMANDS:
        yield (name,)
        found = cli.get_command(click.Context(cli), name)
        if isinstance(found, click.Group):
            yield from ((name, inner) for inner in found.commands)


ALL = sorted(all_commands())


def told(names: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> str:
    assert 0 == main([*names, "--help"])
    return capsys.readouterr().out


def examples(text: str) -> list[str]:
    """The command lines that stand below `Examples:`."""
    _, found, below = text.partition("  Examples:\n")
    assert found
    return re.findall(r"^ {4}(\S.*)$", below.split("\n\n")[0], re.MULTILINE)


@pytest.mark.parametrize("names", ALL, ids=" ".join)
def test_examples_are_understood(
    names: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each help has an example of its own command, and its examples are parsed by the commands."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    found = [parse_line(line) for line in examples(told(names, capsys))]
    aliased = [["plan" if name == "pm" else name for name in line] for line in found]
    assert any(list(names) == line[: len(names)] for line in aliased)


@pytest.mark.parametrize("name", LOOPS)
def test_loops_tell_exit_codes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The help of a loop tells what it ends with, in one paragraph at its end."""
    _, _, below = told((name,), capsys).partition("  Exit codes: ")
    codes = {int(code) for code in re.findall(r"\b(\d+)\s+[a-z]", below)}
    assert {1, 2, 13, 130, 143} <= codes <= {code for code, _ in EXIT_CODES}


@pytest.mark.parametrize("name", [name for name in LOOPS if name != "watch"])
def test_loops_tell_what_can_be_resumed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """After the same exit codes as in `cuggino help exit-codes`."""
    said = re.search(r"After ([\d,\s]+) and\s+(\d+)\s+the\s+run", told((name,), capsys))
    assert said
    expected = [code for code, about in EXIT_CODES if "resume" in about]
    assert expected == [int(code) for code in re.findall(r"\d+", " ".join(said.groups()))]


def test_the_main_module_tells_exit_codes() -> None:
    """The docstring of the entry point has every exit code."""
    codes = re.findall(r"\b(\d+) [a-z]", (main_module.__doc__ or "").partition("Exit codes:")[2])
    assert [code for code, _ in EXIT_CODES] == [int(code) for code in codes]


@pytest.mark.parametrize("names", ALL, ids=" ".join)
def test_what_else_to_read_exists(
    names: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """What is named below is a command, or a topic of `cuggino help`."""
    _, _, below = told(names, capsys).partition("  See also: ")
    listed = below.split("\n")[0].removesuffix(".")
    for name in filter(None, listed.split(", ")):
        *_, last = name.split()
        assert last in (TOPICS if name.startswith("cuggino help ") else COMMANDS)


@pytest.mark.parametrize("name", LOOPS)
def test_options_are_in_sections(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each option of a loop is shown once, those of all loops in sections of their own."""
    found = told((name,), capsys)
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert 1 == len(
                re.findall(rf"^  (?:-\w, )?{parameter.opts[-1]}\b", found, re.MULTILINE)
            )
    sections = re.findall(r"^([A-Z]\w+)(?: \(.*\))?:$", found, re.MULTILINE)
    assert ["Options", "Limits", "Recording", "Output"] == [
        title for title in sections if title != "Commands"
    ]


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("names", ALL, ids=" ".join)
def test_width(
    names: tuple[str, ...],
    columns: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing but a command line of an example is wider than a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", str(columns))
    found = told(names, capsys)
    lines = set(found.splitlines()) - {f"    {line}" for line in examples(found)}
    assert all(len(line) <= 80 for line in lines)
