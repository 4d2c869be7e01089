"""The environment of the real agent in tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real_claude import clean_env


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
