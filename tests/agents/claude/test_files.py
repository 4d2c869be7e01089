"""The private files of a Claude Code session: their content and removal."""

from __future__ import annotations

import json
import stat
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from cuggino.agents import SpawnOptions
from cuggino.agents.claude import ClaudeAgent, sandbox as claude_sandbox
from cuggino.agents.claude.agent import servers_file, system_prompt_file
from cuggino.errors import StorageError
from cuggino.guard.sandbox import Sandbox


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder for temporary files on a machine with sandbox support."""
    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(claude_sandbox, "sandbox_unavailable", lambda _env: "")
    return folder


def options(folder: Path) -> SpawnOptions:
    sandbox = Sandbox(deny_write=(), allow_write=(), domains=())
    return SpawnOptions(prompt="Go.", cwd=folder, system_prompt="Be brief.", sandbox=sandbox)


def test_content(tmp_path: Path, temp: Path) -> None:
    """Only the user can read the files, and all of them are removed."""
    servers = {"x": {"command": "x", "env": {"KEY": "secret"}}}
    with ExitStack() as stack:
        system_prompt = system_prompt_file(options(tmp_path), stack)
        told = servers_file(servers, stack)
        assert system_prompt is not None
        assert told is not None
        assert "Be brief." == system_prompt.read_text()
        assert {"mcpServers": servers} == json.loads(told.read_text())
        assert {0o600} == {stat.S_IMODE(file.stat().st_mode) for file in temp.iterdir()}
    assert [] == list(temp.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="git needs no ignore file elsewhere")
def test_git_ignores(tmp_path: Path, temp: Path) -> None:
    """Git ignores the device files that mask denied paths in the sandbox."""
    with ExitStack() as stack:
        env = ClaudeAgent(env={})._session_env(options(tmp_path), stack)
        count = int(env["GIT_CONFIG_COUNT"])
        given = {env[f"GIT_CONFIG_KEY_{n}"]: env[f"GIT_CONFIG_VALUE_{n}"] for n in range(count)}
        assert "/.bashrc\n" in Path(given["core.excludesFile"]).read_text()
    assert [] == list(temp.iterdir())


def test_no_files(tmp_path: Path, temp: Path) -> None:
    """A session without system prompt and servers has no files."""
    with ExitStack() as stack:
        assert system_prompt_file(SpawnOptions(prompt="Go.", cwd=tmp_path), stack) is None
        assert servers_file({}, stack) is None
        assert [] == list(temp.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="git needs no ignore file elsewhere")
@pytest.mark.parametrize("error", [OSError("no"), StorageError("write", "no")])
def test_all_or_none(
    tmp_path: Path, temp: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """If one file cannot be created, the others are removed."""

    def fails(*_given: object) -> str:
        raise error

    monkeypatch.setattr(claude_sandbox, "git_ignores", fails)
    with pytest.raises(type(error)), ExitStack() as stack:
        servers_file({"x": {}}, stack)
        ClaudeAgent(env={})._session_env(options(tmp_path), stack)
    assert [] == list(temp.iterdir())
