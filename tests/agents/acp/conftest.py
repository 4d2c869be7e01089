"""Fixtures of the tests of the Agent Client Protocol."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.acp.scripts import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A project, and a program that does as it is told."""
    return Stage(tmp_path)
