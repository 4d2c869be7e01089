"""`cuggino setup` at a terminal and without questions; files that it never destroys."""

from __future__ import annotations

import io
import re
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output.vt100 import Vt100_Output

from cuggino.config import Config, config_path, load_config, save_config
from cuggino_cli.commands import setup
from cuggino_cli.commands.setup import GATE, QUESTIONS, keep_beside
from cuggino_cli.main import main
from cuggino_cli.options.questions import ask
from cuggino_cli.screen import console
from tests.cli.cli import Cli
from tests.cli.conftest import SCENARIO
from tests.cli.keyboard import CTRL_C, CTRL_D, ENTER, ERASE, Setup, answer, pasted, saved
from tests.vectors import rows, snake

ROWS = {row["id"]: row for row in rows("cuggino_config")}
GATE_MESSAGE = "Count an approval only if the check command passes (recommended)"


def plain(text: str) -> str:
    """Return the text without escape sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


def keys_for(answers: dict[str, Any]) -> str:
    """Return the keys that answer the questions in order, with no for the gate."""
    keys = ""
    for question in QUESTIONS:
        if question is GATE:
            keys += answer("n") if answers["checkCommand"].strip() else ""
            continue
        value = next(value for key, value in answers.items() if snake(key) == question.field)
        keys += answer(question.show(value))
    return keys


def options_for(answers: dict[str, Any]) -> list[str]:
    """Return the options that give the same answers."""
    options = ["--commit" if answers["commit"] else "--no-commit"]
    options += ["--audit" if answers["audit"] else "--no-audit"]
    for key in ("specsPath", "maxIterations", "setupCommand", "checkCommand"):
        options += ["--" + snake(key).replace("_", "-"), str(answers[key])]
    return options


def test_recorded_questions() -> None:
    """The questions are the recorded ones, in order, with the gate after the check."""
    expected = [(snake(item["key"]), item["message"]) for item in ROWS["ck-019"]["expected"]]
    asked = [(question.field, question.message) for question in QUESTIONS]
    assert ("gate", GATE_MESSAGE) == asked.pop(4)
    assert expected == asked


def test_recorded_defaults(type_in: Setup) -> None:
    """The screen shows each question with its recorded default, and 10 for iterations."""
    screen = io.StringIO()
    output = Vt100_Output(screen, lambda: Size(rows=24, columns=120), term="xterm")
    assert 0 == type_in(ENTER * 6, output=output)
    shown = plain(screen.getvalue())
    position = 0
    for item in ROWS["ck-019"]["expected"]:
        value = {None: "10", True: "y", False: "n"}.get(item["default"], item["default"])
        mark = " (y/n)" if item["kind"] == "toggle" else ""
        line = f"{item['message']}{mark}: {value}".rstrip()
        assert line in shown[position:]
        position = shown.index(line, position) + len(line)
    assert GATE_MESSAGE not in shown


@pytest.mark.parametrize("row", ["ck-017", "ck-018"])
@pytest.mark.parametrize("way", ["typed", "options"])
def test_recorded_summaries(row: str, way: str, project: Path, type_in: Setup, cli: Cli) -> None:
    """Recorded answers give the recorded file and summary, whether typed or given as options."""
    case = ROWS[row]
    (project / case["answers"]["specsPath"]).mkdir(parents=True, exist_ok=True)
    if way == "typed":
        assert 0 == type_in(keys_for(case["answers"]))
    else:
        assert 0 == main(["setup", *options_for(case["answers"]), "--gate", "context"])
    assert case["expected_output"] == cli.printed().out
    assert case["expected_file"] == saved(project)
    assert (project / ".cuggino.json").read_bytes().endswith(b"}\n")


def test_existing_values_are_offered(project: Path, type_in: Setup) -> None:
    """Answering with Enter alone keeps every setting, including those not asked."""
    config = Config(
        specs_path="docs",
        max_iterations=3,
        setup_command="make setup",
        check_command="make check",
        commit=True,
        audit=True,
        gate="block",
        setup_strict=True,
        command_timeout=1.5,
        model="fast",
    )
    save_config(project, config)
    assert 0 == type_in(ENTER * 8)  # the last: no night
    assert config == load_config(project)


@pytest.mark.parametrize(("keys", "expected"), [("y", True), ("Y", True), ("yn", False)])
def test_typing_switches_a_toggle(keys: str, expected: bool, project: Path, type_in: Setup) -> None:
    """Typing y or n replaces the pre-filled answer."""
    assert 0 == type_in(ENTER * 4 + keys + ENTER + ENTER)
    assert expected == load_config(project).commit


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (None, "block"),
        ("", "block"),
        ("{}", "context"),
        ('{"checkCommand": "a", "gate": "block"}', "block"),
    ],
)
def test_gate_default(before: str | None, expected: str, project: Path, type_in: Setup) -> None:
    """The gate defaults to on without a configuration, otherwise to its current value."""
    if before is not None:
        (project / ".cuggino.json").write_text(before, encoding="utf-8")
    assert 0 == type_in(ENTER * 3 + answer("true") + ENTER * 3)
    assert expected == load_config(project).gate


def test_gate_is_in_the_summary(type_in: Setup, cli: Cli) -> None:
    """A gate that blocks is an aligned line of the summary."""
    assert 0 == type_in(ENTER * 3 + answer("true") + ENTER * 3)
    assert "  audit:          false\n  gate:           block\n\n" in cli.printed().out


@pytest.mark.parametrize("way", ["typed", "options"])
def test_gate_goes_with_the_check(way: str, project: Path, type_in: Setup, cli: Cli) -> None:
    """Without a check command the gate is switched off, which is reported."""
    save_config(project, Config(check_command="true", gate="block"))
    if way == "typed":
        assert 0 == type_in(ENTER * 3 + answer("") + ENTER * 2)
    else:
        assert 0 == main(["setup", "--yes", "--check-command", " "])
    assert Config() == load_config(project)
    assert "The gate was turned off" in cli.printed().err


WRONG_NUMBERS = ("0", "-1", "1.5", "ten", "", "1_0", "٣", pasted("9" * 5000))
"""The last one has more digits than Python converts."""


@pytest.mark.real_agent
def test_wrong_numbers_are_corrected(project: Path, type_in: Setup) -> None:
    """Enter rejects an invalid number and asks again; the corrected one is saved."""
    keys = ENTER + "".join(map(answer, WRONG_NUMBERS)) + answer("7") + ENTER * 4
    assert 0 == type_in(keys)
    assert 7 == load_config(project).max_iterations


def test_wrong_texts_are_corrected(project: Path, type_in: Setup) -> None:
    """Enter rejects a blank folder, and anything but yes or no for a toggle."""
    keys = answer("  ") + answer(" docs ") + ENTER * 3 + answer("maybe") + answer("YES") + ENTER
    assert 0 == type_in(keys)
    assert Config(specs_path="docs", commit=True) == load_config(project)


class Watching(Vt100_Output):
    """A terminal whose user types when the screen shows the expected text."""

    def __init__(self, *, wait_for: str, then: Callable[[], None]) -> None:
        self.screen = io.StringIO()
        self._wait_for = wait_for
        self._then: Callable[[], None] | None = then
        super().__init__(self.screen, lambda: Size(rows=24, columns=120), term="xterm")

    def flush(self) -> None:
        super().flush()
        if self._then is not None and self._wait_for in plain(self.screen.getvalue()):
            then, self._then = self._then, None
            then()


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("field", "text", "complaint"),
    [
        ("specs_path", " ", "A folder is needed"),
        ("max_iterations", "0", "A whole number of at least 1 is needed"),
        ("commit", "x", "Answer y or n"),
    ],
)
def test_complaint_while_typing(field: str, text: str, complaint: str) -> None:
    """An invalid value is reported while typing, before Enter."""
    question = next(question for question in QUESTIONS if question.field == field)
    right = {"specs_path": "docs", "max_iterations": "4", "commit": "y"}[field]
    with create_pipe_input() as keyboard:
        output = Watching(wait_for=complaint, then=lambda: keyboard.send_text(answer(right)))
        with create_app_session(input=keyboard, output=output):
            keyboard.send_text(ERASE + text)
            assert question.parse(right) == ask(question, None)


@pytest.mark.parametrize("leave", [CTRL_C, ERASE + CTRL_D], ids=["ctrl-c", "ctrl-d"])
@pytest.mark.parametrize("after", [0, 3, 6])
def test_canceling_writes_nothing(
    leave: str, after: int, project: Path, type_in: Setup, cli: Cli
) -> None:
    """Ctrl-C, or Ctrl-D on an empty answer, exits with 130 at any question and writes nothing."""
    (project / ".cuggino.json").write_text("{nope", encoding="utf-8")
    answers = [ENTER, ENTER, ENTER, answer("true"), ENTER, ENTER, ENTER]
    assert 130 == type_in("".join(answers[:after]) + leave)
    assert "Nothing was saved.\n" in cli.printed().err
    assert [".cuggino.json", ".specs"] == sorted(path.name for path in project.iterdir())
    assert "{nope" == (project / ".cuggino.json").read_text(encoding="utf-8")


def test_given_options_are_not_asked(project: Path, type_in: Setup) -> None:
    """Only settings without an option are asked, here two toggles."""
    given = ["--specs-path", "docs", "--max-iterations", "2", "--setup-command", "", "--commit"]
    keys = answer("n") + answer("y")
    assert 0 == type_in(keys, *given, "--check-command", "true")
    expected = Config(
        specs_path="docs", max_iterations=2, check_command="true", commit=True, audit=True
    )
    assert expected == load_config(project)


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
