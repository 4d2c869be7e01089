"""`cuggino loop configure`, and the recorded runs of Lopen's loop."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cuggino_cli.commands.loop_configure import _questions
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.keyboard import CTRL_C, CTRL_D, ENTER, Setup, answer
from tests.cli.loops import project_of
from tests.vectors import rows

FILE = Path(".lopen") / "loop-config.json"
ROWS = {row["id"]: row for row in rows("lopen_config") if row["op"] in ("configure", "reset")}
ASKED = next(row for row in rows("lopen_config") if row["op"] == "configure_interactive")


@pytest.fixture
def home(looping: Path) -> Path:
    """The user's home."""
    return looping.parent / "home"


def put(folder: Path, content: str | None) -> None:
    if content is not None:
        (folder / FILE).parent.mkdir(exist_ok=True)
        (folder / FILE).write_text(content, encoding="utf-8")


def saved(folder: Path) -> Any:
    """Return the content of a layer's file, or None."""
    path = folder / FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


@pytest.mark.parametrize("name", ROWS)
def test_recorded_commands(name: str, looping: Path, home: Path, cli: Cli) -> None:
    """A recorded command changes only the user's file, as recorded, and reports it."""
    row = ROWS[name]
    put(home, row["before"].get("user"))
    put(looping, row["before"].get("project"))
    before = saved(looping)
    args = row.get("args", ["--reset"])
    out = cli("loop", "configure", *args)
    for text in row.get("message_contains", [row.get("message", "")]):
        assert text in out
    assert row.get("expected_user") == saved(home)
    assert before == saved(looping)


def test_output(looping: Path, home: Path, cli: Cli) -> None:
    """The effective values are shown, and where the project overrides them."""
    put(looping, '{"model": "theirs"}')
    out, err = cli.both("loop", "configure", "--model", "mine", "--build-prompt", "b.md")
    assert [
        "Configuration saved.",
        "  Model: theirs",
        "  Plan Prompt: PLAN.PROMPT.md",
        "  Build Prompt: b.md",
        "  Stream: true",
    ] == out.splitlines()
    assert "cuggino: the project's file overrides model\n" == err
    assert {"model": "mine", "buildPromptPath": "b.md"} == saved(home)


def test_the_file_of_the_project(looping: Path, home: Path) -> None:
    """With `--project` only the project's file is changed or removed."""
    put(home, '{"model": "m"}')
    assert 0 == main(["loop", "configure", "--project", "--plan-prompt", "p.md", "--no-allow-all"])
    assert {"planPromptPath": "p.md", "allowAll": False} == saved(looping)
    assert 0 == main(["loop", "configure", "--project", "--reset"])
    assert (None, {"model": "m"}) == (saved(looping), saved(home))


def test_where_values_come_from(looping: Path, home: Path, cli: Cli) -> None:
    """Each value is shown with its origin: default, user, project or a given file."""
    put(home, '{"model": "m", "stream": false}')
    put(looping, '{"stream": true, "verify": {"build": "make"}, "protectedBranches": []}')
    (looping / "c.json").write_text('{"logLevel": "error"}')
    shown = dict(
        line.split(":", 1)
        for line in cli("loop", "--config", "c.json", "configure", "--show").splitlines()
    )
    assert {
        "model": "m  (user)",
        "planPromptPath": "PLAN.PROMPT.md  (default)",
        "buildPromptPath": "BUILD.PROMPT.md  (default)",
        "allowAll": "true  (default)",
        "stream": "true  (project)",
        "autoCommit": "false  (default)",
        "logLevel": "error  (c.json)",
        "verifyAfterIteration": "true  (default)",
        "verifyModel": "(none)  (default)",
        "verify.build": "make  (project)",
        "verify.test": "(none)  (default)",
        "protectedBranches": "(none)  (project)",
        "agent": "scripted:scenario.toml  (.cuggino.json)",
    } == {key: value.strip() for key, value in shown.items()}


def test_questions(looping: Path, home: Path, typed: Setup, cli: Cli) -> None:
    """Without an option each setting is asked, in order, and all answers are saved (LOP-029)."""
    put(looping, '{"buildPromptPath": "theirs.md"}')
    given = ASKED["answers"]
    keys = "".join(
        answer("ny"[value] if isinstance(value, bool) else value) for value in given.values()
    )
    assert 0 == typed(keys, "loop", "configure")
    assert ASKED["expected_user"] == saved(home)
    out = cli.printed().out
    assert ["Loop Configuration", "Models (a number, or any other name):"] == out.splitlines()[:2]
    assert all(text in out for text in ASKED["message_contains"])


def test_answers_are_pre_filled(looping: Path, home: Path, typed: Setup) -> None:
    """Enter keeps the user's value, not the project's."""
    put(home, '{"model": "my own", "stream": false, "verifyModel": "v"}')
    put(looping, '{"planPromptPath": "theirs.md"}')
    assert 0 == typed(ENTER * 8, "loop", "configure")
    kept = saved(home)
    assert ("my own", False, "v") == (kept["model"], kept["stream"], kept["verifyModel"])
    assert "PLAN.PROMPT.md" == kept["planPromptPath"]


def test_a_model_by_its_number(home: Path, typed: Setup) -> None:
    """The current model is the first in the list."""
    put(home, '{"model": "gpt-5"}')
    assert 0 == typed(answer("2") + ENTER * 7, "loop", "configure")
    assert "claude-opus-4.5" == saved(home)["model"]


