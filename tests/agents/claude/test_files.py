"""The private files of a session of Claude Code: what is in them, and that none is left."""

from __future__ import annotations

import json
import stat
import sys
import tempfile
from pathlib import Path

import pytest

from cuggino.agents import SpawnOptions
from cuggino.agents.claude import sandbox as claude_sandbox
from cuggino.agents.claude.files import write_files
from cuggino.errors import StorageError
from cuggino.security.sandbox import Sandbox


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, of a machine that can hold a sandbox."""
    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(claude_sandbox, "sandbox_unavailable", lambda _env: "")
    return folder


def options(folder: Path) -> SpawnOptions:
    sandbox = Sandbox(deny_write=(), allow_write=(), domains=())
    return SpawnOptions(prompt="Go.", cwd=folder, system_prompt="Be brief.", sandbox=sandbox)


def test_what_is_in_them(tmp_path: Path, temp: Path) -> None:
    """Each is for its user alone, and all of them can be removed."""
    servers = {"x": {"command": "x", "env": {"KEY": "secret"}}}
    files = write_files(options(tmp_path), {}, servers=servers)
    assert files.system_prompt is not None
    assert files.servers is not None
    assert "Be brief." == files.system_prompt.read_text()
    assert {"mcpServers": servers} == json.loads(files.servers.read_text())
    if sys.platform == "linux":
        assert files.ignores is not None
        assert "/.bashrc\n" in files.ignores.read_text()
    assert {0o600} == {stat.S_IMODE(file.stat().st_mode) for file in temp.iterdir()}
    files.remove()
    assert [] == list(temp.iterdir())


def test_what_is_not_told(tmp_path: Path, temp: Path) -> None:
    """A session that is told nothing of this has no files."""
    files = write_files(SpawnOptions(prompt="Go.", cwd=tmp_path), {}, servers={})
    assert (None, None, None) == (files.system_prompt, files.servers, files.ignores)
    assert [] == list(temp.iterdir())
    files.remove()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere git is told nothing")
@pytest.mark.parametrize("error", [OSError("no"), StorageError("write", "no")])
def test_all_or_none(
    tmp_path: Path, temp: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """When one cannot be made, those before it are removed."""

    def fails(*_given: object) -> str:
        assert 2 == len(list(temp.iterdir()))
        raise error

    monkeypatch.setattr(claude_sandbox, "git_ignores", fails)
    with pytest.raises(type(error)):
        write_files(options(tmp_path), {}, servers={"x": {}})
    assert [] == list(temp.iterdir())
