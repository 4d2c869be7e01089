"""Command-line settings for the Codex CLI, checked with a TOML parser."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cuggino.agents.codex import config as codex_config
from cuggino.agents.codex.config import (
    codex_home,
    holds_secrets,
    override,
    private,
    retries,
    server_table,
    toml,
)
from cuggino.errors import StorageError

VALUES = st.recursive(
    st.booleans() | st.integers(-(2**60), 2**60) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def given_by(words: list[str]) -> dict[str, Any]:
    """Return the settings in the arguments."""
    assert ["-c"] * (len(words) // 2) == words[::2]
    return tomllib.loads("\n".join(words[1::2]))


@given(VALUES)
def test_every_value_arrives(value: Any) -> None:
    """Values round-trip, except for lone surrogates."""
    assert value == tomllib.loads(f"x={toml(value)}")["x"]


def test_texts_that_are_easily_lost() -> None:
    """Quotes, controls, DEL and astral characters round-trip; a lone surrogate does not."""
    text = "\"'\\ \x00\x1b\x7f\n\t Ünï 😀"
    assert {"a": text} == given_by(override("a", text))
    assert {"a": "?"} == given_by(override("a", "\ud800"))


def test_none_is_omitted() -> None:
    """TOML has no null."""
    assert '{"a"=1,"c"=[]}' == toml({"a": 1, "b": None, "c": [None]})


def test_servers() -> None:
    """Servers have the format of Claude Code's; tools usable without asking are listed by name."""
    local = {"type": "stdio", "command": "run", "args": ["x"], "env": {"A": "b"}}
    remote = {"type": "http", "url": "http://127.0.0.1:1/mcp", "headers": {"X": "y"}}
    rules = ["mcp__local__get", "mcp__remote", "Bash"]
    given_servers = {"local": local, "remote": remote}
    table = server_table(given_servers, approved=False, allowed_tools=rules)
    common = {"required": True, "enabled": True, "startup_timeout_sec": 60}
    assert {
        "local": {
            "command": "run",
            "args": ["x"],
            "env": {"A": "b"},
            "tools": {"get": {"approval_mode": "approve"}},
            **common,
        },
        "remote": {
            "url": "http://127.0.0.1:1/mcp",
            "http_headers": {"X": "y"},
            "default_tools_approval_mode": "approve",
            **common,
        },
    } == given_by(override("s", table))["s"]
    assert {} == server_table({}, approved=True)


CUSTOM = 'model_provider = "own"\n[model_providers.own]\nname = "own"\n'


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("", {}),
        ("no toml", {}),
        ('model_provider = "openai"', {}),
        ('model_provider = "gone"', {}),
        ("model_provider = 1\nmodel_providers = 2", {}),
        (CUSTOM, {"request_max_retries", "stream_max_retries", "stream_idle_timeout_ms"}),
        (f"{CUSTOM}request_max_retries = 9\nstream_max_retries = 9", {"stream_idle_timeout_ms"}),
    ],
)
def test_retries_are_bounded(tmp_path: Path, config: str, expected: set[str]) -> None:
    """The user's own provider gets the retry limits that it lacks."""
    (tmp_path / "config.toml").write_text(config)
    words = given_by(retries({"CODEX_HOME": str(tmp_path)}))
    assert set(expected) == set(words.get("model_providers", {}).get("own", {}))


@pytest.mark.parametrize("text", ["be brief", 'ü"' * codex_config.LONGEST_ARGUMENT])
def test_private_settings(tmp_path: Path, text: str) -> None:
    """Private settings are in a temporary private file and in no argument."""
    env = {"CODEX_HOME": str(tmp_path / "codex")}
    settings = {"developer_instructions": text, "mcp_servers": {"a": {"env": {"K": "secret"}}}}
    with private(settings, env) as words:
        (file,) = (tmp_path / "codex").iterdir()
        assert ["--profile", file.name.removesuffix(".config.toml")] == words
        assert 0o600 == file.stat().st_mode & 0o777
        assert settings == tomllib.loads(file.read_text())
    assert [] == list((tmp_path / "codex").iterdir())
    with private({}, env) as words:
        assert [] == words


def test_a_profile_of_the_user(tmp_path: Path) -> None:
    """The user's profile stays in force: short settings are arguments, and no file is written."""
    (tmp_path / "config.toml").write_text('profile = "mine"\n')
    env = {"CODEX_HOME": str(tmp_path)}
    with private({"developer_instructions": "be brief"}, env) as words:
        assert {"developer_instructions": "be brief"} == given_by(words)
    assert ["config.toml"] == [path.name for path in tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"command": "x", "args": ["y"]}, False),
        ({"command": "x", "env": {}}, False),
        ({"command": "x", "env": {"K": "v"}}, True),
        ({"url": "u", "headers": {"Authorization": "x"}}, True),
    ],
)
def test_servers_with_secrets(told: dict[str, object], expected: bool) -> None:
    """Variables and headers may be keys."""
    assert expected == holds_secrets(server_table({"a": told}, approved=True))


def test_an_unwritable_settings_file(tmp_path: Path) -> None:
    """If the private file cannot be written, the session does not start."""
    (tmp_path / "file").touch()
    env = {"CODEX_HOME": str(tmp_path / "file")}
    with (
        pytest.raises(StorageError, match="cannot be written"),
        private({"developer_instructions": "x"}, env),
    ):
        pass


def test_the_folder_of_the_program(tmp_path: Path) -> None:
    """The folder is the configured one, otherwise one in the user's home."""
    assert tmp_path / "own" == codex_home({"CODEX_HOME": str(tmp_path / "own"), "HOME": "/x"})
    assert tmp_path / ".codex" == codex_home({"HOME": str(tmp_path)})