@pytest.mark.parametrize("key", [CTRL_C, CTRL_D])
@pytest.mark.parametrize(("more", "code"), [([], 130), (["--compat-exit-codes"], 0)])
def test_cancelled(
    key: str, more: list[str], code: int, home: Path, typed: Setup, cli: Cli
) -> None:
    """Canceling during the questions changes nothing."""
    assert code == typed(answer("gpt-5") + "\x15" + key, "loop", *more, "configure")
    assert "Configuration cancelled." == cli.printed().out.splitlines()[-1]
    assert saved(home) is None


def test_no_terminal_to_ask_on(looping: Path, cli: Cli) -> None:
    """Without a terminal and options there is nothing to do."""
    assert "No terminal to ask on" in cli.err("loop", "configure")


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_a_given_file(content: str | None, looping: Path, cli: Cli) -> None:
    """A given file must be valid, or nothing is started (LOP-023)."""
    if content is not None:
        (looping / "c.json").write_text(content)
    assert cli.err("loop", "--auto", "--config", "c.json").startswith(
        f"cuggino: --config: {looping / 'c.json'}"
    )
    assert 6 == main(["loop", "--auto", "--config", "c.json", "--compat-exit-codes"])


def test_a_broken_file_of_a_layer(looping: Path, home: Path, cli: Cli) -> None:
    """An invalid file of a layer is an error, and not overwritten."""
    put(home, "{")
    assert cli.err("loop", "configure", "--show").startswith(
        f"cuggino: {home / FILE}: line 1 column 2"
    )
    assert 2 == main(["loop", "configure", "--model", "m"])
    assert "{" == (home / FILE).read_text()


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        ("model", " ", "A model is needed"),
        ("model", "0", "A number from 1 to 2, or a name"),
        ("model", "3", "A number from 1 to 2, or a name"),
        ("model", "100", "A number from 1 to 2, or a name"),
        ("planPromptPath", " ", "A file is needed"),
        ("logLevel", "loud", "One of "),
    ],
)
def test_a_wrong_answer(field: str, text: str, message: str) -> None:
    """A wrong answer is refused with the possible answers."""
    questions = {question.field: question for question in _questions(["a", "b"])}
    with pytest.raises(ValueError, match=re.escape(message)):
        questions[field].parse(text)


Row = dict[str, Any]

RUNS = {row["id"]: row for row in rows("lopen_loop")}
_GOES_ON = frozenset({"ll-011", "ll-027", "ll-028", "ll-030", "ll-036"})
"""Runs without a recorded end: so many sessions are recorded, and there may be no more."""
ELSEWHERE = frozenset({"ll-007", "ll-022", "ll-023", "ll-024"})
"""Interrupted ones are in `test_interrupt.py`; those with the pauses of retries are played
in virtual time in `tests/loops`."""


def _steps(session: Row) -> list[Row]:
    if "chunks" not in session:
        return [{"say": json.dumps(session)}]
    steps: list[Row] = [{"say": chunk} for chunk in session["chunks"]]
    for effect in session.get("effects", ()):
        steps.append({"write": effect["path"], "text": effect["content"]})
    return steps


def _scenario(row: Row) -> str:
    """Return a row's sessions as a scripted agent's scenario."""
    plans = row["answer"] != "3" and "PLAN.PROMPT.md" in {*row["files"], *_named(row)}
    roles = ["plan" if plans and n == 0 else "build" for n, _ in enumerate(row["sessions"])]
    played = [*zip(roles, row["sessions"], strict=True)]
    played += [("judge", answer) for answer in row["verifications"]]
    text = ""
    for role, session in played:
        text += f"[[{role}]]\n"
        for step in _steps(session):
            text += f"[[{role}.steps]]\n"
            text += "".join(f"{key} = {json.dumps(value)}\n" for key, value in step.items())
    return text


def _named(row: Row) -> list[str]:
    return ["PLAN.PROMPT.md"] if "--config" in row["args"] else []


@pytest.mark.parametrize("name", sorted(RUNS.keys() - ELSEWHERE))
def test_recorded_runs(name: str, looping: Path, typed: Setup, cli: Cli) -> None:
    """A recorded run prints the recorded output and ends with Lopen's exit code."""
    row = RUNS[name]
    agent = "scripted:scenario.toml" if row.get("agent_available", True) else "claude"
    project_of(
        looping,
        _scenario(row),
        branch=row["head"].removeprefix("ref: refs/heads/"),
        agent=agent,
        agentPath=None if agent != "claude" else "/nowhere/claude",
        guard="off",
    )
    for prompt in ("PLAN.PROMPT.md", "BUILD.PROMPT.md"):
        (looping / prompt).unlink()
    (looping / "docs" / "requirements" / "m" / "SPECIFICATION.md").unlink()
    for path, content in {
        **row["files"],
        ".lopen/loop-config.json": json.dumps(row["config"]),
    }.items():
        (looping / path).parent.mkdir(parents=True, exist_ok=True)
        (looping / path).write_text(content, encoding="utf-8")
    args = ["loop", "--compat-exit-codes", *row["args"]]
    if name in _GOES_ON:
        args += ["--max-iterations", str(len(row["sessions"]))]
    answers = "" if row["answer"] is None else row["answer"] + ENTER
    code = typed(answers + (answers + answers if name == "ll-016" else ""), *args)
    expected = row["expected"]
    out, err = cli.printed()
    if "exit" in expected:
        assert expected["exit"] == code
    for text in expected.get("contains", ()):
        assert text in out + err
    for text in expected.get("not_contains", ()):
        assert text not in out + err
    assert expected.get("iterations", out.count("Completed")) == out.count("Completed iteration")
    started = out.count("Mode: PLAN") + out.count("Mode: BUILD")
    assert expected.get("sessions", started) == started
