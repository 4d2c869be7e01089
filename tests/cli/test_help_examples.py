"""The help of every command: working examples, exit codes and references."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cuggino_cli import main as main_module
from cuggino_cli.commands import COMMANDS
from cuggino_cli.help import TOPICS
from cuggino_cli.main import cli as group
from tests.cli.cli import Cli
from tests.command_lines import parse_line
from tests.documents.exit_codes import exit_codes

LOOPS = ("run", "watch", "deliver", "loop")


def all_commands() -> Iterator[tuple[str, ...]]:
    """Return the names of each command and subcommand."""
    for name in COMMANDS:
        yield (name,)
        found = group.get_command(click.Context(group), name)
        if isinstance(found, click.Group):
            yield from ((name, inner) for inner in found.commands)


ALL = sorted(all_commands())


def told(names: tuple[str, ...], cli: Cli) -> str:
    return cli(*names, "--help")


def examples(text: str) -> list[str]:
    """Return the command lines listed under `Examples:`."""
    _, found, below = text.partition("  Examples:\n")
    assert found
    return re.findall(r"^ {4}(\S.*)$", below.split("\n\n")[0], re.MULTILINE)


@pytest.mark.parametrize("names", ALL, ids=" ".join)
def test_examples_are_understood(
    names: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
) -> None:
    """Every help page has an example of its command, and all examples parse."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    found = [parse_line(line) for line in examples(told(names, cli))]
    aliased = [["plan" if name == "pm" else name for name in line] for line in found]
    assert any(list(names) == line[: len(names)] for line in aliased)


@pytest.mark.parametrize("name", LOOPS)
def test_loops_list_exit_codes(name: str, cli: Cli) -> None:
    """The help of a loop ends with one paragraph of exit codes."""
    _, _, below = told((name,), cli).partition("  Exit codes: ")
    codes = {int(code) for code in re.findall(r"\b(\d+)\s+[a-z]", below)}
    assert {1, 2, 13, 130, 143} <= codes <= {code for code, _ in exit_codes()}


@pytest.mark.parametrize("name", [name for name in LOOPS if name != "watch"])
def test_loops_list_resumable_exit_codes(name: str, cli: Cli) -> None:
    """The resumable exit codes match `cuggino help exit-codes`."""
    said = re.search(r"After ([\d,\s]+) and\s+(\d+)\s+the\s+run", told((name,), cli))
    assert said
    expected = [code for code, about in exit_codes() if "resume" in about]
    assert expected == [int(code) for code in re.findall(r"\d+", " ".join(said.groups()))]


def test_the_main_module_lists_exit_codes() -> None:
    """The docstring of the entry point has every exit code."""
    codes = re.findall(r"\b(\d+) [a-z]", (main_module.__doc__ or "").partition("Exit codes:")[2])
    assert [code for code, _ in exit_codes()] == [int(code) for code in codes]


@pytest.mark.parametrize("names", ALL, ids=" ".join)
def test_references_exist(names: tuple[str, ...], cli: Cli) -> None:
    """Every reference is a command or a topic of `cuggino help`."""
    _, _, below = told(names, cli).partition("  See also: ")
    listed = below.split("\n")[0].removesuffix(".")
    for name in filter(None, listed.split(", ")):
        *_, last = name.split()
        assert last in (TOPICS if name.startswith("cuggino help ") else COMMANDS)


@pytest.mark.parametrize("name", LOOPS)
def test_options_are_in_sections(name: str, cli: Cli) -> None:
    """Each option of a loop is shown once, shared ones in sections; of seldom ones the name."""
    found = told((name,), cli)
    command = group.get_command(click.Context(group), name)
    assert command is not None
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            shown = rf"(?:^  (?:-\w, )?|, |^  ){parameter.opts[-1]}(?![\w-])"
            assert 1 == len(re.findall(shown, found.partition("  Examples:")[0], re.MULTILINE))
    sections = re.findall(r"^([A-Z][\w ]+\w)(?: \(.*\))?:$", found, re.MULTILINE)
    assert ["Options", "Limits", "Output", "Seldom needed"] == [
        title for title in sections if title != "Commands"
    ]


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("names", ALL, ids=" ".join)
def test_width(
    names: tuple[str, ...],
    columns: int,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
) -> None:
    """Only command lines of examples exceed 80 columns."""
    monkeypatch.setenv("COLUMNS", str(columns))
    found = told(names, cli)
    lines = set(found.splitlines()) - {f"    {line}" for line in examples(found)}
    assert all(len(line) <= 80 for line in lines)
