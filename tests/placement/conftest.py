"""Fixtures of the tests of placement."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.git_project import isolate_git
from tests.placement.agent import agent_reset
from tests.placement.linked import ClusterProject


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ClusterProject]:
    """A project with a shared repository and three workers."""
    isolate_git(monkeypatch, tmp_path / "home")
    agent_reset()
    made = ClusterProject(tmp_path)
    yield made
    made.link.close()
