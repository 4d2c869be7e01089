"""`cuggino help`, the help of each command, and shell completion."""

from __future__ import annotations

import importlib
import json
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from jsonschema import Draft202012Validator, ValidationError

import cuggino
from cuggino.config import Config
from cuggino.events import CommitPerformed, Event, LlmMarkerEvent, dump_event
from cuggino.events.wire import event_types
from cuggino_cli import help, main as main_module
from cuggino_cli.commands import COMMANDS, GROUPS, module_of
from cuggino_cli.help import TOPICS, lookup, schemas
from cuggino_cli.help.lookup import explanations
from cuggino_cli.help.rendering import headings, rendered, section
from cuggino_cli.main import cli as group
from tests.cli.cli import Cli
from tests.command_lines import parse_line
from tests.documents.exit_codes import exit_codes
from tests.screen.samples import all_event_types, own_fields, sample
from tests.vectors import each


def told(cli: Cli, *words: str) -> str:
    out, err = cli.both("help", *words)
    assert "" == err
    return out


def test_overview(cli: Cli) -> None:
    """Without a name it prints the help of `cuggino` and the topics."""
    out = told(cli)
    listed = out.partition("Pages, with")[0]
    assert set(COMMANDS) <= set(re.findall(r"(?:^  |, )(\w+)(?=[ ,\n])", listed, re.MULTILINE))
    titles = re.findall(r"^(\w.*):$", listed, re.MULTILINE)
    assert list(GROUPS) == [title for title in titles if title in GROUPS]
    assert set(TOPICS) <= set(re.findall(r"^  ([\w-]+) ", out, re.MULTILINE))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_matches_the_commands(name: str) -> None:
    """The lazy summary of each command is the first line of its help."""
    command = importlib.import_module(module_of(name)).command
    assert command.get_short_help_str(limit=1000) == COMMANDS[name]


@pytest.mark.parametrize("name", [*COMMANDS, "pm"])
def test_a_command(name: str, cli: Cli) -> None:
    """The name of a command prints its `--help`."""
    out = told(cli, name)
    assert cli(name, "--help") == out


def test_a_subcommand(cli: Cli) -> None:
    """Two names print the help of the inner command."""
    out = told(cli, "runs", "show")
    assert cli("runs", "show", "--help") == out


def test_the_pages_are_the_files() -> None:
    """Each Markdown file of the package is a topic, and each topic is a file."""
    files = {path.stem for path in Path(help.__file__).parent.glob("*.md")}
    assert files == set(TOPICS)
    assert not files & set(COMMANDS)


@pytest.mark.parametrize("cls", all_event_types(), ids=lambda cls: cls.__name__)
def test_an_event(cls: type[Event], cli: Cli) -> None:
    """The section of an event lists all its fields, and names are case-insensitive."""
    out = told(cli, "events", cls.__name__.lower())
    assert out.startswith(f"{cls.__name__}\n")
    assert own_fields(cls) == re.findall(r"^- `(\w+)`: ", out, re.MULTILINE)


def test_a_section_of_a_page(cli: Cli) -> None:
    """A section ends at the next heading of its level."""
    out = told(cli, "safety", "sandbox")
    assert out.startswith("Sandbox\n-------\n")
    assert "`sandboxDomains`" in out
    assert "Containers" not in out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["gate"], ["an approval counts only if the check command", "--gate of cuggino run"]),
        (["config", "gate"], ["an approval counts only if the check command"]),
        (["--max-tokens"], ["`maxTokens`", "--max-tokens of cuggino run, cuggino watch"]),
        (["budget"], ["US dollars that all agents of a run", "Budget of cuggino.domain"]),
        (["RateLimited"], ["RateLimited (cuggino help events)", "- `resets_at`"]),
        (["retry_session"], ["retry_session:      a--R"]),
        (["Schedule"], ["Schedule.exponential(", "and_then(other: Schedule) -> Schedule"]),
        (["operators", "schedule"], ["Schedule of cuggino"]),
        (["watch_file_count"], ["watch_file_count of cuggino", "settle: float = 30.0"]),
        (["Capabilities"], ["- `resume`: Can resume a session by its id."]),
        (["Config"], ["- `max_iterations`: Maximum iterations of a run"]),
        (["13"], ["budget spent"]),
        (["NO_COLOR"], ["no colors with `--color auto`"]),
        (["catchTag"], ["catch_tag"]),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else None,
)
def test_a_word(words: list[str], expected: list[str], cli: Cli) -> None:
    """A word is found wherever it is defined: keys, options, events, operators, codes, names."""
    out = told(cli, *words)
    assert [] == [text for text in expected if text not in out]


