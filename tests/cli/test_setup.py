"""`cuggino setup` at a terminal: the recorded questions, their defaults and answers."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output.vt100 import Vt100_Output

from cuggino.config import Config, load_config, save_config
from cuggino_cli.commands.setup import GATE, QUESTIONS
from cuggino_cli.main import main
from cuggino_cli.options.questions import ask
from tests.cli.cli import Cli
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


@pytest.mark.parametrize(("typed", "expected"), [("y", True), ("Y", True), ("yn", False)])
def test_typing_switches_a_toggle(
    typed: str, expected: bool, project: Path, type_in: Setup
) -> None:
    """Typing y or n replaces the pre-filled answer."""
    assert 0 == type_in(ENTER * 4 + typed + ENTER + ENTER)
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
