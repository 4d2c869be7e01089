"""Every kind of unusable file, for each file that people edit: one sentence, and exit code 2."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

from cuggino import edited_files
from cuggino.config import (
    AGENT_FILE,
    CONFIG_FILE,
    PLAN_BUILD_CONFIG_FILE,
    load_config,
    load_plan_build_config,
    load_user_config,
    read_agent_file,
)
from cuggino.errors import ConfigError
from cuggino.storage import STATUS_FILE, DeliverableStore
from cuggino.storage.jobs import JOBS_FILE, JobStore


class Edited(NamedTuple):
    """A file that people edit."""

    path: str
    read: Callable[[Path], object]
    """Reads it in a project, or raises `ConfigError`."""
    text: str
    """A valid content."""
    wrong: str
    """One with a value of a wrong type."""
    problem: str
    """The sentence about that value."""


FILES: Mapping[str, Edited] = MappingProxyType(
    {
        "config": Edited(
            CONFIG_FILE,
            load_config,
            '{"guard": "full"}',
            '{"guard": 1}',
            '"guard" is 1: must be "roles", "full" or "off"',
        ),
        "agent": Edited(
            AGENT_FILE,
            read_agent_file,
            '{"profile": "go"}',
            '{"profile": 1}',
            '"profile" is 1: must be a string or a list',
        ),
        "loop": Edited(
            PLAN_BUILD_CONFIG_FILE,
            load_plan_build_config,
            '{"allowAll": false}',
            '{"allowAll": "no"}',
            '"allowAll" is "no": must be true or false',
        ),
        "user": Edited(
            "config.json",
            lambda folder: load_user_config(folder / "config.json"),
            '{"trust": "require"}',
            '{"trust": true}',
            '"trust" is true: must be "ask", "require" or "off"',
        ),
        "status": Edited(
            STATUS_FILE,
            lambda folder: DeliverableStore(folder).check(),
            '{"deliverables": []}',
            '{"deliverables": [{"id": 1}]}',
            '"deliverables[0].id" is 1: must be a string',
        ),
        "jobs": Edited(
            JOBS_FILE,
            lambda folder: JobStore(folder).check(),
            '{"jobs": []}',
            '{"jobs": {}}',
            'neither a list nor an object with a list "jobs"',
        ),
    }
)
OBJECTS = [name for name in FILES if name != "jobs"]
"""Files whose value is an object; that of jobs may be a list."""


@pytest.fixture(params=FILES)
def edited(request: pytest.FixtureRequest, tmp_path: Path) -> Edited:
    """Return one of the files, whose folder exists."""
    found = FILES[request.param]
    (tmp_path / found.path).parent.mkdir(parents=True, exist_ok=True)
    return found


def problem(edited: Edited, project: Path) -> str:
    """Return the sentence about the file."""
    with pytest.raises(ConfigError) as caught:
        edited.read(project)
    error = caught.value
    assert 2 == error.code
    assert error.hint
    assert Path(edited.path).name in error.message
    assert "\n" not in error.message
    assert len(error.message) < 300
    return error.message.rpartition(f"{Path(edited.path).name}")[2].removeprefix(" is broken")[2:]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "the file is empty"),
        (b" \n\t ", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b'{\n  "a": 1,\n', "line 3 column 1: not valid JSON (Expecting property name"),
        (b'{"a": "b', "line 1 column 7: not valid JSON (Unterminated string"),
        (b"{} {}", "line 1 column 4: not valid JSON (Extra data)"),
        (b'{"a": 1, // why\n}', "line 1 column 10: not valid JSON"),
        (b'{"a": "\xff"}', "byte 7: not UTF-8"),
        (b'{"a": 1}\0', "line 1 column 9: not valid JSON"),
        ('{"a": 1}'.encode("utf-16"), "byte 0: not UTF-8"),
        (b'{"a": NaN}', "NaN is not valid JSON"),
        (b'{"a": -Infinity}', "-Infinity is not valid JSON"),
        (b'{"a": 1e999}', "the number 1e999 is too large"),
        (b'{"a": -' + b"9" * 5000 + b"}", "the number -9999999999999999999... is too large"),
        (b'{"a": ' + b"[" * 500 + b"]" * 500 + b"}", "nested too deeply"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": 1, "b": {"c": 1, "c": 1}}', 'the key "c" is there twice'),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_no_json(content: bytes, sentence: str, edited: Edited, tmp_path: Path) -> None:
    """What is no JSON, or would lose a value, is an error with its line and column or key."""
    (tmp_path / edited.path).write_bytes(content)
    assert problem(edited, tmp_path).startswith(sentence)


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("content", ["[]", "[{}]", "null", "5", '"text"', "true"])
def test_what_is_no_object(name: str, content: str, tmp_path: Path) -> None:
    """Another JSON value than an object is an error."""
    (tmp_path / FILES[name].path).parent.mkdir(exist_ok=True)
    (tmp_path / FILES[name].path).write_text(content)
    assert "not a JSON object" == problem(FILES[name], tmp_path)


def test_a_wrong_value(edited: Edited, tmp_path: Path) -> None:
    """A value of a wrong type is an error with its place, itself, and what it must be."""
    (tmp_path / edited.path).write_text(edited.wrong)
    assert edited.problem == problem(edited, tmp_path)


@pytest.mark.parametrize("name", [name for name in FILES if name not in ("status", "jobs")])
def test_an_unknown_key(name: str, tmp_path: Path) -> None:
    """A misspelled key is an error that proposes the right one: what it says would not hold."""
    edited = FILES[name]
    (tmp_path / edited.path).parent.mkdir(exist_ok=True)
    ((key, value),) = json.loads(edited.text).items()
    (tmp_path / edited.path).write_text(json.dumps({f"{key}s": value}))
    with pytest.raises(ConfigError, match=f'unknown key "{key}s"') as caught:
        edited.read(tmp_path)
    assert f'did you mean "{key}"?' == caught.value.hint


@pytest.mark.parametrize("kind", ["folder", "pipe", "dangling", "circle"])
def test_what_is_no_file(kind: str, edited: Edited, tmp_path: Path) -> None:
    """What is not a regular file is an error; nothing waits for the other end of a pipe."""
    path = tmp_path / edited.path
    expected = "not a regular file"
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "dangling":
            path.symlink_to("nowhere.json")
            expected = "a link to a missing file"
        case _:
            path.symlink_to(path.name)
            expected = "cannot be read (Too many levels of symbolic links)"
    assert expected == problem(edited, tmp_path)


@pytest.mark.parametrize("name", ["agent", "loop", "status", "jobs"])
def test_a_folder_that_is_gone(name: str, tmp_path: Path) -> None:
    """A folder that is a link to a missing one is not as if there were no file."""
    folder = (tmp_path / FILES[name].path).parent
    folder.parent.mkdir(exist_ok=True)
    folder.symlink_to("nowhere")
    assert "a link to a missing file" == problem(FILES[name], tmp_path)


def test_a_file_without_permissions(
    edited: Edited, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that may not be read is an error."""
    (tmp_path / edited.path).write_text(edited.text)

    def refuse(path: Path, *_: object) -> bytes:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(edited_files, "read_regular", refuse)  # root may read any file
    assert "cannot be read (Permission denied)" == problem(edited, tmp_path)


@pytest.mark.parametrize("prefix", ["", "\ufeff", "\r\n  "])
def test_a_usable_file(prefix: str, edited: Edited, tmp_path: Path) -> None:
    """A valid file is read with a byte order mark and through a link; a missing one is none."""
    edited.read(tmp_path)
    real = tmp_path / "real.json"
    real.write_text(prefix + edited.text, encoding="utf-8")
    (tmp_path / edited.path).symlink_to(real)
    edited.read(tmp_path)


def test_a_usable_file_holds(tmp_path: Path) -> None:
    """The restrictions of valid files are in the settings."""
    for name in FILES:
        (tmp_path / FILES[name].path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / FILES[name].path).write_text("\ufeff" + FILES[name].text, encoding="utf-8")
    assert "full" == load_config(tmp_path).guard
    assert "go" == read_agent_file(tmp_path).settings.profile
    assert not load_plan_build_config(tmp_path).config.allow_all
    assert "require" == load_user_config(tmp_path / "config.json").trust
    assert None is DeliverableStore(tmp_path).load(now=datetime.now(UTC)).broken
