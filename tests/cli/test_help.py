"""`cuggino help`: commands and topics, read off the models."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator, ValidationError

from cuggino.config import Config
from cuggino.events import CommitPerformed, Event, LlmMarkerEvent, dump_event
from cuggino.events.wire import event_types
from cuggino_cli import topics
from cuggino_cli.commands.help import TOPICS
from cuggino_cli.main import COMMANDS, main
from tests.cli_output.samples import all_event_types, sample


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert 0 == main(["help", *words])
    out, err = capsys.readouterr()
    assert "" == err
    return out


def test_overview(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a name it is the help of `cuggino` and the topics."""
    out = told(capsys)
    assert set(COMMANDS) <= set(re.findall(r"^  (\w+) ", out, re.MULTILINE))
    assert set(TOPICS) <= set(re.findall(r"^  ([\w-]+) ", out, re.MULTILINE))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_what_commands_say(name: str) -> None:
    """What is said of a command without importing it is how its own help begins."""
    command = importlib.import_module(f"cuggino_cli.commands.{name}").command
    assert command.get_short_help_str(limit=1000) == COMMANDS[name]


@pytest.mark.parametrize("name", [*COMMANDS, "pm"])
def test_a_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The name of a command gives what its own `--help` gives."""
    out = told(capsys, name)
    assert 0 == main([name, "--help"])
    assert capsys.readouterr().out == out


def test_a_command_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Two names give the help of the inner one."""
    out = told(capsys, "runs", "show")
    assert 0 == main(["runs", "show", "--help"])
    assert capsys.readouterr().out == out


def test_events(capsys: pytest.CaptureFixture[str]) -> None:
    """Each event is there once, each category above its own."""
    out = told(capsys, "events")
    names = [cls.__name__ for cls in all_event_types()]
    assert sorted(names) == sorted(re.findall(r"^  (\w+)$", out, re.MULTILINE))
    markers = out.split("\nLlmMarkerEvent\n")[1].split("\n\nL")[0]
    assert re.search(r"^  Note$", markers, re.MULTILINE)
    assert "Category:" not in out


@pytest.mark.parametrize("cls", all_event_types(), ids=lambda cls: cls.__name__)
def test_an_event(cls: type[Event], capsys: pytest.CaptureFixture[str]) -> None:
    """One event is told with all of its fields; case does not count."""
    out = told(capsys, "events", cls.__name__.lower())
    assert out.startswith(f"{cls.__name__}\n")
    _, _, below = out.partition("\n  category: ")
    assert list(cls.model_fields) == re.findall(r"^  (\w+): ", below, re.MULTILINE)


def test_the_words_of_a_field(capsys: pytest.CaptureFixture[str]) -> None:
    """What stands below a field in the source stands below it here."""
    out = told(capsys, "events", "CommitPerformed")
    assert "  commit_hash: text\n      Abbreviated, as `git rev-parse --short` gives it.\n" in out


@pytest.mark.parametrize("cls", all_event_types(), ids=lambda cls: cls.__name__)
def test_lines_fit_their_schema(cls: type[Event]) -> None:
    """What is written of an event is what its schema says, and nothing of it may be missing."""
    validator = Draft202012Validator(topics.event_schema(cls))
    line = json.loads(dump_event(sample(cls)))
    validator.validate(line)
    with pytest.raises(ValidationError):
        validator.validate({**line, "_tag": "Other"})


def test_schema_of_all_events(capsys: pytest.CaptureFixture[str]) -> None:
    """One schema holds for each line of `--json`; a line that is no event does not pass."""
    schema = json.loads(told(capsys, "events", "--json"))
    Draft202012Validator.check_schema(schema)
    own = {cls.__name__ for cls in all_event_types()}
    assert own <= set(schema["$defs"])
    one = {"oneOf": [{"$ref": "#/$defs/CommitPerformed"}], "$defs": schema["$defs"]}
    event = CommitPerformed(iteration=1, commit_hash="d97a60c", message="Add it")
    Draft202012Validator(one).validate(json.loads(dump_event(event)))
    with pytest.raises(ValidationError):
        Draft202012Validator(one).validate({"_tag": "CommitPerformed", "iteration": 1})


