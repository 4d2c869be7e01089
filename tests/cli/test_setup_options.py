"""`cuggino setup` without questions, and the files it never destroys."""

from __future__ import annotations

import io
import stat
import sys
from pathlib import Path

import pytest

from cuggino.config import Config, config_path, load_config, save_config
from cuggino_cli.commands import setup
from cuggino_cli.commands.setup import keep_beside
from cuggino_cli.main import main
from cuggino_cli.screen import console
from tests.cli.cli import Cli
from tests.cli.conftest import SCENARIO
from tests.cli.keyboard import ENTER, Setup, answer, saved


def test_yes_takes_the_defaults(project: Path) -> None:
    """`--yes` asks nothing and saves the defaults in an empty project."""
    assert 0 == main(["setup", "--yes"])
    assert Config() == load_config(project)
    assert {"specsPath", "maxIterations", "commit", "audit"} == saved(project).keys()


def test_yes_puts_options_over_the_file(project: Path) -> None:
    """With `--yes`, options override the file, and the file the defaults."""
    save_config(project, Config(max_iterations=3, commit=True, model="fast"))
    args = ["--no-commit", "--check-command", " true ", "--gate", "block"]
    assert 0 == main(["setup", "-y", *args])
    expected = Config(max_iterations=3, model="fast", check_command="true", gate="block")
    assert expected == load_config(project)


def test_the_guard(project: Path, cli: Cli) -> None:
    """The guard is not asked; a given level is saved, and shown if it is not the default."""
    assert 0 == main(["setup", "--yes", "--guard", "full"])
    assert Config(guard="full") == load_config(project)
    assert "  guard:          full\n" in cli.printed().out
    assert "  guard:          full\n" in cli("setup", "--yes")
    assert "guard:" not in cli("setup", "--yes", "--guard", "roles")


