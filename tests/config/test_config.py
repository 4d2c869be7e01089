"""`.cuggino.json`: what is read, what is refused and with which words, what is written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pydantic import ValidationError

from cuggino.config import CONFIG_FILE, Config, config_path, load_config, save_config
from cuggino.errors import ConfigError
from tests.vectors import not_followed, rows, snake

READ_ROWS = [row for row in rows("cuggino_config") if row["op"] == "read"]


def write(folder: Path, text: str | bytes) -> None:
    config_path(folder).write_bytes(text.encode() if isinstance(text, str) else text)


def refused(folder: Path, text: str | bytes) -> ConfigError:
    """The error that a file with this text gives."""
    write(folder, text)
    with pytest.raises(ConfigError) as caught:
        load_config(folder)
    assert 2 == caught.value.code
    assert "\n" not in caught.value.message
    return caught.value


def test_reads_as_the_original(tmp_path: Path) -> None:
    """A row of the original is read as it says, or is listed with the reason why not."""
    for row in READ_ROWS:
        folder = tmp_path / row["id"]
        folder.mkdir()
        if row["file"] is not None:
            write(folder, row["file"])
        if row["id"] in not_followed():
            with pytest.raises(ConfigError):
                load_config(folder)
            continue
        config = load_config(folder)
        assert {key: getattr(config, snake(key)) for key in row["expected"]} == row["expected"]


def test_the_defaults() -> None:
    """Without a file: ten rounds, fifty tasks a plan, no commands, no commit, claude."""
    config = Config()
    assert (".specs", 10, 50) == (
        config.specs_path,
        config.max_iterations,
        config.max_tasks_per_plan,
    )
    assert (None, None, None) == (
        config.setup_command,
        config.check_command,
        config.command_timeout,
    )
    assert (False, False, False, "context", "claude", 600.0) == (
        config.commit,
        config.audit,
        config.setup_strict,
        config.gate,
        config.agent,
        config.commit_timeout,
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{nope", "line 1 column 2: not valid JSON"),
        ('{\n  "commit": true,\n  "audit": tru\n}', "line 3 column 12: not valid JSON"),
        ('{\n  "commit": true\n  "audit": true}', "line 3 column 3: not valid JSON"),
        ("{} {}", "line 1 column 4: not valid JSON"),
        ("[]", "holds a list, but must hold an object"),
        ('"x"', "holds a text, but must hold an object"),
        ("null", "holds null, but must hold an object"),
        ("true", "holds a boolean, but must hold an object"),
        ("4", "holds a number, but must hold an object"),
        (b'{"specsPath": "\xff"}', "is not UTF-8 (byte 15)"),
        ('{"maxIterations": ' + "9" * 5000 + "}", "not usable JSON"),
        ("[" * 100_000, "not usable JSON"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_file_that_is_no_configuration(tmp_path: Path, text: str | bytes, words: str) -> None:
    """A broken file is one sentence with the line and column, and never silent defaults."""
    error = refused(tmp_path, text)
    assert error.message.startswith(CONFIG_FILE)
    assert words in error.message
    assert error.hint


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("maxIteration", "maxIterations"),
        ("maxIterations ", "maxIterations"),
        ("max_iterations", "maxIterations"),
        ("specspath", "specsPath"),
        ("checkcommand", "checkCommand"),
        ("check", "checkCommand"),
        ("agnts", "agents"),
        ("Commit", "commit"),
    ],
)
def test_an_unknown_key_is_told_with_the_nearest(tmp_path: Path, key: str, nearest: str) -> None:
    """A key that is almost right is refused, and the right one proposed."""
    error = refused(tmp_path, json.dumps({key: None}))
    assert f'{CONFIG_FILE}: unknown key "{key}"' == error.message
    assert f'did you mean "{nearest}"?' == error.hint


@pytest.mark.parametrize("key", ["colour", "", "telegram", "modelConfig"])
def test_a_key_that_is_like_none_lists_them_all(tmp_path: Path, key: str) -> None:
    """A key that resembles no valid one is refused; the hint names a key that is valid."""
    error = refused(tmp_path, json.dumps({key: "blue"}))
    assert f'{CONFIG_FILE}: unknown key "{key}"' == error.message
    assert error.hint is not None
    assert any(f.alias and f.alias in error.hint for f in Config.model_fields.values())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("maxIterations", 0),
        ("maxIterations", -1),
        ("maxIterations", 2.5),
        ("maxIterations", True),
        ("maxIterations", "3"),
        ("maxTasksPerPlan", 0),
        ("commit", "yes"),
        ("commit", 1),
        ("audit", None),
        ("specsPath", ""),
        ("specsPath", "  "),
        ("specsPath", None),
        ("specsPath", ["a"]),
        ("setupCommand", False),
        ("checkCommand", ["make", "check"]),
        ("commandTimeout", 0),
        ("commandTimeout", -5),
        ("commandTimeout", float("inf")),
        ("commandTimeout", float("nan")),
        ("commandTimeout", 1e300),
        ("commitTimeout", None),
        ("gate", "hard"),
        ("push", "origin"),
        ("push", "/main"),
        ("push", "origin/+main"),
        ("push", "--all/main"),
        ("push", "origin//main"),
        ("push", "host:x/main"),
        ("agent", " "),
        ("model", 4),
        ("setupCommand", {"very": "long " * 100}),
    ],
    ids=lambda value: str(value)[:24].encode("ascii", "replace").decode(),
)
def test_a_wrong_value_is_told_with_its_key(tmp_path: Path, key: str, value: Any) -> None:
    """A value of a wrong type or range is refused with its key and itself, in one short line."""
    error = refused(tmp_path, json.dumps({"maxIterations": 3, key: value}))
    assert error.message.startswith(f'{CONFIG_FILE}: "{key}" is ')
    assert len(error.message) < 250


@pytest.mark.parametrize("value", [["belll", "slack://geheim"], "origin://me:geheim@host/main"])
def test_a_url_is_not_shown(tmp_path: Path, value: Any) -> None:
    """A value that is refused is shown without its URLs, which may hold passwords."""
    error = refused(tmp_path, json.dumps({"notify" if isinstance(value, list) else "push": value}))
    assert "://…" in error.message
    assert "geheim" not in error.message


def test_the_gate_needs_a_check(tmp_path: Path) -> None:
    """`gate: block` without a check command, or with a blank one, could approve nothing."""
    for text in ('{"gate": "block"}', '{"gate": "block", "checkCommand": " "}'):
        error = refused(tmp_path, text)
        assert (
            '"gate": "block" needs a "checkCommand", else no approval could count' in error.message
        )
    write(tmp_path, '{"gate": "block", "checkCommand": "make check"}')
    assert "block" == load_config(tmp_path).gate


@pytest.mark.parametrize("text", ["", " \n", "\ufeff", "\ufeff{}", "{}\n"])
def test_an_empty_file_is_all_defaults(tmp_path: Path, text: str) -> None:
    """A file without anything in it, byte order mark or not, is as good as none."""
    write(tmp_path, text)
    assert Config() == load_config(tmp_path)


@pytest.mark.parametrize(
    ("written", "expected"),
    [("", None), ("  \t", None), (None, None), (" npm ci ", "npm ci"), ("a\nb", "a\nb")],
)
def test_commands_are_trimmed_and_blank_ones_absent(
    tmp_path: Path, written: str | None, expected: str | None
) -> None:
    """A blank command is no command; blanks around one do not count."""
    write(tmp_path, json.dumps({"setupCommand": written, "checkCommand": written}))
    config = load_config(tmp_path)
    assert (expected, expected) == (config.setup_command, config.check_command)


def test_whole_numbers_do_for_seconds(tmp_path: Path) -> None:
    """A number of seconds may be written without a fraction."""
    write(tmp_path, '{"commandTimeout": 90}')
    assert 90.0 == load_config(tmp_path).command_timeout


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """A folder in the file's place is an error with the system's words."""
    config_path(tmp_path).mkdir()
    with pytest.raises(ConfigError, match=r"\.cuggino\.json cannot be read: Is a directory"):
        load_config(tmp_path)


def test_it_is_frozen() -> None:
    """A configuration is a value."""
    with pytest.raises(ValidationError):
        Config().commit = True


class TestSaving:
    def test_the_six_keys_are_always_there(self, tmp_path: Path) -> None:
        """The original's keys are written, absent ones left out, others where they differ."""
        save_config(tmp_path, Config(setup_command="make", gate="context", max_tasks_per_plan=7))
        assert (
            '{\n  "specsPath": ".specs",\n  "maxIterations": 10,\n  "maxTasksPerPlan": 7,\n'
            '  "setupCommand": "make",\n  "commit": false,\n  "audit": false\n}\n'
        ) == config_path(tmp_path).read_text()

    texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    shown = texts.filter(str.strip)
    seconds = st.floats(0.001, 1e6)

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
    @given(
        st.builds(
            Config,
            specs_path=shown,
            max_iterations=st.integers(1, 10**9),
            max_tasks_per_plan=st.integers(1, 10**9),
            setup_command=st.none() | texts,
            check_command=shown,
            setup_strict=st.booleans(),
            command_timeout=st.none() | seconds,
            gate=st.sampled_from(["context", "block"]),
            commit=st.booleans(),
            commit_timeout=seconds,
            audit=st.booleans(),
            agent=shown,
            agent_path=st.none() | texts,
            model=st.none() | texts,
        )
    )
    def test_what_is_saved_is_loaded(self, tmp_path: Path, config: Config) -> None:
        """Any configuration is the same after saving and loading it, and leaves no other file."""
        save_config(tmp_path, config)
        assert config == load_config(tmp_path)
        assert [CONFIG_FILE] == [path.name for path in tmp_path.iterdir()]

    def test_a_folder_that_is_none(self, tmp_path: Path) -> None:
        """Where there is no folder the error says so."""
        place = tmp_path / "file"
        place.write_text("")
        with pytest.raises(ConfigError, match=r"file/.* cannot be written: "):
            save_config(place, Config())

    def test_a_failure_keeps_the_old_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """If the new file cannot take its place the old one is as it was, and alone."""
        save_config(tmp_path, Config(max_iterations=3))

        def refuse(*_: object) -> None:
            raise OSError(28, os.strerror(28))

        monkeypatch.setattr(Path, "replace", refuse)
        with pytest.raises(ConfigError, match="No space left"):
            save_config(tmp_path, Config(max_iterations=4))
        assert 3 == load_config(tmp_path).max_iterations
        assert [CONFIG_FILE] == [path.name for path in tmp_path.iterdir()]
