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
        ("guard", "on", 'must be "roles", "full" or "off"'),
        ("guard", False, '"guard" is false: must be "roles", "full" or "off"'),
        ("profile", "", 'unknown profile ""; valid profiles: base, node, bun, python, ruby, go'),
        ("profile", ["go", "phyton"], 'unknown profile "phyton"; did you mean "python"?'),
        ("profile", 3, '"profile" is 3: must be a string or a list'),
        ("allowCommands", None, "is null: must be a list or an object"),
        ("allowCommands", "make", "must be a list or an object"),
        ("allowCommands", {"all": ["make"]}, 'unknown key "all" in "allowCommands"'),
        ("allowCommands", {"run": "make"}, '"allowCommands.run" is "make": must be a list'),
        ("allowCommands", [3], '"allowCommands[0]" is 3: must be a string'),
        ("allowCommands", ["npm run"], 'must be a plain name such as "make"'),
        ("allowCommands", {"base": ["./build"]}, "plain name"),
        ("allowPkillTargets", ["bin/server"], "plain name"),
        ("allowPkillTargets", {"run": ["server"]}, "must be a list"),
        ("allowDestructive", 1, "must be true or false"),
    ],
)
def test_a_wrong_value(key: str, value: Any, words: str, tmp_path: Path) -> None:
    """An invalid value is rejected with its key and the valid ones."""
    error = refused(tmp_path, json.dumps({key: value}))
    assert error.message.startswith(CONFIG_FILE)
    assert f'"{key}' in error.message
    assert words in f"{error.message}; {error.hint}"