@pytest.mark.parametrize(
    ("check", "missing"),
    [("", "--audit/--no-audit"), ("true", "--gate, --audit/--no-audit")],
)
def test_no_terminal_to_ask_on(check: str, missing: str, project: Path, cli: Cli) -> None:
    """Without a terminal an open question is a usage error that lists the missing options."""
    given = ["--specs-path", "docs", "--max-iterations", "2", "--setup-command", "", "--commit"]
    assert 2 == main(["setup", *given, "--check-command", check])
    expected = f"No terminal to ask on: pass --yes or {missing}."
    assert expected in cli.printed().err
    assert not (project / ".cuggino.json").exists()


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["--specs-path", " "], '"specsPath"'),
        (["--max-iterations", "0"], "--max-iterations"),
        (["--max-iterations", "12abc"], "--max-iterations"),
        (["--gate", "block"], 'requires a "checkCommand"'),
        (["--gate", "always"], "--gate"),
        (["--agent", "nobody"], 'unknown agent "nobody"'),
        (["--agent", "scripted:missing.json"], "missing.json"),
        (["--setup-command", "\udcff"], "setupCommand"),
    ],
)
def test_unusable_options(args: list[str], reason: str, project: Path, cli: Cli) -> None:
    """An invalid value exits with 2, reports why, and changes nothing."""
    (project / ".cuggino.json").write_text("{nope", encoding="utf-8")
    assert reason in cli.err("setup", "--yes", *args)
    assert [".cuggino.json", ".specs"] == sorted(path.name for path in project.iterdir())
    assert "{nope" == (project / ".cuggino.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("way", ["typed", "yes"])
@pytest.mark.parametrize("content", [b"{nope", b'{"maxIteration": 3}', b"\xff\xfe"])
def test_broken_file_is_kept(
    content: bytes, way: str, project: Path, type_in: Setup, cli: Cli
) -> None:
    """An invalid file is kept byte by byte under a free name, and both are reported."""
    (project / ".cuggino.json").write_bytes(content)
    (project / ".cuggino.json.bak").write_text("older", encoding="utf-8")
    assert 0 == (type_in(ENTER * 6) if way == "typed" else main(["setup", "--yes"]))
    assert Config() == load_config(project)
    assert content == (project / ".cuggino.json.bak.1").read_bytes()
    assert "older" == (project / ".cuggino.json.bak").read_text(encoding="utf-8")
    said = cli.printed().err
    assert "; using the defaults.\n" in said
    assert "was saved as .cuggino.json.bak.1.\n" in said


def test_names_of_kept_files(project: Path) -> None:
    """Kept files are numbered, and none replaces another."""
    names = [keep_beside(project, bytes([number])).name for number in range(3)]
    assert [".cuggino.json.bak", ".cuggino.json.bak.1", ".cuggino.json.bak.2"] == names
    assert [b"\0", b"\1", b"\2"] == [(project / name).read_bytes() for name in names]


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_kept_copy_is_as_private(mode: int, project: Path) -> None:
    """The copy has the permissions of the configuration."""
    config_path(project).write_text("{", encoding="utf-8")
    config_path(project).chmod(mode)
    assert mode == stat.S_IMODE(keep_beside(project, b"{").stat().st_mode)


def test_configuration_that_is_no_file(project: Path, cli: Cli) -> None:
    """A folder in place of the file is an error because it could not be kept."""
    (project / ".cuggino.json").mkdir()
    assert "not a regular file" in cli.err("setup", "--yes")
    assert [".cuggino.json", ".specs"] == sorted(path.name for path in project.iterdir())


def test_missing_specs_are_reported(project: Path, cli: Cli) -> None:
    """A missing specs folder is the summary's next step, and is not created."""
    assert 0 == main(["setup", "--yes", "--specs-path", "docs"])
    expected = "\n\nNext: write the specifications in the folder docs, which does not exist yet.\n"
    assert cli.printed().out.endswith(expected)
    assert not (project / "docs").exists()


def test_summary_is_inert() -> None:
    """Control characters in a value are shown as symbols, and its further lines are aligned."""
    text = setup.summary(Config(setup_command="a\x1b[31m\nb"))
    assert "  setupCommand:   a␛[31m\n" + " " * 18 + "b\n" in text


def test_agent_is_saved(project: Path) -> None:
    """`--agent` is saved if the agent can be created; its scenario is resolved in the project."""
    (project / "scenario.toml").write_text(SCENARIO, encoding="utf-8")
    assert 0 == main(["setup", "--yes", "--agent", "scripted:scenario.toml"])
    assert "scripted:scenario.toml" == load_config(project).agent


@pytest.mark.parametrize("streams", [("stdin",), ("stdout",), ("stdin", "stdout")])
def test_terminal_needs_both_streams(
    streams: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Questions need both input and output to be a terminal."""

    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    for name in ("stdin", "stdout"):
        monkeypatch.setattr(sys, name, Tty() if name in streams else io.StringIO())
    assert (len(streams) == 2) == console.on_terminal()


NIGHT = {"slots": 3, "budget": 30, "maxDuration": 28800, "waitForQuota": True}


@pytest.mark.parametrize("way", ["typed", "options"])
def test_a_night(way: str, project: Path, type_in: Setup, cli: Cli) -> None:
    """The recipe of a night is written as the README shows it, and says how to begin."""
    if way == "typed":
        keys = ENTER * 3 + answer("true") + answer("y") * 2 + answer("n") + answer("y")
        assert 0 == type_in(keys)
    else:
        assert 0 == main(["setup", "--yes", "--overnight", "--check-command", "true"])
    assert NIGHT | {"commit": True, "gate": "block"} == {
        key: value for key, value in saved(project).items() if key in (*NIGHT, "commit", "gate")
    }
    printed = cli.printed().out
    assert "  budget:         30\n" in printed
    assert "cuggino doctor && cuggino watch --serve" in printed


def test_a_night_keeps_what_is_set(project: Path, type_in: Setup) -> None:
    """Limits of the project stay, and a project that has a budget is not asked."""
    save_config(project, Config(budget=5, check_command="true", gate="block", commit=True))
    assert 0 == type_in(ENTER * 7)
    assert 0 == main(["setup", "--yes", "--overnight"])
    assert (5, 3) == (load_config(project).budget, load_config(project).slots)


def test_a_night_needs_a_check(project: Path, cli: Cli) -> None:
    """Without a check nothing would count as done; nothing is saved."""
    assert "--overnight needs a check command" in cli.err("setup", "--yes", "--overnight")
    assert not (project / ".cuggino.json").exists()


def test_a_project_above_is_noted(project: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """In a subfolder of a project, setup configures the subfolder and says so."""
    (project / "web").mkdir()
    monkeypatch.chdir(project / "web")
    assert f"{project} is a project already" in cli.err("setup", "--yes", code=0)
    assert (project / "web" / ".cuggino.json").exists()
