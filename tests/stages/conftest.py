"""Fixtures for tests of stages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.git_project import GitProject, isolate_git


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    """An empty repository without a commit."""
    isolate_git(monkeypatch, tmp_path / "home")
    return GitProject(tmp_path / "project")
