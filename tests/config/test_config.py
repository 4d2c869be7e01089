"""`.cuggino.json`: parsing, error messages and saving."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pydantic import ValidationError

from cuggino.config import (
    CONFIG_FILE,
    Config,
    config_path,
    load_config,
    parse_config,
    save_config,
)
from cuggino.errors import ConfigError
from tests.vectors import not_followed, rows, snake

READ_ROWS = [row for row in rows("cuggino_config") if row["op"] == "read"]


def write(folder: Path, text: str | bytes) -> None:
    config_path(folder).write_bytes(text.encode() if isinstance(text, str) else text)


def refused(folder: Path, text: str | bytes) -> ConfigError:
    """Return the error for a file with this text."""
    write(folder, text)
    with pytest.raises(ConfigError) as caught:
        load_config(folder)
    assert 2 == caught.value.code
    assert "\n" not in caught.value.message
    return caught.value


def test_reads_as_the_original(tmp_path: Path) -> None:
    """A recorded row is parsed as recorded, or listed as an exception with the reason."""
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


def test_the_schema_of_editors(tmp_path: Path) -> None:
    """`$schema` has no effect, and is kept when the file is written again."""
    write(tmp_path, '{"$schema": "./cuggino.schema.json", "maxIterations": 3}')
    assert Config(max_iterations=3) == load_config(tmp_path)
    save_config(tmp_path, Config(max_iterations=4))
    raw = json.loads(config_path(tmp_path).read_text())
    assert ("./cuggino.schema.json", 4) == (raw["$schema"], raw["maxIterations"])
    assert 'unknown key "$scheme"' in refused(tmp_path, '{"$scheme": "x"}').message


def test_the_defaults() -> None:
    """The defaults are ten iterations, fifty tasks a plan, no commands, no commit, claude."""
    config = Config()
    assert (".specs", 10, 50) == (
        config.specs_path,
        config.max_iterations,
        config.max_tasks_per_plan,
    )
    assert (None, None) == (config.setup_command, config.check_command)
    assert (1800.0, 10_800.0, 20) == (
        config.command_timeout,
        config.stage_timeout,
        config.repetition_limit,
    )
    assert (20, 86_400.0) == (config.max_quota_waits, config.max_quota_wait)
    assert (False, False, False, "context", "claude", 600.0) == (
        config.commit,
        config.audit,
        config.setup_strict,
        config.gate,
        config.agent,
        config.commit_timeout,
    )


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
def test_an_unknown_key_has_a_suggestion(tmp_path: Path, key: str, nearest: str) -> None:
    """A key that is almost right is rejected with the right one as a suggestion."""
    error = refused(tmp_path, json.dumps({key: None}))
    assert f'{CONFIG_FILE}: unknown key "{key}"' == error.message
    assert f'did you mean "{nearest}"?' == error.hint


@pytest.mark.parametrize("key", ["colour", "", "telegram", "modelConfig"])
def test_an_unknown_key_without_a_suggestion_lists_all(tmp_path: Path, key: str) -> None:
    """A key unlike any valid one is rejected, with valid ones in the hint."""
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
        ("commandTimeout", 1e300),
        ("commitTimeout", None),
        ("gate", "hard"),
        ("baseline", True),
        ("baseline", "block"),
        ("push", "origin"),
        ("push", "/main"),
        ("push", "origin/+main"),
        ("push", "--all/main"),
        ("push", "origin//main"),
        ("push", "host:x/main"),
        ("notify", 7),
        ("notify", ["bell", 7]),
        ("notify", {"on": ["often"]}),
        ("notify", {"on": "end"}),
        ("notify", {"at": "7 am"}),
        ("notify", {"at": "24:00"}),
        ("notify", {"command": " "}),
        ("notify", {"to": "belll"}),
        ("loginCheck", "no"),
        ("allowSleep", 1),
        ("agent", " "),
        ("model", 4),
        ("setupCommand", {"very": "long " * 100}),
    ],
    ids=lambda value: str(value)[:24].encode("ascii", "replace").decode(),
)
def test_an_invalid_value_is_reported_with_its_key(tmp_path: Path, key: str, value: Any) -> None:
    """A value of a wrong type or range is rejected with place and value in one short line."""
    error = refused(tmp_path, json.dumps({"maxIterations": 3, key: value}))
    assert error.message.startswith(f'{CONFIG_FILE}: "{key}')
    assert ": must " in error.message
    assert len(error.message) < 250


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"g\\ud800": 1}', "a key must be text without half a surrogate pair"),
        ('{"gate": "\\ud800"}', '"gate" is "\ud800": must be text without half a surrogate pair'),
        ('{"budget": 1' + "0" * 306 + "}", ""),
        ('{"budget": -1}', '"budget" is -1: must be greater than 0'),
        ('{"checkCommand": "a\\u0000b"}', ": must not contain NUL"),
        ('{"quotaReserve": 1}', '"quotaReserve" is 1: must be less than 1'),
        ('{"quotaReserve": -0.1}', '"quotaReserve" is -0.1: must be at least 0'),
        ('{"overage": "ask"}', '"overage" is "ask": must be "pay" or "stop"'),
        ('{"maxDuration": 1e300}', '"maxDuration" is 1e+300: must be at most 31622400'),
    ],
)
def test_odd_texts_and_numbers(tmp_path: Path, text: str, words: str) -> None:
    """Half a surrogate pair and a number out of range are rejected; a large budget is none."""
    if words:
        assert words in refused(tmp_path, text).message
    else:
        write(tmp_path, text)
        assert 1e306 == load_config(tmp_path).budget


@pytest.mark.parametrize("value", [{"slack": "slack://geheim"}, "origin://me:geheim@host/main"])
def test_a_url_is_not_shown(tmp_path: Path, value: Any) -> None:
    """A rejected value is shown without URLs, which may contain passwords."""
    error = refused(tmp_path, json.dumps({"push": value}))
    assert "://…" in error.message
    assert "geheim" not in error.message


def test_the_gate_needs_a_check(tmp_path: Path) -> None:
    """A gate that decides needs a check command that is not blank, and so does `must-pass`."""
    for setting in ('"gate": "block"', '"gate": "clean"', '"baseline": "must-pass"'):
        for text in (f"{{{setting}}}", f'{{{setting}, "checkCommand": " "}}'):
            assert f'{setting} requires a "checkCommand"' in refused(tmp_path, text).message
    for gate in ("block", "clean"):
        write(tmp_path, f'{{"gate": "{gate}", "checkCommand": "make", "baseline": "must-pass"}}')
        config = load_config(tmp_path)
        assert (gate, "must-pass") == (config.gate, config.baseline)


GATED = {"commit": True, "checkCommand": "make check"}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"slots": 2}, 'requires "commit": true and a "checkCommand"'),
        ({"slots": 2, "commit": True}, 'requires a "checkCommand"'),
        ({"slots": 2, "commit": True, "checkCommand": " "}, 'requires a "checkCommand"'),
        ({"slots": 2, "checkCommand": "make"}, 'requires "commit": true,'),
        ({**GATED, "slots": 2, "push": "origin/main"}, '"push" requires a single slot'),
        ({**GATED, "landOn": "branch"}, '"landOn": "branch" requires more than one slot'),
        ({**GATED, "slots": 0}, '"slots" is 0'),
        ({**GATED, "slots": 401}, '"slots" is 401'),
        ({**GATED, "slots": "4"}, '"slots" is "4"'),
        ({**GATED, "slots": 2, "slotFolder": " "}, "must name a folder"),
        ({**GATED, "slots": 2, "slotFolder": "a\0b"}, "must name a folder"),
        ({**GATED, "landOn": "pr"}, '"landOn": "pr" requires more than one slot'),
        ({"attempts": 2}, 'more than one attempt requires "commit": true and a "checkCommand"'),
        ({**GATED, "attempts": 2, "push": "origin/main"}, '"push" requires a single attempt'),
        ({**GATED, "attempts": 9}, '"attempts" is 9: must be at most 8'),
        ({**GATED, "attempts": []}, "must be 1 to 8 attempts"),
        ({**GATED, "attempts": "3"}, "must be a whole number or a list"),
        ({**GATED, "attempts": [{"hints": "x"}]}, 'unknown key "hints" in "attempts[0]"'),
        ({**GATED, "choose": "worst"}, 'must be "first" or "best"'),
        ({**GATED, "slots": 2, "landOn": "tag"}, '"landOn" is "tag"'),
    ],
)
def test_slots_need_a_gate(tmp_path: Path, raw: dict[str, Any], message: str) -> None:
    """More than one slot without commits and a check is rejected, and so is landing without."""
    assert message in refused(tmp_path, json.dumps(raw)).message


def test_attempts() -> None:
    """A number makes all attempts alike; in a list each is a name, or what it differs in."""
    assert 1 == len(Config().choices)
    given = {**GATED, "attempts": ["codex", {"hint": "test first"}, {}]}
    named, hinted, usual = parse_config(given).choices
    assert ("codex", None) == (named.agent, named.hint)
    assert (None, "test first") == (hinted.agent, hinted.hint)
    assert (usual,) * 3 == parse_config({**GATED, "attempts": 3}).choices


def test_slots(tmp_path: Path) -> None:
    """One slot is the default and needs nothing; with a gate there can be up to 64."""
    assert (Config().slots, Config().slot_folder, Config().land_on) == (1, None, "follow")
    raw = {**GATED, "slots": 64, "slotFolder": "../elsewhere", "landOn": "branch"}
    write(tmp_path, json.dumps(raw))
    config = load_config(tmp_path)
    assert (config.slots, config.slot_folder, config.land_on) == (64, "../elsewhere", "branch")


@pytest.mark.parametrize("text", ["\ufeff{}", "{}\n", ' {"maxIterations": 10}'])
def test_an_empty_object_is_all_defaults(tmp_path: Path, text: str) -> None:
    """An object without settings is all defaults, with a byte order mark or without."""
    write(tmp_path, text)
    assert Config() == load_config(tmp_path)


@pytest.mark.parametrize(
    ("written", "expected"),
    [("", None), ("  \t", None), (None, None), (" npm ci ", "npm ci"), ("a\nb", "a\nb")],
)
def test_commands_are_trimmed_and_blank_ones_absent(
    tmp_path: Path, written: str | None, expected: str | None
) -> None:
    """A blank command is None; whitespace around a command is stripped."""
    write(tmp_path, json.dumps({"setupCommand": written, "checkCommand": written}))
    config = load_config(tmp_path)
    assert (expected, expected) == (config.setup_command, config.check_command)


def test_seconds_may_be_integers(tmp_path: Path) -> None:
    """A number of seconds may be written without a fraction."""
    write(tmp_path, '{"commandTimeout": 90}')
    assert 90.0 == load_config(tmp_path).command_timeout


def test_it_is_frozen() -> None:
    """The configuration is immutable."""
    with pytest.raises(ValidationError):
        Config().commit = True


class TestSaving:
    def test_the_six_keys_are_always_saved(self, tmp_path: Path) -> None:
        """The original's keys are saved, absent ones left out, others if not the default."""
        save_config(tmp_path, Config(setup_command="make", gate="context", max_tasks_per_plan=7))
        assert (
            '{\n  "specsPath": ".specs",\n  "maxIterations": 10,\n  "maxTasksPerPlan": 7,\n'
            '  "setupCommand": "make",\n  "commit": false,\n  "audit": false\n}\n'
        ) == config_path(tmp_path).read_text()

    texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    shown = texts.filter(str.strip)
    commands = shown.filter(lambda text: "\0" not in text)
    seconds = st.floats(0.001, 1e6)

    @settings(
        suppress_health_check=[HealthCheck.function_scoped_fixture],
        max_examples=2 * settings().max_examples,
    )
    @given(
        st.builds(
            Config,
            specs_path=shown,
            max_iterations=st.integers(1, 10**9),
            max_tasks_per_plan=st.integers(1, 10**9),
            setup_command=st.none() | commands,
            check_command=commands,
            setup_strict=st.booleans(),
            command_timeout=st.none() | seconds,
            gate=st.sampled_from(["context", "block", "clean"]),
            baseline=st.sampled_from(["run", "skip", "must-pass"]),
            commit=st.booleans(),
            commit_timeout=seconds,
            audit=st.booleans(),
            agent=shown,
            agent_path=st.none() | texts,
            model=st.none() | texts,
        )
    )
    def test_configurations_round_trip(self, tmp_path: Path, config: Config) -> None:
        """Any configuration survives saving and loading, and leaves no other file."""
        save_config(tmp_path, config)
        assert config == load_config(tmp_path)
        assert [CONFIG_FILE] == [path.name for path in tmp_path.iterdir()]

    def test_a_missing_folder(self, tmp_path: Path) -> None:
        """A missing folder is an error that names it."""
        place = tmp_path / "file"
        place.write_text("")
        with pytest.raises(ConfigError, match=r"file/.* cannot be written: "):
            save_config(place, Config())

    def test_a_failure_keeps_the_old_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """If the new file cannot replace the old one, the old one remains, and nothing else."""
        save_config(tmp_path, Config(max_iterations=3))

        def refuse(*_: object) -> None:
            raise OSError(28, os.strerror(28))

        monkeypatch.setattr(Path, "replace", refuse)
        with pytest.raises(ConfigError, match="No space left"):
            save_config(tmp_path, Config(max_iterations=4))
        assert 3 == load_config(tmp_path).max_iterations
        assert [CONFIG_FILE] == [path.name for path in tmp_path.iterdir()]


def test_a_removed_key(tmp_path: Path) -> None:
    """A key of an older version is an error that says what holds without it."""
    error = refused(tmp_path, '{"hookTimeout": 30}')
    assert f'{CONFIG_FILE}: "hookTimeout" was removed: ' in error.message
    assert "delete the key" == error.hint
