"""Commands in projects with an unusable file: one sentence, exit code 2, and nothing is started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuggino.config import AGENT_FILE, CONFIG_FILE, PLAN_BUILD_CONFIG_FILE
from cuggino.storage import STATUS_FILE
from cuggino.storage.jobs import JOBS_FILE
from cuggino_cli.main import main
from tests.cli.cli import Cli

LOOP = ["loop", "--auto"]
COMMANDS = {
    CONFIG_FILE: [
        *(
            ["run", "-f", "x"],
            ["run", "--resume"],
            ["watch"],
            ["deliver"],
            LOOP,
            ["plan"],
        ),
        *(
            ["slots", "list"],
            ["guard", "check", "ls"],
            ["cluster", "check"],
            ["loop", "configure", "--show"],
        ),
    ],
    AGENT_FILE: [["deliver"], ["guard", "check", "--role", "deliver", "ls"]],
    STATUS_FILE: [["deliver"]],
    PLAN_BUILD_CONFIG_FILE: [LOOP, ["loop", "init"], ["loop", "configure", "--show"]],
    JOBS_FILE: [LOOP],
}
"""The commands that read each file."""

CONTENTS = {
    "": "the file is empty",
    '{"a": ': "line 1 column 7: not valid JSON (Expecting value)",
    '{"a": 1, "a": 1}': 'the key "a" is there twice',
}
CASES = [(file, command) for file, commands in COMMANDS.items() for command in commands]


ENDLESS = """
[[planning]]
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "## Task 1: a"
[[planning.steps]]
say = "<PLAN_COMPLETE>One task.</PLAN_COMPLETE>"
[[implementing]]
steps = [{ write = "a.txt", text = "a" }, { say = "<DONE>a</DONE>" }]
[[reviewing]]
steps = [{ say = "<REQUEST_CHANGES>Again.</REQUEST_CHANGES>" }]
"""
"""An iteration whose review asks for another one."""


@pytest.fixture
def looping(ready: Path) -> Path:
    """A project in which each loop could start."""
    (ready / "SPEC.md").write_text("A page.\n")
    for name in ("PLAN.PROMPT.md", "BUILD.PROMPT.md"):
        (ready / name).write_text("Do it.\n")
    for file in COMMANDS:
        (ready / file).parent.mkdir(parents=True, exist_ok=True)
    return ready


def write(project: Path, file: str, content: str) -> None:
    (project / file).write_text(content, encoding="utf-8")


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize(("file", "command"), CASES, ids=lambda value: " ".join(value))
def test_nothing_is_started(
    file: str, command: list[str], content: str, looping: Path, cli: Cli
) -> None:
    """Each command that reads the file ends with the sentence about it, and writes nothing."""
    write(looping, file, content)
    before = sorted(looping.rglob("*"))
    (line,) = [line for line in cli.err(*command).splitlines() if line.startswith("cuggino:")]
    assert Path(file).name in line
    assert line.endswith(CONTENTS[content])
    assert before == sorted(looping.rglob("*"))
    assert content == (looping / file).read_text()


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("file", COMMANDS)
def test_doctor(file: str, content: str, looping: Path, cli: Cli) -> None:
    """A diagnosis reports the file as a problem."""
    write(looping, file, content)
    problems = [x for x in cli("doctor", code=1).splitlines() if x.startswith("problem")]
    assert any(Path(file).name in x and x.endswith(CONTENTS[content]) for x in problems)


def test_the_users_own_file(looping: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """An empty configuration of the user may have required trust, so nothing is started."""
    write(looping, "mine.json", "")
    monkeypatch.setenv("CUGGINO_CONFIG", str(looping / "mine.json"))
    assert f"{looping / 'mine.json'}: the file is empty" in cli.err("run", "-f", "x")


@pytest.mark.parametrize("content", ["", "{", '{"maxIterations": 99, "maxIterations": 99}', "{}"])
def test_a_change_during_a_run(content: str, ready: Path) -> None:
    """The limits of a run are those of its start, whatever becomes of the file meanwhile."""
    write(ready, "new.json", content)
    write(ready, "scenario.toml", ENDLESS * 4)
    settings = {
        "agent": "scripted:scenario.toml",
        "maxIterations": 2,
        "sandbox": "off",
        "setupCommand": "cp new.json .cuggino.json",
    }
    write(ready, CONFIG_FILE, json.dumps(settings))
    assert 11 == main(["run", "-f", "x", "--quiet"])
    assert content == (ready / CONFIG_FILE).read_text()


def test_setup_keeps_an_unusable_file(ready: Path, cli: Cli) -> None:
    """`setup` starts from the defaults and keeps the file; an empty one needs no copy."""
    for content, kept in (("", []), ("{", [".cuggino.json.bak"])):
        write(ready, CONFIG_FILE, content)
        assert "using the defaults" in cli.err("setup", "--yes", code=0)
        assert kept == [path.name for path in ready.glob("*.bak")]
        assert ".specs" == json.loads((ready / CONFIG_FILE).read_text())["specsPath"]
