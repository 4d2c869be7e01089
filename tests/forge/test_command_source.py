"""The output of a command as a source, with real commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable

import cuggino
from cuggino.errors import ConfigError, ProcessFailed
from cuggino.forge import Source, SourceItem, command_source
from cuggino.stages import command_lines


def source(folder: Path, command: str, **settings: Any) -> Source:
    def run() -> Any:
        return command_lines(command, folder, views=None)

    return command_source("jira", run, **settings)


def items(stream: Observable[SourceItem]) -> list[SourceItem]:
    return list(cuggino.iterate(stream))


def read(folder: Path, text: str) -> list[SourceItem]:
    (folder / "out").write_text(text)
    return items(source(folder, "cat out").items())


def test_each_line_is_an_item(tmp_path: Path) -> None:
    text = (
        '{"id": 7, "title": "A"}\n\n'
        '{"id": "P-8", "title": "B", "body": "b", "after": [7, "P-1"], "url": "https://e.example",'
        ' "held": "waits", "closed": true, "labels": ["x"]}'
    )
    assert read(tmp_path, text) == [
        SourceItem(id="7", title="A"),
        SourceItem(
            id="P-8",
            title="B",
            body="b",
            after=("7", "P-1"),
            url="https://e.example",
            held="waits",
            closed=True,
        ),
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("Usage: jira", "column 1: not valid JSON"),
        ("[1]", "not a JSON object"),
        ('{"title": "A"}', '"id" is missing'),
        ('{"id": true, "title": "A"}', '"id" is not a text'),
        ('{"id": " ", "title": "A"}', "'' is not an id"),
        ('{"id": 1}', '"title" is missing'),
        ('{"id": 1, "title": 2}', '"title" is not a text'),
        ('{"id": 1, "title": "A", "after": "7"}', '"after" is not a list of ids'),
        ('{"id": 1, "title": "A", "after": [[]]}', "[] is not an id"),
        ('{"id": 1, "title": "A", "closed": 1}', '"closed" is neither true nor false'),
        ("[" * 5000, "nested too deeply"),
        ('{"id": NaN}', "NaN is not valid JSON"),
    ],
)
def test_a_line_that_is_not_valid(tmp_path: Path, line: str, problem: str) -> None:
    """It is named by its number; the other items are emitted first."""
    (tmp_path / "out").write_text(f'{{"id": 1, "title": "A"}}\n{line}\n{{"id": 2, "title": "B"}}\n')
    seen: list[SourceItem] = []
    stream = source(tmp_path, "cat out").items()
    with pytest.raises(ConfigError, match="line 2: ") as caught:
        cuggino.run(stream, seen.append)
    assert problem in str(caught.value)
    assert [item.id for item in seen] == ["1", "2"]


def test_many_lines_that_are_not_valid(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"line 3: .*; and 7 more$"):
        read(tmp_path, "x\n" * 10)


def test_a_command_that_fails(tmp_path: Path) -> None:
    stream = source(tmp_path, "echo no login >&2; exit 3").items()
    with pytest.raises(ProcessFailed, match="no login"):
        items(stream)


def test_a_command_that_takes_too_long(tmp_path: Path) -> None:
    stream = source(tmp_path, 'echo \'{"id": 1, "title": "A"}\'; sleep 600', timeout=0.5).items()
    with pytest.raises(ConfigError, match=r"timed out after 0\.5 seconds"):
        items(stream)


def test_what_it_prints_to_standard_error_is_no_item(tmp_path: Path) -> None:
    stream = source(tmp_path, 'echo warning >&2; echo \'{"id": 1, "title": "A"}\'').items()
    assert items(stream) == [SourceItem(id="1", title="A")]
