"""Fixtures for tests of stages."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.git import Git
from tests.git_project import GitProject, isolate_git


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    """An empty repository without a commit."""
    isolate_git(monkeypatch, tmp_path / "home")
    return GitProject(tmp_path / "project")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report a lock of git at once; `tests/git/test_program.py` proves that it is waited for."""
    defaults = {**(Git.__init__.__kwdefaults__ or {}), "patience": 0.0}
    monkeypatch.setattr(Git.__init__, "__kwdefaults__", defaults)
