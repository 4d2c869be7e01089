"""The Claude Agent SDK, with the real Claude Code CLI, keeps the rules of all agents."""

from __future__ import annotations

from pathlib import Path

import pytest
from typing_extensions import override

from cuggino.agents import LlmAgent
from cuggino.agents.claude_sdk import ClaudeSdkAgent
from cuggino.testing import AgentConformance
from tests import real_claude
from tests.agents.arenas import ClaudeArena
from tests.real_claude_sdk import needs_sdk

pytestmark = pytest.mark.real_agent


class SdkArena(ClaudeArena):
    """The real Claude Code CLI, spoken to by the SDK."""

    @override
    def make(self, path: Path, base_url: str) -> LlmAgent:
        env = real_claude.clean_env(self.home, base_url)
        return ClaudeSdkAgent(path=path, env={**env, "CLAUDE_CODE_MAX_RETRIES": "0"})


class TestClaudeSdk(AgentConformance):
    """The Claude Agent SDK."""

    @pytest.fixture
    def arena(self, claude_cli: Path, tmp_path: Path) -> SdkArena:
        """An arena for one rule."""
        needs_sdk()
        return SdkArena(tmp_path, claude_cli)