def test_markers(capsys: pytest.CaptureFixture[str]) -> None:
    """Each marker is there, with who may say it."""
    out = told(capsys, "markers")
    tags = {cls.tag_name() for cls in event_types().values() if issubclass(cls, LlmMarkerEvent)}
    assert tags <= set(re.findall(r"^  <(\w+)>\.\.\.</\1>", out, re.MULTILINE))
    assert "  <APPROVED>...</APPROVED>\n      Approved (reviewing; ends the stage)\n" in out
    assert "  <TO_BE_DISCUSSED>...</TO_BE_DISCUSSED>\n      ToBeDiscussed (audit)\n" in out


def test_config(capsys: pytest.CaptureFixture[str]) -> None:
    """Each key is there once, with type, default, meaning and the commands that follow it."""
    out = told(capsys, "config")
    keys = sorted(field.alias or name for name, field in Config.model_fields.items())
    assert keys == sorted(re.findall(r"^  (\w+): ", out, re.MULTILINE))
    assert (
        "  maxIterations: whole number = 10\n"
        "      How many plan-to-review rounds a run may take.\n"
        "      (run, watch)\n" in out
    )
    assert '  gate: "context" | "block" = "context"\n' in out


def test_every_field_is_documented() -> None:
    """Neither a key nor a type is left without words."""
    docs = topics.field_docs(Config)
    assert set(Config.model_fields) == set(docs) & set(Config.model_fields)


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        ({}, True),
        ({"maxIterations": 3, "checkCommand": "make test", "gate": "block"}, True),
        ({"profile": ["python", "node"], "allowCommands": {"run": ["x"]}}, True),
        ({"maxIterations": 0}, False),
        ({"maxIterations": "3"}, False),
        ({"max_iterations": 3}, False),
        ({"gate": "open"}, False),
    ],
)
def test_schema_of_the_configuration(
    given: dict[str, object], fits: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """An editor that is given the schema accepts what cuggino accepts."""
    schema = json.loads(told(capsys, "config", "--json"))
    Draft202012Validator.check_schema(schema)
    assert fits == Draft202012Validator(schema).is_valid(given)


def test_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    """They are those of the README."""
    out = told(capsys, "exit-codes")
    codes = re.findall(r"^ +(\d+)  ", out, re.MULTILINE)
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    section = readme.split("### Exit codes")[1].split("###")[0]
    rows = re.findall(r"^\| ([\d, ]+) \|", section, re.MULTILINE)
    assert [code for row in rows for code in row.split(", ")] == codes


@pytest.mark.parametrize("columns", [20, 40, 80, 300])
@pytest.mark.parametrize("topic", [*TOPICS])
def test_width(
    topic: str, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Prose is as wide as the terminal, and no wider than 100."""
    monkeypatch.setenv("COLUMNS", str(columns))
    prose = [line for line in told(capsys, topic).splitlines() if line.startswith(" " * 6)]
    longest = max((len(word) for line in prose for word in line.split()), default=0)
    assert all(len(line) <= max(min(columns, 100), 27, longest + 7) for line in prose)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rum"], "There is no command or topic 'rum'. Did you mean 'run'?"),
        (["event"], "There is no command or topic 'event'. Did you mean 'events'?"),
        (["events", "commitperform"], "There is no event 'commitperform'."),
        (["runs", "shw"], "There is no command of `runs` 'shw'. Did you mean 'show'?"),
        (["run", "show"], "There is no command of `run` 'show'."),
        (["config", "budget"], "`help config` takes no further name."),
        (["markers", "--json"], "JSON Schema is there for `help events` and `help config`."),
        (["run", "--json"], "JSON Schema is there for `help events` and `help config`."),
        (["--json"], "JSON Schema is there for `help events` and `help config`."),
    ],
)
def test_wrong_names(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that is none is one sentence, and exit code 2."""
    assert 2 == main(["help", *words])
    out, err = capsys.readouterr()
    assert "" == out
    assert f"Error: {message}" in err
