"""The real GitHub Copilot CLI keeps the rules of all agents."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.testing import AgentConformance
from tests.agents.arenas import CopilotArena
from tests.real_copilot import copilot_cli

__all__ = ["copilot_cli"]

pytestmark = pytest.mark.real_agent


class TestCopilot(AgentConformance):
    """GitHub Copilot."""

    @pytest.fixture
    def arena(self, copilot_cli: Path, tmp_path: Path) -> CopilotArena:
        """An arena for one rule."""
        return CopilotArena(tmp_path, copilot_cli)
