"""The installation of the real agent for tests, with an npm that installs a stub."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.real_claude import PACKAGE, clean_env, install_claude

FAKE_NPM = """#!/bin/sh
echo "$@" >> "$CALLS"
[ -n "$REFUSE" ] && { echo "npm is cross" >&2; exit 1; }
while [ "$1" != --prefix ]; do shift; done
mkdir -p "$2/node_modules/.bin"
echo stub > "$2/node_modules/.bin/claude"
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "npm").write_text(FAKE_NPM)
    (folder / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return tmp_path / "calls"


def test_program_is_installed_once(calls: Path, tmp_path: Path) -> None:
    """Concurrent callers get the same program, installed by one of them."""
    with ThreadPoolExecutor(4) as pool:
        programs = list(pool.map(install_claude, [tmp_path / "cache"] * 4))
    assert len(set(programs)) == 1
    assert programs[0].read_text() == "stub\n"
    (call,) = calls.read_text().splitlines()
    assert call.endswith(PACKAGE)
    assert list((tmp_path / "cache").glob(".installing-*")) == []


def test_failed_installation_leaves_nothing(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When npm fails, its message is raised and no partial installation is left."""
    monkeypatch.setenv("REFUSE", "1")
    with pytest.raises(RuntimeError, match="npm is cross"):
        install_claude(tmp_path / "cache")
    assert len(calls.read_text().splitlines()) == 1
    assert [path for path in (tmp_path / "cache").iterdir() if path.is_dir()] == []


def test_without_npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without npm the error names the missing program."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="npm is needed"):
        install_claude(tmp_path / "cache")


def test_environment_is_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run's environment has its folders and nothing of the caller's own agent."""
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "secret")
    env = clean_env(tmp_path / "home", "http://127.0.0.1:1")
    assert "secret" not in env.values()
    assert env["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"
    for name in ("HOME", "CLAUDE_CONFIG_DIR"):
        assert Path(env[name]).is_dir()
        assert Path(env[name]).is_relative_to(tmp_path)
    for name in ("CLAUDE_CODE_TMPDIR", "TMPDIR"):
        assert Path(env[name]).is_dir()
        assert len(env[name]) < 40