def test_every_key_and_public_name_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key of the configuration and no name that the library exports is left out."""
    for name in ("page", "headings", "public_names"):
        monkeypatch.setattr(lookup, name, cache(getattr(lookup, name)))
    keys = [field.alias or name for name, field in Config.model_fields.items()]
    names = [name for name in cuggino.__all__ if not name.startswith("_")]
    assert [] == [word for word in (*keys, *names) if not explanations(word, {})]


@each("cls", all_event_types())
def test_lines_fit_their_schema(cls: type[Event]) -> None:
    """An event matches its schema; another tag does not."""
    validator = Draft202012Validator(schemas.event_schema(cls))
    line = json.loads(dump_event(sample(cls)))
    validator.validate(line)
    with pytest.raises(ValidationError):
        validator.validate({**line, "_tag": "Other"})


@pytest.mark.real_agent
def test_schema_of_all_events(cli: Cli) -> None:
    """One schema accepts every line of `--json` and rejects other lines."""
    schema = json.loads(told(cli, "events", "--json"))
    Draft202012Validator.check_schema(schema)
    own = {cls.__name__ for cls in all_event_types()}
    assert own <= set(schema["$defs"])
    one = {"oneOf": [{"$ref": "#/$defs/CommitPerformed"}], "$defs": schema["$defs"]}
    event = CommitPerformed(iteration=1, commit_hash="d97a60c", message="Add it")
    Draft202012Validator(one).validate(json.loads(dump_event(event)))
    alone = json.loads(told(cli, "events", "commitperformed", "--json"))
    Draft202012Validator(alone).validate(json.loads(dump_event(event)))
    with pytest.raises(ValidationError):
        Draft202012Validator(one).validate({"_tag": "CommitPerformed", "iteration": 1})


def test_markers(cli: Cli) -> None:
    """Each marker is listed once with its roles."""
    out = told(cli, "markers")
    tags = {cls.tag_name() for cls in event_types().values() if issubclass(cls, LlmMarkerEvent)}
    assert tags >= set(re.findall(r"^ *`<(\w+)>`", out, re.MULTILINE)) >= {"DONE", "APPROVED"}


def test_every_field_is_documented() -> None:
    """Every key and type has a description."""
    docs = schemas.field_docs(Config)
    assert set(Config.model_fields) == set(docs) & set(Config.model_fields)
    for name, nested in schemas.config_schema()["$defs"].items():
        assert all("description" in key for key in nested["properties"].values()), name


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
        ({"cluster": "tls://host"}, True),
        ({"cluster": {"address": "local", "needs": {"gpu": 1}}}, True),
        ({"cluster": {"adress": "local"}}, False),
    ],
)
def test_schema_of_the_configuration(given: dict[str, object], fits: bool, cli: Cli) -> None:
    """The configuration schema accepts exactly what cuggino accepts."""
    schema = json.loads(told(cli, "config", "--json"))
    Draft202012Validator.check_schema(schema)
    assert fits == Draft202012Validator(schema).is_valid(given)


def test_exit_codes(cli: Cli) -> None:
    """The page lists each code in order."""
    codes = re.findall(r"^ *(\d+)  ", told(cli, "exit-codes"), re.MULTILINE)
    assert [str(code) for code, _ in exit_codes()] == codes


@pytest.mark.parametrize("columns", [40, 80, 300])
@pytest.mark.parametrize("topic", TOPICS)
def test_width(topic: str, columns: int, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """Text wraps at the terminal width or 100 columns; code and long words stay whole."""
    monkeypatch.setenv("COLUMNS", str(columns))
    for line in told(cli, topic).splitlines():
        is_code = line.startswith("    ")
        words = line.split()
        longest = max(map(len, words), default=0)
        assert is_code or len(line) < max(min(columns, 100), 28 + longest), line


LOOPS = ("run", "watch", "deliver", "loop")


def all_commands() -> Iterator[tuple[str, ...]]:
    """Return the names of each command and subcommand."""
    for name in COMMANDS:
        yield (name,)
        found = group.get_command(click.Context(group), name)
        if isinstance(found, click.Group):
            yield from ((name, inner) for inner in found.commands)


ALL = sorted(all_commands())


def help_of(names: tuple[str, ...], cli: Cli) -> str:
    return cli(*names, "--help")


def examples(text: str) -> list[str]:
    """Return the command lines listed under `Examples:`."""
    _, found, below = text.partition("  Examples:\n")
    assert found
    return re.findall(r"^ {4}(\S.*)$", below.split("\n\n")[0], re.MULTILINE)


@pytest.mark.parametrize("names", ALL, ids=" ".join)
def test_examples_are_understood(
    names: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """Every help page has an example of its command, and all examples parse."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    found = [parse_line(line) for line in examples(help_of(names, cli))]
    aliased = [["plan" if name == "pm" else name for name in line] for line in found]
    assert any(list(names) == line[: len(names)] for line in aliased)


