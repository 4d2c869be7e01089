"""The real Claude Code CLI keeps the rules of all agents."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.testing import AgentConformance
from tests.agents.arenas import ClaudeArena

pytestmark = pytest.mark.real_agent


class TestClaude(AgentConformance):
    """Claude Code."""

    @pytest.fixture
    def arena(self, claude_cli: Path, tmp_path: Path) -> ClaudeArena:
        """An arena for one rule."""
        return ClaudeArena(tmp_path, claude_cli)
