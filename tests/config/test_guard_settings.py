"""The settings of the guard in `.cuggino.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuggino.config import CONFIG_FILE, Config, load_config, save_config
from tests.config.test_config import refused, write
from tests.vectors import snake


def test_the_defaults() -> None:
    """By default roles are guarded, with all profiles, no extra command and no destruction."""
    config = Config()
    assert ("roles", None, [], [], False) == (
        config.guard,
        config.profile,
        config.allow_commands,
        config.allow_pkill_targets,
        config.allow_destructive,
    )


@pytest.mark.parametrize(
    "values",
    [
        {"guard": "full", "profile": "node", "allowCommands": ["make", "g++"]},
        {"guard": "off", "profile": ["base", "go", "extended"], "allowPkillTargets": ["server"]},
        {"allowCommands": {"base": ["make"], "sync": []}, "allowDestructive": True},
        {"allowCommands": {}, "profile": []},
    ],
)
def test_settings_round_trip(values: dict[str, Any], tmp_path: Path) -> None:
    """A profile is a name or a list, commands are a list or tiers; all survive saving."""
    write(tmp_path, json.dumps(values))
    config = load_config(tmp_path)
    assert values == {key: getattr(config, snake(key)) for key in values}
    save_config(tmp_path, config)
    assert config == load_config(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("guard", "on", "'roles', 'full' or 'off'"),
        ("guard", False, "'roles', 'full' or 'off'"),
        ("profile", "", 'unknown profile ""; valid profiles: base, node, bun, python, ruby, go'),
        ("profile", ["go", "phyton"], 'unknown profile "phyton"; did you mean "python"?'),
        ("profile", 3, ""),
        ("allowCommands", None, ""),
        ("allowCommands", "make", "neither a list nor an object with the lists base, run and sync"),
        ("allowCommands", {"all": ["make"]}, "neither a list nor an object with the lists base"),
        ("allowCommands", {"run": "make"}, "not made of texts"),
        ("allowCommands", [3], "not made of texts"),
        ("allowCommands", ["npm run"], 'must be plain names such as "make"'),
        ("allowCommands", {"base": ["./build"]}, "plain names"),
        ("allowPkillTargets", ["bin/server"], "plain names"),
        ("allowPkillTargets", {"run": ["server"]}, ""),
        ("allowDestructive", 1, ""),
    ],
)
def test_a_wrong_value(key: str, value: Any, words: str, tmp_path: Path) -> None:
    """An invalid value is rejected with its key and the valid ones."""
    error = refused(tmp_path, json.dumps({key: value}))
    assert error.message.startswith(f'{CONFIG_FILE}: "{key}" is ')
    assert words in error.message