@pytest.mark.parametrize("name", LOOPS)
def test_loops_list_exit_codes(name: str, cli: Cli) -> None:
    """The help of a loop ends with one paragraph of exit codes."""
    _, _, below = help_of((name,), cli).partition("  Exit codes: ")
    codes = {int(code) for code in re.findall(r"\b(\d+)\s+[a-z]", below)}
    assert {1, 2, 13, 130, 143} <= codes <= {code for code, _ in exit_codes()}


@pytest.mark.parametrize("name", [name for name in LOOPS if name != "watch"])
def test_loops_list_resumable_exit_codes(name: str, cli: Cli) -> None:
    """The resumable exit codes match `cuggino help exit-codes`."""
    said = re.search(r"After ([\d,\s]+) and\s+(\d+)\s+the\s+run", help_of((name,), cli))
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
    _, _, below = help_of(names, cli).partition("  See also: ")
    listed = below.split("\n")[0].removesuffix(".")
    for name in filter(None, listed.split(", ")):
        *_, last = name.split()
        assert last in (TOPICS if name.startswith("cuggino help ") else COMMANDS)


@pytest.mark.parametrize("name", LOOPS)
def test_options_are_in_sections(name: str, cli: Cli) -> None:
    """Each option of a loop is shown once, shared ones in sections; of seldom ones the name."""
    found = help_of((name,), cli)
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
def test_width_of_commands(
    names: tuple[str, ...], columns: int, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """Only command lines of examples exceed 80 columns."""
    monkeypatch.setenv("COLUMNS", str(columns))
    found = help_of(names, cli)
    lines = set(found.splitlines()) - {f"    {line}" for line in examples(found)}
    assert all(len(line) <= 80 for line in lines)


TABLE = """\
| key | type | meaning |
|---|---|---|
| `agent` | text \\| none | The agent that does the work, by its name. |
"""


@pytest.mark.parametrize(
    ("markdown", "columns", "expected"),
    [
        (
            "# Title\n\n## `part` one\n\n### small",
            40,
            "Title\n=====\n\npart one\n--------\n\nsmall",
        ),
        ("one two\nthree four five six", 20, "one two three four\nfive six"),
        (
            "- one two three four five\n  six\n- seven",
            22,
            "- one two three four\n  five six\n- seven",
        ),
        ("1. one\n2. two", 40, "1. one\n2. two"),
        ("**bold** and *slanted* but `**code**`", 60, "bold and slanted but `**code**`"),
        (
            "a [page](loops.md#x) and [a file](../x.py)",
            60,
            "a page (`cuggino help loops`) and a file",
        ),
        ("[RxPY](https://rxpy.org)", 60, "RxPY (https://rxpy.org)"),
        ("```sh\nls   -l\n\ncd\n```", 20, "    ls   -l\n\n    cd"),
        ("<!-- hidden\nlines -->\n\nseen", 20, "seen"),
        ("![picture](x.svg)", 20, ""),
    ],
)
def test_rendered(markdown: str, columns: int, expected: str) -> None:
    assert expected == "\n".join(rendered(markdown, columns))


def test_a_table_that_fits() -> None:
    """Cells are aligned, and the last one wraps below itself."""
    expected = """\
        key      type         meaning
        `agent`  text | none  The agent that does the work, by
                              its name."""
    assert textwrap.dedent(expected) == "\n".join(rendered(TABLE, 55))


def test_a_table_of_figures_that_fits() -> None:
    """A last column that is narrow needs no more room than it has."""
    table = "| tool | runs | lost |\n|---|---|---|\n| loop | 3 | 0 |"
    assert ["tool  runs  lost", "loop  3     0"] == list(rendered(table, 16))
    assert "tool  runs  lost" not in rendered(table, 15)


def test_a_table_that_does_not_fit() -> None:
    """Each row becomes a block."""
    block = [
        "  `agent`",
        "      type: text | none",
        "      The agent that does the",
        "      work, by its name.",
    ]
    assert block == list(rendered(TABLE, 30))


def test_sections() -> None:
    """A section includes its subsections and ends at the next heading of its level."""
    page = "# T\n\n## A\n\na\n\n### B\n\nb\n\n## C\n\nc\n"
    assert ["A", "B", "C"] == headings(page)
    assert "## A\n\na\n\n### B\n\nb\n" == section(page, "a")
    assert "## C\n\nc\n" == section(page, "C")
    assert section(page, "D") is None
