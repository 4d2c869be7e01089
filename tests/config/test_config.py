"""`.cuggino.json`: parsing, error messages and saving."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from cuggino.config import (
    CONFIG_FILE,
    Config,
    FallbackAgent,
    RoleAgent,
    changed_config,
    config_path,
    load_config,
    parse_config,
    save_config,
)
from cuggino.errors import ConfigError
from cuggino.guard.roles import ROLES, Role
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


def test_numbers(tmp_path: Path) -> None:
    """Seconds may be written without a fraction, and a large budget is none."""
    write(tmp_path, '{"commandTimeout": 90, "budget": 1' + "0" * 306 + "}")
    config = load_config(tmp_path)
    assert (90.0, 1e306) == (config.command_timeout, config.budget)


SHOWN = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).filter(str.strip)
FALLBACKS = st.lists(
    st.builds(FallbackAgent, agent=SHOWN, model=st.none() | SHOWN, path=st.none() | SHOWN),
    max_size=3,
)
ROLE_AGENTS: st.SearchStrategy[dict[Role, RoleAgent]] = st.dictionaries(
    st.sampled_from(ROLES),
    st.builds(
        RoleAgent,
        agent=st.none() | SHOWN,
        model=st.none() | SHOWN,
        path=st.none() | SHOWN,
        fallback=st.none() | FALLBACKS,
    ),
    max_size=3,
)


class TestSaving:
    def test_the_six_keys_are_always_saved(self, tmp_path: Path) -> None:
        """The original's keys are saved, absent ones left out, others if not the default."""
        save_config(tmp_path, Config(setup_command="make", gate="context", max_tasks_per_plan=7))
        assert (
            '{\n  "specsPath": ".specs",\n  "maxIterations": 10,\n  "maxTasksPerPlan": 7,\n'
            '  "setupCommand": "make",\n  "commit": false,\n  "audit": false\n}\n'
        ) == config_path(tmp_path).read_text()

    texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    commands = SHOWN.filter(lambda text: "\0" not in text)
    seconds = st.floats(0.001, 1e6)

    @settings(
        suppress_health_check=[HealthCheck.function_scoped_fixture],
        max_examples=2 * settings().max_examples,
    )
    @given(
        st.builds(
            Config,
            specs_path=SHOWN,
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
            agent=SHOWN,
            agent_path=st.none() | texts,
            model=st.none() | texts,
            agents=ROLE_AGENTS,
            fallback=FALLBACKS,
        )
    )
    def test_configurations_round_trip(self, tmp_path: Path, config: Config) -> None:
        """Any configuration survives saving, loading and a change, and leaves no other file."""
        save_config(tmp_path, config)
        assert config == load_config(tmp_path)
        assert [CONFIG_FILE] == [path.name for path in tmp_path.iterdir()]
        assert config.agents == changed_config(config, {"max_retries": 1}).agents

    def test_its_permissions_are_kept(self, tmp_path: Path) -> None:
        """A file with a notifier's password stays private."""
        save_config(tmp_path, Config())
        config_path(tmp_path).chmod(0o600)
        save_config(tmp_path, Config(notify="tgram://secret/1"))
        assert 0o600 == stat.S_IMODE(config_path(tmp_path).stat().st_mode)

    def test_a_symlink_is_kept(self, tmp_path: Path) -> None:
        """A configuration shared by several projects is written at its target."""
        shared = tmp_path / "shared.json"
        shared.write_text("{}")
        config_path(tmp_path).symlink_to(shared)
        save_config(tmp_path, Config(notify="tgram://secret/1"))
        assert config_path(tmp_path).is_symlink()
        assert '"notify"' in shared.read_text()

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
