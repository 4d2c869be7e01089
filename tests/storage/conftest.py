"""Fixtures of the tests of storage."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.storage import Backlog, Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A workspace with its folders."""
    made = Workspace(tmp_path)
    made.open()
    return made


@pytest.fixture
def backlog(workspace: Workspace) -> Backlog:
    """An empty backlog."""
    return Backlog(workspace)
