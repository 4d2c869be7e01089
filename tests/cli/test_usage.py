"""Command lines that cannot be understood."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino_cli.commands import runs
from cuggino_cli.main import main
from tests.cli.cli import Cli


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("wach", "No such command 'wach'. Did you mean 'watch'?"),
        ("xyzzy", "No such command 'xyzzy'."),
        ("run", "For a new run, say what to work on, as in `cuggino run"),
        ("run --focus x --resume", "A resumed run has its text: leave out the text, or --resume."),
        ("run x --resume", "A resumed run has its text: leave out the text, or --resume."),
        ("run x --focus y", "Give the text once: as the argument or as --focus."),
        ("run add a page", "Put the text in quotes: cuggino run 'add a page'"),
        ("run x --budget ten", "'ten' is not an amount of US dollars such as 5 or 2.50."),
        ("run x --budget nan", "'nan' is not an amount of US dollars"),
        ("run x --budget 0", "'0' is not an amount of US dollars"),
        ("run --resume --slow", "--review, --slow and --hands are for a new run."),
        ("run --resume --review x", "--review, --slow and --hands are for a new run."),
        ("run --resume --hands 2", "--review, --slow and --hands are for a new run."),
        ("watch --hours 25-7", "'25' is not a time of the day such as 22:00 or 7"),
        ("watch --hours 22-22", "is never open, as it ends when it begins"),
        ("run --focus x --max-duration soon", "'--max-duration': "),
    ],
)
def test_a_wrong_command_line(words: str, message: str, cli: Cli) -> None:
    """The exit code is 2, and the message names the error or a correction."""
    told = cli.both(*words.split(), code=2)
    assert message in told.err
    assert ("Did you mean" in told.err) == ("Did you mean" in message)
    assert "" == told.out


@pytest.mark.parametrize("words", ["run --focus x", "watch", "doctor", "runs", "agents", "setup"])
def test_a_folder_that_is_gone(
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
) -> None:
    """Every command reports that the current folder was removed."""
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert 2 == main(words.split())
    told = "cuggino: the current folder does not exist any more\n  change the folder\n"
    assert ("", told) == cli.printed()


def test_an_error_that_looks_like_the_end_of_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect that raises `EOFError` is not an interruption by the user."""

    def read(_ctx: object) -> int:
        raise EOFError("EOF read where object expected")

    monkeypatch.setattr(runs.command, "invoke", read)
    with pytest.raises(EOFError, match="where object expected"):
        main(["runs"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--slots 4", "options: more than one slot requires"),
        ("--land-on branch", '"landOn": "branch" requires more than one slot'),
        ("--slots 0", "0 is not in the range"),
        ("--slots 401", "401 is not in the range"),
        ("--land-on pr", '"landOn": "pr" requires more than one slot'),
    ],
)
def test_slots_without_a_gate(
    words: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
) -> None:
    """Slots that cannot work are refused with the reason, before anything is written."""
    monkeypatch.chdir(tmp_path)
    assert message in cli.err("watch", "--agent", "scripted:none.toml", *words.split())
    assert not list(tmp_path.iterdir())
